//! File operations.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::Method;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Call, Connection, Reply};
use crate::error::{Error, Result};
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirEntry, DirPage, FileReader, LinkTarget,
    ListOptions, Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::path::WorkspacePath;
use crate::remote::frame::{END, ENTRIES, ERROR, FrameReader};
use crate::remote::limits::{MAX_LIST, MAX_LIST_PAGE};
use crate::remote::server::METADATA;
use crate::remote::wire::{
    Bytes64, CopyRequest, ListEnd, ListQuery, MetadataQuery, ModeRequest, PackRequest, PathQuery, ReadQuery,
    RemoveQuery, UnpackQuery, WireEntry, WireLink, WireMetadata, WireWritten, WriteQuery,
};

const FILE: &str = "/v1/file";

pub(super) async fn open(
    connection: &Arc<Connection>,
    path: &WorkspacePath,
    options: OpenOptions,
) -> Result<FileReader> {
    let permit = connection.lasting(1).await?;
    let OpenOptions { offset, length, max_size } = options;
    let query = ReadQuery { path: path.to_string(), offset, length, max_size };
    let mut reply = connection.send(Call::query(Method::GET, FILE, &query)?).await?;
    let metadata =
        reply.headers.get(METADATA).and_then(|value| serde_json::from_slice(value.as_bytes()).ok());
    let Some(metadata) = metadata.map(|metadata: WireMetadata| Metadata::from(metadata)) else {
        return Err(reply.body.broken("a file without its metadata".to_owned()));
    };
    let reader = Stream::new(connection, reply, permit);
    match length {
        Some(length) => FileReader::new(path.to_string(), metadata, options, reader.bounded(length)),
        None => FileReader::new(path.to_string(), metadata, options, reader),
    }
}

/// A body that belongs to an open reader.
#[derive(Debug)]
pub(super) struct Stream {
    connection: Arc<Connection>,
    reply: Reply,
    _permit: Option<OwnedSemaphorePermit>,
    /// How many bytes the peer may still send.
    allowed: u64,
}

impl Stream {
    pub(super) fn new(
        connection: &Arc<Connection>,
        reply: Reply,
        permit: impl Into<Option<OwnedSemaphorePermit>>,
    ) -> Self {
        Stream { connection: connection.clone(), reply, _permit: permit.into(), allowed: u64::MAX }
    }

    fn bounded(self, allowed: u64) -> Self {
        Stream { allowed, ..self }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.connection.check().map_err(io::Error::from)?;
        let before = buf.filled().len();
        if let Err(error) = ready!(Pin::new(&mut self.reply.body).poll_read(cx, buf)) {
            let error = self.connection.told(Error::from_io("read", "the stream", error));
            return Poll::Ready(Err(error.into()));
        }
        let read = (buf.filled().len() - before) as u64;
        let Some(allowed) = self.allowed.checked_sub(read) else {
            buf.set_filled(before);
            let error = self.reply.body.broken("more of a file than was asked for".to_owned());
            return Poll::Ready(Err(error.into()));
        };
        self.allowed = allowed;
        Poll::Ready(Ok(()))
    }
}

pub(super) async fn metadata(
    connection: &Arc<Connection>,
    path: &WorkspacePath,
    follow: bool,
) -> Result<Metadata> {
    let query = MetadataQuery { path: path.to_string(), follow };
    let metadata: WireMetadata = connection.ask(Call::query(Method::GET, "/v1/metadata", &query)?).await?;
    Ok(metadata.into())
}

pub(super) async fn read_link(connection: &Arc<Connection>, path: &WorkspacePath) -> Result<LinkTarget> {
    let query = PathQuery { path: path.to_string() };
    let link: WireLink = connection.ask(Call::query(Method::GET, "/v1/link", &query)?).await?;
    Ok(LinkTarget::new(link.target.0))
}

pub(super) async fn read_dir(
    connection: &Arc<Connection>,
    path: &WorkspacePath,
    options: ListOptions,
) -> Result<DirPage> {
    let limit = options.limit.max(1);
    let (mut entries, mut after): (Vec<DirEntry>, _) = (Vec::new(), options.after);
    // What is asked for may be more than the server holds at once.
    loop {
        let wanted = (limit - entries.len()).min(MAX_LIST_PAGE);
        let query = ListQuery {
            path: path.to_string(),
            after: after.map(|name| Bytes64(name.as_bytes().to_vec())),
            limit: Some(wanted as u64),
        };
        let reply = connection.send(Call::query(Method::GET, "/v1/dir", &query)?).await?;
        let more = read_page(connection, reply, wanted, &mut entries).await?;
        after = entries.last().map(|entry| entry.name.clone());
        if !more || entries.len() >= limit {
            return Ok(DirPage::new(entries, more));
        }
        if entries.len() >= MAX_LIST {
            return Err(Error::TooLarge { path: path.to_string(), limit: MAX_LIST as u64 });
        }
    }
}

