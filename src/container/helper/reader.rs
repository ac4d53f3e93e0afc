//! What a helper sends piece by piece.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, ReadBuf};

use super::explain::explain;
use crate::container::shared::Shared;
use crate::error::Error;

/// A reader whose failure the container explains, and which fails when that is lost or paused.
pub(super) struct ExplainedReader<R> {
    shared: Arc<Shared>,
    inner: R,
    /// Waits for the loss, from the first time on that nothing is there to be read.
    lost: Option<BoxFuture<'static, Error>>,
    /// Finds out why it failed.
    explaining: Option<BoxFuture<'static, Error>>,
}

impl<R> ExplainedReader<R> {
    pub(super) fn new(shared: Arc<Shared>, inner: R) -> Self {
        ExplainedReader { shared, inner, lost: None, explaining: None }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ExplainedReader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.explaining.is_none() {
            match Pin::new(&mut this.inner).poll_read(cx, buffer) {
                Poll::Ready(Ok(())) => {
                    this.lost = None;
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) => {
                    let (error, shared) = (Error::from_io("read", "the content", error), this.shared.clone());
                    this.explaining = Some(Box::pin(async move { explain(&shared, error).await }));
                }
                Poll::Pending => {
                    let shared = this.shared.clone();
                    let lost =
                        this.lost.get_or_insert_with(|| Box::pin(async move { shared.monitor.lost().await }));
                    let error = ready!(lost.as_mut().poll(cx));
                    this.lost = None;
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
        let Some(explaining) = &mut this.explaining else { return Poll::Pending };
        let error = ready!(explaining.as_mut().poll(cx));
        this.explaining = None;
        Poll::Ready(Err(error.into()))
    }
}
