//! File operations.

use hyper::Request;

use super::respond::{Answer, METADATA, done, json, path, reader, stream};
use super::session::Session;
use crate::files::{
    ArchiveOptions, Content, EntryName, ListOptions, OpenOptions, UnpackOptions, WriteOptions,
};
use crate::remote::ascii;
use crate::remote::frame::{END, ENTRIES, FrameSender};
use crate::remote::incoming::{BodyReader, Incoming};
use crate::remote::limits::{FRAME_QUEUE, LIST_FRAME_ENTRIES, MAX_LIST_PAGE};
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::{
    Bytes64, CopyRequest, ListEnd, ListQuery, MetadataQuery, ModeRequest, PackRequest, PathQuery, ReadQuery,
    RemoveQuery, UnpackQuery, WireEntry, WireLink, WireMetadata, WireWritten, WriteQuery,
};

pub(super) async fn read(session: &Session, query: ReadQuery) -> Answer {
    let mut options = OpenOptions::default().offset(query.offset);
    (options.length, options.max_size) = (query.length, query.max_size);
    let name = path(&query.path)?;
    let file = session.run(session.workspace.open(&name, options)).await?;
    let metadata = ascii::header(&WireMetadata::from(file.metadata()));
    let mut response = stream(Outgoing::reader(file));
    if let Some(metadata) = metadata {
        response.headers_mut().insert(METADATA, metadata);
    }
    Ok(response)
}

pub(super) async fn write(session: &Session, query: WriteQuery, request: Request<Incoming>) -> Answer {
    let mut options = WriteOptions::default();
    options.mode = query.mode.unwrap_or(options.mode);
    options.parents = query.parents.unwrap_or(options.parents);
    let name = path(&query.path)?;
    let content = content(request, query.length);
    let written = session.run(session.workspace.write(&name, content, options)).await?;
    json(&WireWritten::from(written))
}

/// What follows a request, which must be whole.
fn content(request: Request<Incoming>, length: Option<u64>) -> Content {
    let (parts, body) = request.into_parts();
    let body: BodyReader = reader(&parts.headers, body);
    match length {
        Some(length) => Content::sized_reader(body, length),
        None => Content::reader(body),
    }
}

pub(super) async fn remove(session: &Session, query: RemoveQuery) -> Answer {
    let name = path(&query.path)?;
    match query.all {
        true => session.run(session.workspace.remove_all(&name)).await?,
        false => session.run(session.workspace.remove(&name)).await?,
    }
    done()
}

pub(super) async fn metadata(session: &Session, query: MetadataQuery) -> Answer {
    let name = path(&query.path)?;
    let metadata = match query.follow {
        true => session.run(session.workspace.metadata(&name)).await?,
        false => session.run(session.workspace.symlink_metadata(&name)).await?,
    };
    json(&WireMetadata::from(metadata))
}

pub(super) async fn read_link(session: &Session, query: PathQuery) -> Answer {
    let target = session.run(session.workspace.read_link(&path(&query.path)?)).await?;
    json(&WireLink { target: Bytes64(target.as_bytes().to_vec()) })
}

pub(super) async fn read_dir(session: &Session, query: ListQuery) -> Answer {
    let limit = query.limit.map_or(MAX_LIST_PAGE, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut options = ListOptions::default().limit(limit.min(MAX_LIST_PAGE));
    if let Some(Bytes64(after)) = query.after {
        options = options.after(EntryName::new(after)?);
    }
    let page = session.run(session.workspace.read_dir(&path(&query.path)?, options)).await?;
    let (sender, receiver) = tokio::sync::mpsc::channel(FRAME_QUEUE);
    let sending = session.spawn(async move {
        let sender = FrameSender(sender);
        for entries in page.entries.chunks(LIST_FRAME_ENTRIES) {
            let entries: Vec<_> = entries.iter().map(WireEntry::from).collect();
            sender.json(ENTRIES, &entries).await;
        }
        sender.json(END, &ListEnd { more: page.more }).await;
    });
    Ok(stream(Outgoing::queue(receiver).holding(sending)))
}

pub(super) async fn rename(session: &Session, names: CopyRequest) -> Answer {
    session.run(session.workspace.rename(&path(&names.from)?, &path(&names.to)?)).await?;
    done()
}

pub(super) async fn copy(session: &Session, names: CopyRequest) -> Answer {
    let written = session.run(session.workspace.copy(&path(&names.from)?, &path(&names.to)?)).await?;
    json(&WireWritten::from(written))
}

pub(super) async fn create_dir_all(session: &Session, query: PathQuery) -> Answer {
    session.run(session.workspace.create_dir_all(&path(&query.path)?)).await?;
    done()
}

pub(super) async fn set_mode(session: &Session, request: ModeRequest) -> Answer {
    session.run(session.workspace.set_mode(&path(&request.path)?, request.mode)).await?;
    done()
}

pub(super) async fn put_archive(session: &Session, query: UnpackQuery, request: Request<Incoming>) -> Answer {
    let mut options = UnpackOptions::default();
    (options.max_bytes, options.max_entries) = (query.max_bytes, query.max_entries);
    options.mode_mask = query.mode_mask.unwrap_or(options.mode_mask);
    let dir = path(&query.path)?;
    let content = content(request, None);
    json(&session.run(session.workspace.put_archive(&dir, content, options)).await?)
}

pub(super) async fn get_archive(session: &Session, request: PackRequest) -> Answer {
    let mut options = ArchiveOptions::default();
    (options.exclude, options.max_bytes) = (request.exclude, request.max_bytes);
    let archive = session.run(session.workspace.get_archive(&path(&request.path)?, options)).await?;
    Ok(stream(Outgoing::reader(archive)))
}
