//! The standard output of a started process, watched for silence.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, ReadBuf};

use super::clock::OutputClock;

/// A reader that tells the clock when something was read.
#[derive(Debug)]
pub(super) struct Watched<R> {
    inner: R,
    clock: Arc<OutputClock>,
    /// Another descriptor of what is read, to be asked whether something waits there. Held here
    /// alone, so that dropping the reader closes the pipe.
    _probe: Option<Arc<OwnedFd>>,
}

impl<R> Watched<R> {
    pub(super) fn new(inner: R, clock: Arc<OutputClock>, probe: Option<Arc<OwnedFd>>) -> Self {
        Watched { inner, clock, _probe: probe }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.clock.touch();
        Poll::Ready(Ok(()))
    }
}

/// Whether output waits there that its reader has not read.
pub(super) fn has_unread(probe: Option<&Weak<OwnedFd>>) -> bool {
    let Some(probe) = probe.and_then(Weak::upgrade) else { return false };
    let mut fds = [PollFd::new(&*probe, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::IN)
}
