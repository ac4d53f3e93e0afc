//! Bodies as they are sent: request bodies of the client, response bodies of the server.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::ascii;
use super::error::WireError;
use super::limits::{FIRST_READ_BYTES, READ_BYTES};
use crate::error::{BoxError, Error};
use crate::files::Content;

/// The trailer that ends a streamed body: `{}`, or the error that ended it.
///
/// Without it a body is not whole. The end of an HTTP/2 stream alone does not say so, because a
/// reset without an error also reads as the end.
pub(super) const END: HeaderName = HeaderName::from_static("agentworkspace-end");

/// What [`END`] holds.
#[derive(Debug, Default, Serialize, serde::Deserialize)]
pub(super) struct BodyEnd {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<WireError>,
}

/// A body to send.
pub(super) struct Outgoing {
    /// What comes before the source.
    first: Bytes,
    source: Source,
    /// Breaks the body off, which resets its stream.
    abort: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// What lives as long as the body is sent.
    _held: Option<Box<dyn Send>>,
}

enum Source {
    End,
    Trailer,
    /// All of it, without a trailer.
    Whole(Bytes),
    /// All of it, and then the trailer.
    Bytes(Bytes),
    Reader(Reading),
    /// Frames of another task. Their content says when they are complete.
    Queue(mpsc::Receiver<Bytes>),
}

struct Reading {
    reader: Pin<Box<dyn AsyncRead + Send>>,
    buffer: BytesMut,
    size: usize,
    failure: Failure,
}

/// Where an error of a reader goes.
enum Failure {
    /// To the peer, as the trailer.
    Peer,
    /// To the caller on this side as well.
    Caller(Arc<Mutex<Option<io::Error>>>),
}

impl Outgoing {
    fn new(source: Source) -> Self {
        Outgoing { first: Bytes::new(), source, abort: None, _held: None }
    }

    pub(super) fn empty() -> Self {
        Outgoing::new(Source::End)
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        // Only a map with keys that are no strings cannot be written, and there is none.
        Outgoing::whole(serde_json::to_vec(value).unwrap_or_default())
    }

    /// A document that shows itself when a part of it is missing.
    pub(super) fn whole(document: Vec<u8>) -> Self {
        Outgoing::new(Source::Whole(document.into()))
    }

    /// What `reader` gives; its error is told to the peer.
    pub(super) fn reader(reader: impl AsyncRead + Send + 'static) -> Self {
        Outgoing::read(Box::pin(reader), Failure::Peer)
    }

    /// The content, and where its error will be if it has one.
    pub(super) fn content(content: Content) -> (Self, Arc<Mutex<Option<io::Error>>>) {
        let failed = Arc::new(Mutex::new(None));
        let body = match content.into_bytes() {
            // An empty frame in the middle of a body is one of few that the peer takes.
            Ok(bytes) if bytes.is_empty() => Outgoing::new(Source::Trailer),
            Ok(bytes) => Outgoing::new(Source::Bytes(bytes)),
            Err(content) => Outgoing::read(content.into_reader(), Failure::Caller(failed.clone())),
        };
        (body, failed)
    }

    fn read(reader: Pin<Box<dyn AsyncRead + Send>>, failure: Failure) -> Self {
        let reading = Reading { reader, buffer: BytesMut::new(), size: FIRST_READ_BYTES, failure };
        Outgoing::new(Source::Reader(reading))
    }

    pub(super) fn queue(receiver: mpsc::Receiver<Bytes>) -> Self {
        Outgoing::new(Source::Queue(receiver))
    }

    /// Sends the length of `head`, 4 bytes big endian, and `head` before everything else.
    pub(super) fn after_head(mut self, head: Vec<u8>) -> Self {
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
        let mut first = BytesMut::from(&length.to_be_bytes()[..]);
        first.extend_from_slice(&head);
        self.first = first.freeze();
        self
    }

    /// Keeps `held` until the body is sent or nobody wants it any more.
    pub(super) fn holding(mut self, held: impl Send + 'static) -> Self {
        self._held = Some(Box::new(held));
        self
    }

    /// Breaks the body off when `token` is cancelled.
    pub(super) fn until(mut self, token: CancellationToken) -> Self {
        self.abort = Some(Box::pin(token.cancelled_owned()));
        self
    }
}

/// The trailer of a body that ended by `error`, or well.
fn trailer(error: Option<&Error>) -> HeaderMap {
    let end = BodyEnd { error: error.map(WireError::from) };
    let value = ascii::header(&end).unwrap_or_else(|| {
        let large = Error::InvalidArgument { reason: "it failed with an error too large to tell".to_owned() };
        let end = BodyEnd { error: Some(WireError::from(&large)) };
        ascii::header(&end).unwrap_or(HeaderValue::from_static("an error"))
    });
    HeaderMap::from_iter([(END, value)])
}

impl Reading {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        self.buffer.reserve(self.size);
        ready!(tokio_util::io::poll_read_buf(self.reader.as_mut(), cx, &mut self.buffer))?;
        self.size = READ_BYTES;
        Poll::Ready(Ok(self.buffer.split().freeze()))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(abort) = &mut self.abort
            && abort.as_mut().poll(cx).is_ready()
        {
            self.source = Source::End;
            self.abort = None;
            return Poll::Ready(Some(Err("the caller has given up".into())));
        }
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        let (next, frame) = match &mut self.source {
            Source::End => return Poll::Ready(None),
            Source::Trailer => (Source::End, Frame::trailers(trailer(None))),
            Source::Whole(bytes) => (Source::End, Frame::data(std::mem::take(bytes))),
            Source::Bytes(bytes) => (Source::Trailer, Frame::data(std::mem::take(bytes))),
            Source::Queue(receiver) => {
                return Poll::Ready(ready!(receiver.poll_recv(cx)).map(|bytes| Ok(Frame::data(bytes))));
            }
            Source::Reader(reading) => match ready!(reading.poll(cx)) {
                Ok(bytes) if bytes.is_empty() => (Source::End, Frame::trailers(trailer(None))),
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(error) => {
                    let told = match &reading.failure {
                        Failure::Peer => Error::from_io("read", "the content", error),
                        Failure::Caller(failed) => {
                            let told = std::io::Error::new(error.kind(), error.to_string());
                            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            Error::from_io("read", "the content", told)
                        }
                    };
                    (Source::End, Frame::trailers(trailer(Some(&told))))
                }
            },
        };
        self.source = next;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && matches!(self.source, Source::End)
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing(..)")
    }
}