/// Adds one page, which must be sorted and no longer than was asked for, and says whether more
/// follows it.
async fn read_page(
    connection: &Connection,
    reply: Reply,
    wanted: usize,
    entries: &mut Vec<DirEntry>,
) -> Result<bool> {
    let (mut frames, begin) = (FrameReader::new(reply.body), entries.len());
    loop {
        let frame = frames.next().await?;
        match frame.kind {
            ENTRIES => {
                let Ok(page) = frame.parse::<Vec<WireEntry>>() else {
                    return Err(frames.broken("entries of a directory that are none"));
                };
                for entry in page {
                    let entry = entry.entry().map_err(|error| frames.broken(error.to_string()))?;
                    let sorted = entries.last().is_none_or(|last| last.name < entry.name);
                    if !sorted || entries.len() - begin >= wanted {
                        return Err(frames.broken("a directory that is not sorted or too long"));
                    }
                    entries.push(entry);
                }
            }
            END => match frame.parse() {
                // A page that says that more follows and has nothing would go on for ever.
                Ok(ListEnd { more }) if !more || entries.len() > begin => return Ok(more),
                _ => return Err(frames.broken("a directory without an end")),
            },
            ERROR => return Err(told(connection, &mut frames, &frame)),
            _ => return Err(frames.broken("an unexpected frame")),
        }
    }
}

/// The error in a frame.
pub(super) fn told(
    connection: &Connection,
    frames: &mut FrameReader,
    frame: &crate::remote::frame::Frame,
) -> Error {
    match frame.parse::<crate::remote::error::WireError>() {
        Ok(error) => connection.told(error.into_error()),
        Err(error) => frames.broken(error.to_string()),
    }
}

pub(super) async fn write(
    connection: &Arc<Connection>,
    path: &WorkspacePath,
    content: Content,
    options: WriteOptions,
) -> Result<Written> {
    let _permit = connection.lasting(1).await?;
    let query = WriteQuery {
        path: path.to_string(),
        mode: Some(options.mode),
        parents: Some(options.parents),
        length: content.len(),
    };
    let call = Call::query(Method::PUT, FILE, &query)?.content(content, path.as_str());
    Ok(connection.ask::<WireWritten>(call).await?.into())
}

/// What the server answers when there is nothing to say.
type Done = serde_json::Map<String, serde_json::Value>;

pub(super) async fn remove(connection: &Arc<Connection>, path: &WorkspacePath, all: bool) -> Result<()> {
    let query = RemoveQuery { path: path.to_string(), all };
    connection.ask::<Done>(Call::query(Method::DELETE, FILE, &query)?).await.map(drop)
}

pub(super) async fn rename(
    connection: &Arc<Connection>,
    from: &WorkspacePath,
    to: &WorkspacePath,
) -> Result<()> {
    let names = CopyRequest { from: from.to_string(), to: to.to_string() };
    connection.ask::<Done>(Call::json("/v1/rename", &names)).await.map(drop)
}

pub(super) async fn copy(
    connection: &Arc<Connection>,
    from: &WorkspacePath,
    to: &WorkspacePath,
) -> Result<Written> {
    let names = CopyRequest { from: from.to_string(), to: to.to_string() };
    Ok(connection.ask::<WireWritten>(Call::json("/v1/copy", &names)).await?.into())
}

pub(super) async fn create_dir_all(connection: &Arc<Connection>, path: &WorkspacePath) -> Result<()> {
    let request = PathQuery { path: path.to_string() };
    connection.ask::<Done>(Call::json("/v1/directory", &request)).await.map(drop)
}

pub(super) async fn set_mode(connection: &Arc<Connection>, path: &WorkspacePath, mode: u32) -> Result<()> {
    let request = ModeRequest { path: path.to_string(), mode };
    connection.ask::<Done>(Call::json("/v1/mode", &request)).await.map(drop)
}

pub(super) async fn put_archive(
    connection: &Arc<Connection>,
    dir: &WorkspacePath,
    tar: Content,
    options: UnpackOptions,
) -> Result<ArchiveReport> {
    let _permit = connection.lasting(1).await?;
    let query = UnpackQuery {
        path: dir.to_string(),
        max_bytes: options.max_bytes,
        max_entries: options.max_entries,
        mode_mask: Some(options.mode_mask),
    };
    let call = Call::query(Method::PUT, "/v1/archive", &query)?.content(tar, dir.as_str());
    connection.ask(call).await
}

pub(super) async fn get_archive(
    connection: &Arc<Connection>,
    path: &WorkspacePath,
    options: ArchiveOptions,
) -> Result<ArchiveReader> {
    let permit = connection.lasting(1).await?;
    let ArchiveOptions { exclude, max_bytes } = options;
    let request = PackRequest { path: path.to_string(), exclude, max_bytes };
    let reply = connection.send(Call::json("/v1/archive", &request)).await?;
    Ok(ArchiveReader::new(Stream::new(connection, reply, permit)))
}
