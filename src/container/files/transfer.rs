//! Archives to and from the engine, bridged to code that reads and writes them synchronously.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::{Buf as _, Bytes};
use futures::{Stream, StreamExt as _, stream};
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio_util::io::StreamReader;

use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::shared::Shared;
use crate::error::{Error, Result};

/// How many chunks wait between the two sides.
const CHUNKS: usize = 4;

const CHUNK: usize = 64 * 1024;

/// How long a transfer may go without a byte before it is taken for stuck. One that moves has no
/// bound, however slow it is.
const STALL: Duration = Duration::from_secs(60);

/// The archive of an absolute path. The engine holds the container's lock until it is read or
/// dropped.
pub(super) fn download(
    shared: &Shared,
    path: &str,
) -> impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static {
    let engine = shared.engine.clone();
    let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
    let chunks = engine.docker().download_from_container(&shared.id, Some(options)).boxed();
    let chunks =
        chunks.map(move |chunk| chunk.map_err(|error| engine.error("read from the container", error)));
    until_stuck(chunks.boxed()).boxed()
}

/// The chunks up to the first that does not come in time, which is [`Error::Timeout`].
fn until_stuck(
    chunks: impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
    stream::unfold(Some(chunks), |chunks| async move {
        let mut chunks = chunks?;
        match tokio::time::timeout(STALL, chunks.next()).await {
            Ok(chunk) => chunk.map(|chunk| (chunk, Some(chunks))),
            Err(_) => Some((Err(stuck("to send the next bytes")), None)),
        }
    })
}

fn stuck(what: &str) -> Error {
    Error::Timeout { operation: format!("waiting for the engine {what}"), after: STALL }
}

/// Unpacks an archive in the directory `dir`.
pub(super) async fn upload(
    shared: &Shared,
    dir: &str,
    archive: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<()> {
    let options =
        UploadToContainerOptionsBuilder::default().path(dir).no_overwrite_dir_non_dir("true").build();
    let (sender, taken) = watch::channel(());
    let archive = archive.inspect(move |_| {
        sender.send_replace(());
    });
    let body = bollard::body_try_stream(archive);
    let mut uploading = pin!(shared.engine.docker().upload_to_container(&shared.id, Some(options), body));
    tokio::select! {
        biased;
        done = &mut uploading => {
            return done.map_err(|error| shared.engine.error("write to the container", error));
        }
        all = all_taken(taken) => all?,
    }
    // The engine still unpacks the end of it.
    shared.engine.call("write to the container", SLOW_CALL_TIMEOUT, uploading).await
}

/// Waits until nothing more is sent; [`Error::Timeout`] when nothing was for too long.
async fn all_taken(mut taken: watch::Receiver<()>) -> Result<()> {
    loop {
        match tokio::time::timeout(STALL, taken.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(stuck("to take the next bytes")),
        }
    }
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
    while head.len() < ENOUGH {
        match chunks.next().await.transpose()? {
            Some(chunk) => head.extend(chunk),
            None => break,
        }
    }
    Ok(head)
}

/// What `chunks` give for as long as the workspace is open: what was spooled would outlive it.
pub(super) fn while_open(
    shared: Arc<Shared>,
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> impl AsyncRead + Send + 'static {
    let chunks = chunks.map(move |chunk| {
        shared.monitor.check_open()?;
        chunk
    });
    StreamReader::new(Box::pin(chunks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_transfer_that_moves_goes_on_and_a_stuck_one_ends() {
        let slow = stream::iter(0..10).then(|_| async {
            tokio::time::sleep(STALL - Duration::from_secs(1)).await;
            Ok(Bytes::from_static(b"x"))
        });
        let chunks = until_stuck(slow.chain(stream::pending()).boxed()).collect::<Vec<_>>().await;
        assert_eq!(chunks.len(), 11);
        assert!(chunks[..10].iter().all(Result::is_ok));
        assert!(matches!(chunks[10], Err(Error::Timeout { after: STALL, .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_moves_goes_on_and_a_stuck_one_ends() {
        let (sender, taken) = watch::channel(());
        let sending = async move {
            for _ in 0..10 {
                tokio::time::sleep(STALL - Duration::from_secs(1)).await;
                sender.send_replace(());
            }
            sender
        };
        let (sender, all) = tokio::join!(sending, all_taken(taken.clone()));
        assert!(matches!(all, Err(Error::Timeout { after: STALL, .. })), "{all:?}");
        drop(sender);
        all_taken(taken).await.unwrap();
    }
}
