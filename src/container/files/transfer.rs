//! Archives to and from the engine, bridged to code that reads and writes them synchronously.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::pin::pin;
use std::time::Duration;

use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::{Buf as _, Bytes};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;

use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::shared::Shared;
use crate::error::{Error, Result};

/// How many chunks wait between the two sides.
const CHUNKS: usize = 4;

const CHUNK: usize = 64 * 1024;

/// The slowest transfer, in bytes a second, that is not taken for a hang.
const SLOWEST: u64 = 1 << 20;

/// How long a transfer of `len` bytes may take.
pub(super) fn bound(len: u64) -> Duration {
    SLOW_CALL_TIMEOUT + Duration::from_secs(len / SLOWEST)
}

/// The archive of an absolute path. The engine holds the container's lock until it is read or
/// dropped.
pub(super) fn download(
    shared: &Shared,
    path: &str,
) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static {
    let engine = shared.engine.clone();
    let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
    let chunks = engine.docker().download_from_container(&shared.id, Some(options)).boxed();
    chunks.map(move |chunk| chunk.map_err(|error| engine.error("read from the container", error))).boxed()
}

/// Unpacks an archive in the directory `dir`.
pub(super) async fn upload(
    shared: &Shared,
    dir: &str,
    len: u64,
    archive: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<()> {
    let options =
        UploadToContainerOptionsBuilder::default().path(dir).no_overwrite_dir_non_dir("true").build();
    let body = bollard::body_try_stream(archive);
    let docker = shared.engine.docker();
    let uploading = docker.upload_to_container(&shared.id, Some(options), body);
    shared.engine.call("write to the container", bound(len), uploading).await
}

/// Lets `read` read `chunks` on a thread that may block, and returns what it made of them. An error
/// of the chunks comes before what `read` says about it.
pub(super) async fn consume<T: Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes>>,
    read: impl FnOnce(&mut ChunkReader) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let mut reader = ChunkReader { receiver, chunk: Bytes::new(), ended: false };
    let task = tokio::task::spawn_blocking(move || read(&mut reader));
    let mut chunks = pin!(chunks);
    let mut failed = None;
    loop {
        let next = match chunks.next().await {
            Some(Ok(chunk)) if chunk.is_empty() => continue,
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => {
                failed = Some(error);
                break;
            }
            // An empty chunk is the end; without one the reader takes it for an error.
            None => Bytes::new(),
        };
        let last = next.is_empty();
        if sender.send(next).await.is_err() || last {
            break;
        }
    }
    drop(sender);
    let result = task.await.unwrap_or_else(|error| {
        Err(Error::Io {
            operation: "read".into(),
            path: "an archive".to_owned(),
            source: io::Error::other(error),
        })
    });
    match (result, failed) {
        (Err(_), Some(error)) => Err(error),
        (result, _) => result,
    }
}

/// The reading side of [`consume`].
pub(super) struct ChunkReader {
    receiver: mpsc::Receiver<Bytes>,
    chunk: Bytes,
    ended: bool,
}

impl Read for ChunkReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(chunk) => {
                    self.ended = chunk.is_empty();
                    self.chunk = chunk;
                }
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let read = buf.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut buf[..read]);
        Ok(read)
    }
}

/// What `write` writes on a thread that may block, as it is wanted. The thread ends soon after the
/// stream is dropped.
pub(super) fn produce(
    write: impl FnOnce(&mut ChunkWriter) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    tokio::task::spawn_blocking(move || {
        let mut writer = ChunkWriter { sender, chunk: Vec::with_capacity(CHUNK) };
        let end = match write(&mut writer).and_then(|()| writer.flush()) {
            Ok(()) => Ok(Bytes::new()),
            Err(error) => Err(error),
        };
        drop(writer.sender.blocking_send(end));
    });
    stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Ok(chunk)) if chunk.is_empty() => None,
            Some(Ok(chunk)) => Some((Ok(chunk), Some(receiver))),
            Some(Err(error)) => Some((Err(error), None)),
            // The writing thread died.
            None => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
        }
    })
}

/// The writing side of [`produce`].
pub(super) struct ChunkWriter {
    sender: mpsc::Sender<io::Result<Bytes>>,
    chunk: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(buf);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        self.sender.blocking_send(Ok(chunk.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// The first bytes of an archive: enough for the header of its first entry. Dropping the rest
/// releases the container's lock.
pub(super) async fn first_bytes(shared: &Shared, path: &str) -> Result<VecDeque<u8>> {
    const ENOUGH: usize = 32 * 1024;
    let mut chunks = download(shared, path);
    let mut head = VecDeque::new();
    let reading = async {
        while head.len() < ENOUGH {
            match chunks.next().await.transpose()? {
                Some(chunk) => head.extend(chunk),
                None => break,
            }
        }
        Ok(())
    };
    match tokio::time::timeout(SLOW_CALL_TIMEOUT, reading).await {
        Ok(done) => done.map(|()| head),
        Err(_) => Err(Error::Timeout {
            operation: "reading from the container".to_owned(),
            after: SLOW_CALL_TIMEOUT,
        }),
    }
}
