//! A stream that gives and takes few bytes at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes come at once, over and over: mostly one, so that what belongs together is torn
/// at every place, and now and then many, so that it does not take for ever.
const PIECES: [usize; 12] = [1, 1, 1, 1, 2, 1, 3, 1, 5, 1, 8, 1024];

/// Passes a stream on in small pieces.
#[derive(Debug)]
pub(crate) struct Trickle<S> {
    inner: S,
    reads: usize,
    writes: usize,
}

impl<S> Trickle<S> {
    pub(crate) fn new(inner: S) -> Self {
        Trickle { inner, reads: 0, writes: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Trickle<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [0; 1024];
        let count = buf.remaining().min(PIECES[self.reads % PIECES.len()]);
        let mut piece = ReadBuf::new(&mut piece[..count]);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut piece))?;
        buf.put_slice(piece.filled());
        self.reads += 1;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Trickle<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = buf.len().min(PIECES[self.writes % PIECES.len()]);
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &buf[..count]))?;
        self.writes += 1;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
