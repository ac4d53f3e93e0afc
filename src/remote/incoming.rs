//! Bodies as they arrive, read piece by piece and never taken for whole when they are not.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, ReadBuf};

use super::outgoing::{BodyEnd, END};
use crate::error::{BoxError, Error};

/// A body of a peer, whichever side that is.
pub(super) type Incoming = UnsyncBoxBody<Bytes, BoxError>;

/// Boxes a body of hyper or of another server.
pub(super) fn boxed<B>(body: B) -> Incoming
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// What a broken body means on this side.
pub(super) type Broken = Arc<dyn Fn(Option<BoxError>) -> Error + Send + Sync>;

/// Reads a body.
pub(super) struct BodyReader {
    body: Incoming,
    current: Bytes,
    received: u64,
    /// How many bytes the head announced.
    announced: Option<u64>,
    state: State,
    broken: Broken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The peer said that it is whole.
    Whole,
    /// It has ended without a word.
    Silent,
    /// An error was reported.
    Failed,
}

impl BodyReader {
    pub(super) fn new(body: Incoming, headers: &HeaderMap, broken: Broken) -> Self {
        let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        BodyReader { body, current: Bytes::new(), received: 0, announced, state: State::Open, broken }
    }

    /// Makes sure that a piece is at hand, unless the body has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.current.is_empty() && self.state == State::Open {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.received += data.len() as u64;
                        self.current = data;
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.take_end(trailers.get(END))?;
                    }
                },
                Some(Err(error)) => {
                    self.state = State::Failed;
                    return Poll::Ready(Err((self.broken)(Some(error))));
                }
                None if self.announced == Some(self.received) => self.state = State::Whole,
                None => self.state = State::Silent,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take_end(&mut self, end: Option<&HeaderValue>) -> Result<(), Error> {
        let Some(value) = end else { return Ok(()) };
        self.state = State::Failed;
        match serde_json::from_slice(value.as_bytes()) {
            Ok(BodyEnd { error: None }) => {
                self.state = State::Whole;
                Ok(())
            }
            Ok(BodyEnd { error: Some(error) }) => Err(error.into_error()),
            Err(error) => Err((self.broken)(Some(error.into()))),
        }
    }

    /// The next piece of at most `max` bytes; empty once the body has ended, whole or not.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, nothing is lost.
    pub(super) async fn piece(&mut self, max: usize) -> Result<Bytes, Error> {
        poll_fn(|cx| self.poll_fill(cx)).await?;
        Ok(self.current.split_to(self.current.len().min(max)))
    }

    /// Exactly `length` bytes.
    pub(super) async fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        while data.len() < length {
            let piece = self.piece(length - data.len()).await?;
            if piece.is_empty() {
                return Err(self.cut());
            }
            data.extend_from_slice(&piece);
        }
        Ok(data)
    }

    /// All of a body of at most `limit` bytes.
    pub(super) async fn all(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        loop {
            let piece = self.piece(usize::MAX).await?;
            if piece.is_empty() {
                return Ok(data);
            }
            if data.len() + piece.len() > limit {
                return Err(self.broken(format!("a document of more than {limit} bytes")));
            }
            data.extend_from_slice(&piece);
        }
    }

    /// A JSON document of at most `limit` bytes, to the end of the body.
    pub(super) async fn json<T: DeserializeOwned>(&mut self, limit: usize) -> Result<T, Error> {
        let data = self.all(limit).await?;
        serde_json::from_slice(&data).map_err(|error| (self.broken)(Some(error.into())))
    }

    /// The error of a peer that does not keep to the protocol.
    pub(super) fn broken(&mut self, what: String) -> Error {
        self.state = State::Failed;
        (self.broken)(Some(what.into()))
    }

    /// The error of a body that ended too early.
    pub(super) fn cut(&mut self) -> Error {
        self.state = State::Failed;
        (self.broken)(None)
    }
}

impl AsyncRead for BodyReader {
    /// At the end an error, unless the peer said that the body is whole.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_fill(cx)).map_err(io::Error::from)?;
        if self.current.is_empty() && self.state != State::Whole {
            return Poll::Ready(Err(self.cut().into()));
        }
        let count = self.current.len().min(buf.remaining());
        buf.put_slice(&self.current.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader").field("received", &self.received).finish_non_exhaustive()
    }
}
