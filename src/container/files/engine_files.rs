//! File operations of a container without a shell, by the engine's archive calls while it is
//! paused.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use super::engine_walk::{Last, Place, first_entry, link_target, resolve};
use super::list::Lister;
use super::paused::paused;
use super::spool::{self, Sized, Spool};
use super::tar_emit::{self, Names};
use super::tar_index::{Entry, EntryKind, clean_name};
use super::transfer::{self, consume, download, while_open};
use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::lookup::join;
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{
    Content, DirPage, FileKind, FileReader, LinkTarget, ListOptions, Metadata, OpenOptions, WriteMethod,
    WriteOptions, Written,
};
use crate::path::WorkspacePath;
use crate::tar::{MemberKind, TarReader, TarWriter, Time};

/// The mode of directories that are made on the way.
const DIRECTORY_MODE: u32 = 0o755;

pub(super) async fn look_up(shared: &Arc<Shared>, path: &WorkspacePath, last: Last) -> Result<Metadata> {
    let (held, path) = (Arc::clone(shared), path.clone());
    paused(shared, async move {
        let place = resolve(&held, &path, last).await?;
        let found = place.found.ok_or_else(|| not_found(&path))?;
        if !found.is_symlink() {
            return Ok(found);
        }
        let target = link_target(&held, &place.path(), path.as_str()).await?;
        Ok(Metadata { size: target.as_bytes().len() as u64, ..found })
    })
    .await
}

