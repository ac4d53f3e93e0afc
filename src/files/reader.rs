//! Bytes that come out of a file.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sync_wrapper::SyncWrapper;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::Metadata;
use crate::error::{Error, Result};

/// Which part of a file is read, and how large it may be.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Where to start, in bytes. Beyond the end nothing is read. Default: 0.
    pub offset: u64,
    /// How many bytes at most. Default: to the end.
    pub length: Option<u64>,
    /// The largest file that is accepted, in bytes. A larger one is
    /// [`Error::TooLarge`] at once, one that grows past it while it is read is so then.
    /// Default: any.
    pub max_size: Option<u64>,
}

impl OpenOptions {
    /// Start at `offset`.
    #[must_use]
    pub fn offset(self, offset: u64) -> Self {
        OpenOptions { offset, ..self }
    }

    /// Read `length` bytes at most.
    #[must_use]
    pub fn length(self, length: u64) -> Self {
        OpenOptions { length: Some(length), ..self }
    }

    /// Accept no file over `max_size` bytes.
    #[must_use]
    pub fn max_size(self, max_size: u64) -> Self {
        OpenOptions { max_size: Some(max_size), ..self }
    }
}

/// An open regular file, read from its start or the offset that was asked for.
///
/// An error in the middle of it is an [`io::Error`] that holds an [`Error`]. Dropping it releases
/// whatever it holds.
pub struct FileReader {
    name: String,
    metadata: Metadata,
    inner: SyncWrapper<Pin<Box<dyn AsyncRead + Send>>>,
    /// Bytes that may still come before the size limit is broken.
    allowance: Option<u64>,
    limit: u64,
}

impl FileReader {
    /// A reader over `inner`, which starts at the asked-for offset and ends by itself at the
    /// asked-for length.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] when the file is larger than the options accept.
    pub fn new(
        name: impl Into<String>,
        metadata: Metadata,
        options: OpenOptions,
        inner: impl AsyncRead + Send + 'static,
    ) -> Result<Self> {
        let name = name.into();
        let limit = options.max_size.unwrap_or(u64::MAX);
        if metadata.size > limit {
            return Err(Error::TooLarge { path: name, limit });
        }
        let allowance = options.max_size.map(|max| max.saturating_sub(options.offset));
        Ok(FileReader { name, metadata, inner: SyncWrapper::new(Box::pin(inner)), allowance, limit })
    }

    /// What the file was when it was opened.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Everything up to the end.
    ///
    /// # Errors
    ///
    /// What reading reports, as an [`Error`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the reader is gone with what it had read.
    pub async fn read_all(mut self) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        match self.read_to_end(&mut data).await {
            Ok(_) => Ok(data),
            Err(error) => Err(Error::from_io("read", &self.name, error)),
        }
    }
}

impl AsyncRead for FileReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(self.inner.get_mut().as_mut().poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        if let Some(allowance) = self.allowance {
            let Some(left) = allowance.checked_sub(read) else {
                buf.set_filled(before);
                let error = Error::TooLarge { path: self.name.clone(), limit: self.limit };
                return Poll::Ready(Err(error.into()));
            };
            self.allowance = Some(left);
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader")
            .field("name", &self.name)
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::files::FileKind;

    #[tokio::test]
    async fn a_file_that_grows_past_the_limit_is_too_large() {
        let metadata = Metadata::new(FileKind::File, 3, 0o644, SystemTime::UNIX_EPOCH);
        let options = OpenOptions::default().max_size(4);
        let reader = FileReader::new("a", metadata, options, &b"12345"[..]).unwrap();
        assert!(matches!(reader.read_all().await, Err(Error::TooLarge { limit: 4, .. })));
        let reader = FileReader::new("a", metadata, options, &b"1234"[..]).unwrap();
        assert_eq!(reader.read_all().await.unwrap(), b"1234");
    }

    #[test]
    fn a_file_over_the_limit_is_refused_at_once() {
        let metadata = Metadata::new(FileKind::File, 5, 0o644, SystemTime::UNIX_EPOCH);
        let options = OpenOptions::default().max_size(4);
        assert!(FileReader::new("a", metadata, options, &b""[..]).is_err());
    }
}
