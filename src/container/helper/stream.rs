//! The attached stream of a container as bytes: standard input and output, without the frames in
//! which the engine wraps output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bytes::{Buf as _, Bytes};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of what a helper complains is kept.
const MAX_COMPLAINT: usize = 4096;

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, BollardError>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// A byte stream to a helper.
pub(crate) struct HelperStream {
    output: Output,
    /// What of the last frame is not read.
    rest: Bytes,
    input: Input,
    /// What came on standard error.
    complaint: Complaint,
}

/// What a helper wrote to standard error, which it does only before it gives up; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Complaint {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let room = MAX_COMPLAINT.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }

    /// The first line.
    pub(super) fn text(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        text.lines().next().map(|line| line.escape_debug().to_string())
    }
}

impl HelperStream {
    pub(super) fn new(output: Output, input: Input) -> Self {
        HelperStream { output, rest: Bytes::new(), input, complaint: Complaint::default() }
    }

    pub(super) fn complaint(&self) -> Complaint {
        self.complaint.clone()
    }
}

impl AsyncRead for HelperStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            match ready!(this.output.as_mut().poll_next(cx)) {
                Some(Ok(LogOutput::StdErr { message })) => this.complaint.add(&message),
                Some(Ok(frame)) => this.rest = frame.into_bytes(),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = this.rest.len().min(buffer.remaining());
        buffer.put_slice(&this.rest[..count]);
        this.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HelperStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.input.as_mut().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.input.as_mut().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.input.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.as_mut().poll_shutdown(cx)
    }
}
