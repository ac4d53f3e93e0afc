//! Bytes that go in: the content of a file, an archive, or a command's standard input.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sync_wrapper::SyncWrapper;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes to send: in memory, or read as they are needed.
pub struct Content(Source);

enum Source {
    Bytes(Bytes),
    Reader { reader: SyncWrapper<Pin<Box<dyn AsyncRead + Send>>>, len: Option<u64> },
}

impl Content {
    /// No bytes.
    pub fn empty() -> Self {
        Content::from(Bytes::new())
    }

    /// What `reader` gives until its end, read only as fast as it is sent. A backend that must
    /// know the length first puts it into a temporary file on this machine.
    pub fn reader(reader: impl AsyncRead + Send + 'static) -> Self {
        Content(Source::Reader { reader: SyncWrapper::new(Box::pin(reader)), len: None })
    }

    /// What `reader` gives, which must be exactly `len` bytes: with fewer or more the operation
    /// fails, and a file is not replaced.
    pub fn sized_reader(reader: impl AsyncRead + Send + 'static, len: u64) -> Self {
        let reader = ExactReader { inner: Box::pin(reader), left: len };
        Content(Source::Reader { reader: SyncWrapper::new(Box::pin(reader)), len: Some(len) })
    }

    /// The number of bytes, when it is known before they are read.
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::Reader { len, .. } => *len,
        }
    }

    /// Whether it is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The bytes when they are in memory, otherwise the content unchanged.
    pub fn into_bytes(self) -> std::result::Result<Bytes, Content> {
        match self.0 {
            Source::Bytes(bytes) => Ok(bytes),
            reader => Err(Content(reader)),
        }
    }

    /// The bytes as a reader.
    pub fn into_reader(self) -> Pin<Box<dyn AsyncRead + Send>> {
        match self.0 {
            Source::Bytes(bytes) => Box::pin(std::io::Cursor::new(bytes)),
            Source::Reader { reader, .. } => reader.into_inner(),
        }
    }
}

/// A reader that fails unless it gives exactly as many bytes as were announced.
struct ExactReader {
    inner: Pin<Box<dyn AsyncRead + Send>>,
    left: u64,
}

impl AsyncRead for ExactReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(self.inner.as_mut().poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        let wrong = |what| Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
        if read == 0 && self.left > 0 && buf.remaining() > 0 {
            return wrong("the content is shorter than was announced");
        }
        let Some(left) = self.left.checked_sub(read) else {
            // A reader that fails must not have given anything.
            buf.set_filled(before);
            return wrong("the content is longer than was announced");
        };
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Content {
    /// Says how much there is, never what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            Some(len) => write!(f, "Content({len} bytes)"),
            None => f.write_str("Content(..)"),
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Content(Source::Bytes(bytes))
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Content(Source::Bytes(bytes.into()))
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content(Source::Bytes(text.into()))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Content(Source::Bytes(Bytes::copy_from_slice(bytes)))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::from(text.as_bytes())
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The permission bits of a new file, applied under no umask. An existing file keeps its own.
    /// Default: `0o644`.
    pub mode: u32,
    /// Whether missing parent directories are made, mode `0o755`. Default: yes.
    pub parents: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions { mode: 0o644, parents: true }
    }
}

impl WriteOptions {
    /// The permission bits of a new file.
    #[must_use]
    pub fn mode(self, mode: u32) -> Self {
        WriteOptions { mode, ..self }
    }

    /// Whether missing parent directories are made.
    #[must_use]
    pub fn parents(self, parents: bool) -> Self {
        WriteOptions { parents, ..self }
    }
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// How many bytes were written.
    pub bytes: u64,
    /// How they came to be there.
    pub method: WriteMethod,
}

impl Written {
    /// This many bytes by this method.
    pub fn new(bytes: u64, method: WriteMethod) -> Self {
        Written { bytes, method }
    }
}

/// How a file came by its new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteMethod {
    /// In one step: a reader saw the whole old or the whole new content.
    Atomic,
    /// Over the old content, because the file could not be replaced: a mount of a single file, or
    /// a workspace without [`Capabilities::atomic_write`](crate::Capabilities::atomic_write). A
    /// reader may have seen a part.
    InPlace,
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_sized_reader_must_give_what_was_announced() {
        for (len, fits) in [(2, false), (3, true), (4, false)] {
            let content = Content::sized_reader(&b"abc"[..], len);
            assert_eq!(content.len(), Some(len));
            let mut data = Vec::new();
            assert_eq!(content.into_reader().read_to_end(&mut data).await.is_ok(), fits, "{len}");
        }
    }
}
