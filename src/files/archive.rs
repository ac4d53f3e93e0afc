//! Whole trees as tar streams.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};
use sync_wrapper::SyncWrapper;
use tokio::io::{AsyncRead, ReadBuf};

/// Which part of a tree [`get_archive`](crate::Workspace::get_archive) returns.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ArchiveOptions {
    /// Glob patterns of names that are left out, with all below them: `target`, `**/*.o`. They
    /// are matched against names relative to the archived directory. Default: none.
    pub exclude: Vec<String>,
    /// The most bytes of file content, after which the archive ends with
    /// [`Error::TooLarge`](crate::Error::TooLarge). A hole counts as the zeros that it is read as.
    /// Default: any. From a container the tree goes through this machine's temporary directory,
    /// which is left a tenth of its space or 1 GiB, and the container is paused until it is
    /// there, so that a tree from somebody else should have a bound.
    pub max_bytes: Option<u64>,
}

impl ArchiveOptions {
    /// Leaves out what `pattern` matches.
    #[must_use]
    pub fn exclude(mut self, pattern: impl Into<String>) -> Self {
        self.exclude.push(pattern.into());
        self
    }

    /// At most `max_bytes` of file content.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }
}

/// What bounds [`put_archive`](crate::Workspace::put_archive).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UnpackOptions {
    /// The most bytes of file content; more is [`Error::TooLarge`](crate::Error::TooLarge).
    /// Default: any. To a container the tree goes through this machine's temporary directory,
    /// which is left a tenth of its space or 1 GiB.
    pub max_bytes: Option<u64>,
    /// The most entries; more is [`Error::TooLarge`](crate::Error::TooLarge). `None` is any, for
    /// archives of one's own: each entry takes memory, its name's length and more. Default:
    /// [`DEFAULT_MAX_ENTRIES`](Self::DEFAULT_MAX_ENTRIES).
    pub max_entries: Option<u64>,
    /// Which permission bits an entry may bring along; `0o777` leaves out set-user-id,
    /// set-group-id and sticky, as an archive from somebody else should. Default: all, `0o7777`.
    pub mode_mask: u32,
}

impl Default for UnpackOptions {
    fn default() -> Self {
        UnpackOptions { max_bytes: None, max_entries: Some(Self::DEFAULT_MAX_ENTRIES), mode_mask: 0o7777 }
    }
}

impl UnpackOptions {
    /// The default of [`max_entries`](Self::max_entries), ten times as many as large source trees
    /// have.
    pub const DEFAULT_MAX_ENTRIES: u64 = 1_000_000;

    /// Only these permission bits.
    #[must_use]
    pub fn mode_mask(self, mode_mask: u32) -> Self {
        UnpackOptions { mode_mask, ..self }
    }

    /// At most `max_bytes` of file content.
    #[must_use]
    pub fn max_bytes(self, max_bytes: u64) -> Self {
        UnpackOptions { max_bytes: Some(max_bytes), ..self }
    }

    /// At most `max_entries` entries.
    #[must_use]
    pub fn max_entries(self, max_entries: u64) -> Self {
        UnpackOptions { max_entries: Some(max_entries), ..self }
    }
}

/// What [`put_archive`](crate::Workspace::put_archive) wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArchiveReport {
    /// How many entries, directories and links included.
    pub entries: u64,
    /// How many bytes of file content.
    pub bytes: u64,
}

impl ArchiveReport {
    /// This many entries and bytes.
    pub fn new(entries: u64, bytes: u64) -> Self {
        ArchiveReport { entries, bytes }
    }
}

/// A tar stream. An error in the middle of it is an [`io::Error`] that holds an
/// [`Error`](crate::Error); without one, the stream that ended is whole.
pub struct ArchiveReader(SyncWrapper<Pin<Box<dyn AsyncRead + Send>>>);

impl ArchiveReader {
    /// The tar stream that `inner` gives.
    pub fn new(inner: impl AsyncRead + Send + 'static) -> Self {
        ArchiveReader(SyncWrapper::new(Box::pin(inner)))
    }
}

impl AsyncRead for ArchiveReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.get_mut().as_mut().poll_read(cx, buf)
    }
}

impl fmt::Debug for ArchiveReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArchiveReader(..)")
    }
}