pub(super) async fn read_link(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<LinkTarget> {
    let (held, path) = (Arc::clone(shared), path.clone());
    paused(shared, async move {
        let place = resolve(&held, &path, Last::Keep).await?;
        let found = place.found.ok_or_else(|| not_found(&path))?;
        if !found.is_symlink() {
            return Err(Error::NotALink { path: path.as_str().to_owned() });
        }
        link_target(&held, &place.path(), path.as_str()).await
    })
    .await
}

pub(super) async fn read_dir(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: ListOptions,
) -> Result<DirPage> {
    let (held, path) = (Arc::clone(shared), path.clone());
    paused(shared, async move {
        let place = resolve(&held, &path, Last::Follow).await?;
        let found = place.found.ok_or_else(|| not_found(&path))?;
        if !found.is_dir() {
            return Err(Error::NotADirectory { path: path.as_str().to_owned() });
        }
        // The archive has everything below as well, which is read over. With the dot its names
        // begin in the directory itself.
        let archive = download(&held, &join(&place.path(), "."));
        let listing = consume(archive, move |reader| {
            let mut lister = Lister::new(options);
            let mut archive = TarReader::new(|buf: &mut [u8]| reader.read(buf).map_err(|e| cut(&path, e)));
            while let Some(entry) = archive.next().map_err(|error| changed(&path, error))? {
                let name = clean_name(&entry.name)?;
                if !name.is_empty() && !name.contains(&b'/') {
                    lister.take_entry(kind(entry.kind), &name)?;
                }
            }
            lister.finish()
        });
        within(SLOW_CALL_TIMEOUT, "listing a directory", listing).await
    })
    .await
}

fn kind(entry: MemberKind) -> FileKind {
    match entry {
        MemberKind::Directory => FileKind::Directory,
        MemberKind::Symlink => FileKind::Symlink,
        MemberKind::Other(b'6') => FileKind::Fifo,
        MemberKind::Other(b'3') => FileKind::CharDevice,
        MemberKind::Other(b'4') => FileKind::BlockDevice,
        // A hard link is one of the names of a file.
        _ => FileKind::File,
    }
}

pub(super) async fn open(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: OpenOptions,
) -> Result<FileReader> {
    let (held, wanted_path) = (Arc::clone(shared), path.clone());
    let (metadata, data) = paused(shared, async move {
        let path = wanted_path;
        let place = resolve(&held, &path, Last::Follow).await?;
        let metadata = regular(&place, &path)?.ok_or_else(|| not_found(&path))?;
        if let Some(limit) = options.max_size.filter(|limit| metadata.size > *limit) {
            return Err(Error::TooLarge { path: path.as_str().to_owned(), limit });
        }
        let end = options.offset.saturating_add(options.length.unwrap_or(u64::MAX));
        let wanted = metadata.size.min(end);
        let data = Spool::create().await?;
        let archive = download(&held, &place.path());
        let reading = consume(archive, move |reader| one_file(reader, data, metadata.size, wanted, &path));
        Ok((metadata, reading.await?))
    })
    .await?;
    let mut data = tokio::fs::File::from_std(data);
    let seek = data.seek(io::SeekFrom::Start(options.offset)).await;
    seek.map_err(|error| Error::from_io("read", path.as_str(), error))?;
    let chunks = ReaderStream::with_capacity(data, 64 * 1024);
    FileReader::new(path.as_str(), metadata, options, while_open(Arc::clone(shared), chunks))
}

/// Puts the first `wanted` bytes of the only file in an archive into `data`.
fn one_file(
    reader: &mut impl Read,
    mut data: Spool,
    size: u64,
    wanted: u64,
    path: &WorkspacePath,
) -> Result<std::fs::File> {
    let other = || Error::Changed { path: path.as_str().to_owned() };
    let mut archive = TarReader::new(|buf: &mut [u8]| reader.read(buf).map_err(|error| cut(path, error)));
    let entry = archive.next().map_err(|error| changed(path, error))?.ok_or_else(other)?;
    if entry.kind != MemberKind::File || entry.size != size {
        return Err(other());
    }
    let mut left = wanted;
    let taken = archive.data(&entry, |at, piece| {
        let take = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        data.write_at(&piece[..take], at)?;
        left -= take as u64;
        // What comes behind is not wanted, so nobody waits for it.
        if left == 0 { Err(other()) } else { Ok(()) }
    });
    match taken {
        Err(error) if left > 0 => Err(changed(path, error)),
        _ => data.finish(wanted),
    }
}

pub(super) async fn write(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    content: Content,
    options: WriteOptions,
) -> Result<Written> {
    // Read whole before anything is touched: an upload that breaks off leaves a part.
    let content = match content.into_bytes() {
        Ok(bytes) => spool::sized(Content::from(bytes), path.as_str()).await?,
        Err(content) => spool::whole(content.into_reader(), path.as_str()).await?,
    };
    let (held, path) = (Arc::clone(shared), path.clone());
    paused(shared, async move {
        let place = resolve(&held, &path, Last::Follow).await?;
        let old = regular(&place, &path)?;
        if place.below.len() > 1 && !options.parents {
            return Err(not_found(&path));
        }
        let owner = match &old {
            Some(_) => first_entry(&held, &place.path()).await?.owner,
            None => (held.user.uid, held.user.gid),
        };
        let mode = old.map_or(options.mode, |old| old.mode);
        let Sized { reader, len } = content;
        let file = Entry { mode, owner, ..made(&held, &place.below, EntryKind::File { offset: 0, len }) };
        let mut start = parents(&held, &place.below)?;
        tar_emit::start(&mut TarWriter::new(&mut start), &file, len, Names::Dotted)
            .map_err(|error| cut(&path, error))?;
        let mut end = TarWriter::new(Vec::new());
        end.pad(len).map_err(|error| cut(&path, error))?;
        let end = end.finish().map_err(|error| cut(&path, error))?;
        let archive = stream::iter([Ok(Bytes::from(start))])
            .chain(ReaderStream::with_capacity(reader.take(len), 64 * 1024))
            .chain(stream::iter([Ok(Bytes::from(end))]));
        let uploading = transfer::upload(&held, &place.dir, archive);
        uploading.await.map_err(|error| upload_error(error, path.as_str()))?;
        Ok(Written::new(len, WriteMethod::InPlace))
    })
    .await
}

pub(super) async fn create_dir_all(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<()> {
    let (held, path) = (Arc::clone(shared), path.clone());
    paused(shared, async move {
        let place = resolve(&held, &path, Last::Follow).await?;
        let exists = || Err(Error::AlreadyExists { path: path.as_str().to_owned() });
        match place.found {
            Some(found) if found.is_dir() => return Ok(()),
            Some(_) => return exists(),
            None => {}
        }
        // A link that leads to nothing is something else than a directory.
        if resolve(&held, &path, Last::Keep).await?.found.is_some() {
            return exists();
        }
        make_directories(&held, &place).await.map_err(|error| upload_error(error, path.as_str()))
    })
    .await
}

/// Makes everything that is missing below a place.
async fn make_directories(shared: &Shared, place: &Place) -> Result<()> {
    let mut below = place.below.clone();
    below.push(String::new());
    let mut archive = parents(shared, &below)?;
    TarWriter::new(&mut archive).finish().map_err(|error| Error::from_io("make", &place.dir, error))?;
    transfer::upload(shared, &place.dir, stream::iter([Ok(Bytes::from(archive))])).await
}

pub(super) async fn copy(shared: &Arc<Shared>, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
    let source = open(shared, from, OpenOptions::default()).await?;
    let (held, names) = (Arc::clone(shared), (from.clone(), to.clone()));
    paused(shared, async move {
        let from = resolve(&held, &names.0, Last::Follow).await?.path();
        if from == resolve(&held, &names.1, Last::Follow).await?.path() {
            let reason = format!("`{}` cannot be copied onto itself", names.0);
            return Err(Error::InvalidArgument { reason });
        }
        Ok(())
    })
    .await?;
    let metadata = source.metadata();
    let options = WriteOptions::default().mode(metadata.mode);
    write(shared, to, Content::sized_reader(source, metadata.size), options).await
}

/// The entries of the directories above the last of `below`.
fn parents(shared: &Shared, below: &[String]) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    for end in 1..below.len() {
        let entry = made(shared, &below[..end], EntryKind::Directory);
        tar_emit::start(&mut TarWriter::new(&mut archive), &entry, 0, Names::Dotted)
            .map_err(|error| Error::from_io("make a directory in", &shared.root, error))?;
    }
    Ok(archive)
}

/// A new entry of the workspace's user.
pub(super) fn made(shared: &Shared, name: &[String], kind: EntryKind) -> Entry {
    Entry {
        name: name.join("/").into_bytes(),
        kind,
        mode: DIRECTORY_MODE,
        owner: (shared.user.uid, shared.user.gid),
        modified: time(SystemTime::now()),
    }
}

/// A time as archives have it. What is before 1970 or too late for them counts as that moment.
pub(super) fn time(time: SystemTime) -> Time {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

/// The regular file at a place; [`None`] when nothing is there.
fn regular(place: &Place, path: &WorkspacePath) -> Result<Option<Metadata>> {
    let path = path.as_str().to_owned();
    match place.found {
        None => Ok(None),
        Some(found) if found.is_file() => Ok(Some(found)),
        Some(found) if found.is_dir() => Err(Error::IsADirectory { path }),
        Some(found) => Err(Error::NotAFile { path, kind: found.kind }),
    }
}

/// What an engine's refusal of an upload means.
pub(super) fn upload_error(error: Error, path: &str) -> Error {
    let Error::Engine { message, .. } = &error else { return error };
    let says = |words: &str| message.to_ascii_lowercase().contains(words);
    let path = path.to_owned();
    if says("no space left on device") || says("quota exceeded") {
        Error::StorageFull { path }
    } else if says("read-only") {
        Error::ReadOnly { path }
    } else if says("cannot overwrite directory") {
        Error::IsADirectory { path }
    } else if says("cannot overwrite non-directory") {
        Error::NotADirectory { path }
    } else {
        error
    }
}

pub(super) fn not_found(path: &WorkspacePath) -> Error {
    Error::NotFound { path: path.as_str().to_owned() }
}

/// An archive that breaks off is of something that changed while the engine read it.
pub(super) fn cut(path: &WorkspacePath, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Changed { path: path.as_str().to_owned() },
        _ => Error::from_io("read", path.as_str(), error),
    }
}

/// An archive of the engine is broken only where it was of something that changed.
fn changed(path: &WorkspacePath, error: Error) -> Error {
    match error {
        Error::Archive { .. } => Error::Changed { path: path.as_str().to_owned() },
        other => other,
    }
}

/// Awaits a transfer for at most `bound`: of all that comes only a little is wanted, and the engine
/// locks the container meanwhile.
pub(super) async fn within<T>(
    bound: std::time::Duration,
    operation: &str,
    transfer: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(bound, transfer).await {
        Ok(done) => done,
        Err(_) => Err(Error::Timeout { operation: operation.to_owned(), after: bound }),
    }
}
