//! Reading: content, metadata and link targets.

use std::io::{self, Seek as _, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::root::{self, Root};
use crate::error::{Error, Result};
use crate::files::{FileKind, FileReader, LinkTarget, Metadata, OpenOptions};
use crate::path::WorkspacePath;

/// Opens a regular file without ever waiting for it.
pub(super) fn open_regular(root: &Root, path: &WorkspacePath) -> Result<(std::fs::File, Metadata)> {
    let name = path.as_str();
    let fail = |e| root::error("open", name, e);
    // Looked at before it is opened, because opening a socket fails and opening a device may do
    // something; and again after, because it may have been replaced.
    let stat = rustix::fs::fstat(root.handle(name).map_err(fail)?).map_err(|e| fail(e.into()))?;
    if let Some(refused) = root::not_a_file(name, FileKind::from_st_mode(stat.st_mode)) {
        return Err(refused);
    }
    let (file, stat) = root::regular(name, root.open_nonblocking(name).map_err(fail)?)?;
    Ok((file, root::metadata(&stat)))
}

/// Opens the asked-for part of a regular file.
pub(super) fn open(
    root: &Root,
    path: &WorkspacePath,
    options: OpenOptions,
) -> Result<(std::fs::File, Metadata)> {
    let (mut file, metadata) = open_regular(root, path)?;
    // An offset that no file can reach is the end, and the end can be asked for.
    let offset = options.offset.min(i64::MAX.unsigned_abs());
    if offset > 0 {
        file.seek(SeekFrom::Start(offset)).map_err(|e| root::error("seek in", path.as_str(), e))?;
    }
    Ok((file, metadata))
}

/// The opened part as a reader that fails once the workspace closes.
pub(super) fn reader(
    path: &WorkspacePath,
    (file, metadata): (std::fs::File, Metadata),
    options: OpenOptions,
    closed: &CancellationToken,
) -> Result<FileReader> {
    let length = options.length.unwrap_or(u64::MAX);
    let file = tokio::fs::File::from_std(file).take(length);
    FileReader::new(path.as_str(), metadata, options, UntilClosed::new(file, closed))
}

/// What a name stands for, links followed.
pub(super) fn metadata(root: &Root, path: &WorkspacePath) -> Result<Metadata> {
    let stat = || Ok(rustix::fs::fstat(root.handle(path.as_str())?)?);
    Ok(root::metadata(&stat().map_err(|e| root::error("look at", path.as_str(), e))?))
}

/// What a name stands for, a link in the last component not followed.
pub(super) fn symlink_metadata(root: &Root, path: &WorkspacePath) -> Result<Metadata> {
    if path.is_root() {
        return metadata(root, path);
    }
    let place = root.place("look at", path)?;
    let stat = root::stat_at(&place.dir, &place.name);
    Ok(root::metadata(&stat.map_err(|e| root::error("look at", path.as_str(), e))?))
}

/// The raw target of a link.
pub(super) fn read_link(root: &Root, path: &WorkspacePath) -> Result<LinkTarget> {
    if path.is_root() {
        return Err(Error::NotALink { path: path.to_string() });
    }
    let place = root.place("read the link", path)?;
    match rustix::fs::readlinkat(&place.dir, &place.name, Vec::new()) {
        Ok(target) => Ok(LinkTarget::new(target.into_bytes())),
        Err(rustix::io::Errno::INVAL) => Err(Error::NotALink { path: path.to_string() }),
        Err(errno) => Err(root::error("read the link", path.as_str(), errno.into())),
    }
}

/// A reader that fails with [`Error::Closed`] once the workspace is closed.
pub(super) struct UntilClosed<R> {
    inner: R,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<R> UntilClosed<R> {
    pub(super) fn new(inner: R, closed: &CancellationToken) -> Self {
        UntilClosed { inner, closed: Box::pin(closed.clone().cancelled_owned()) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilClosed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Error::Closed.into()));
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}
