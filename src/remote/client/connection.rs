//! The connection of one workspace, and single exchanges over it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyper::client::conn::http2::SendRequest;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::error::{BoxError, Error, GoneReason, Result};
use crate::files::Content;
use crate::remote::error::WireError;
use crate::remote::incoming::{BodyReader, Broken, boxed};
use crate::remote::limits::{MAX_JSON_BYTES, MAX_STREAMS, RESERVED_STREAMS};
use crate::remote::outgoing::Outgoing;
use crate::remote::server::SESSION;

pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    token: Option<HeaderValue>,
    /// What comes before every path.
    base: String,
    session: OnceLock<HeaderValue>,
    /// Whether the caller has closed the workspace.
    closed: AtomicBool,
    pub(super) life: Arc<Life>,
    /// Exchanges that may last.
    lasting: Arc<Semaphore>,
    next_call: AtomicU64,
    /// What passes the pipes of processes on.
    pub(super) tasks: TaskTracker,
}

/// Whether a connection is of use.
#[derive(Debug)]
pub(super) struct Life {
    /// Ends the connection.
    pub(super) shutdown: CancellationToken,
    /// Why it is of no use any more.
    lost: Mutex<Option<String>>,
}

impl Life {
    pub(super) fn new(shutdown: CancellationToken) -> Self {
        Life { shutdown, lost: Mutex::new(None) }
    }

    /// Gives the connection up for this reason, unless there is one already.
    pub(super) fn lose(&self, why: impl Into<String>) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.into());
        self.shutdown.cancel();
    }

    fn gone(&self) -> Error {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let detail = lost.clone().unwrap_or_else(|| "it was ended".to_owned());
        Error::Gone { why: GoneReason::Disconnected { detail } }
    }
}

/// A request that is not yet sent.
#[derive(Debug)]
pub(super) struct Call {
    method: Method,
    path: String,
    body: Outgoing,
    /// Breaks the body off when this call is dropped.
    abort: Option<DropGuard>,
    /// Where the error of the caller's own content will be, and what the content is for.
    failed: Option<(Failed, String)>,
}

type Failed = Arc<Mutex<Option<io::Error>>>;

/// The head of a response and its body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) headers: HeaderMap,
    pub(super) body: BodyReader,
    /// Breaks the request's body off when the reply is dropped.
    pub(super) abort: Option<DropGuard>,
    failed: Option<(Failed, String)>,
}

impl Call {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Call { method, path: path.into(), body: Outgoing::empty(), abort: None, failed: None }
    }

    /// A request for what `query` says.
    pub(super) fn query(method: Method, path: &str, query: &impl Serialize) -> Result<Self> {
        let query = serde_urlencoded::to_string(query)
            .map_err(|error| Error::InvalidArgument { reason: error.to_string() })?;
        Ok(Call::new(method, format!("{path}?{query}")))
    }

    pub(super) fn json(path: &str, value: &impl Serialize) -> Self {
        Call { body: Outgoing::json(value), ..Call::new(Method::POST, path) }
    }

    /// Sends `content`, which is for `purpose`.
    pub(super) fn content(self, content: Content, purpose: impl Into<String>) -> Self {
        let (body, failed) = Outgoing::content(content);
        Call { failed: Some((failed, purpose.into())), ..self }.body(body)
    }

    pub(super) fn body(self, body: Outgoing) -> Self {
        let token = CancellationToken::new();
        Call { body: body.until(token.clone()), abort: Some(token.drop_guard()), ..self }
    }

    /// Sends `head` before the content.
    pub(super) fn head(self, head: Vec<u8>) -> Self {
        Call { body: self.body.after_head(head), ..self }
    }
}

impl Connection {
    pub(super) fn new(
        sender: SendRequest<Outgoing>,
        token: Option<HeaderValue>,
        base: String,
        life: Arc<Life>,
    ) -> Self {
        Connection {
            sender,
            token,
            base,
            session: OnceLock::new(),
            closed: AtomicBool::new(false),
            life,
            lasting: Arc::new(Semaphore::new((MAX_STREAMS - RESERVED_STREAMS) as usize)),
            next_call: AtomicU64::new(1),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn set_session(&self, id: HeaderValue) {
        let _ = self.session.set(id);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
        // Whoever waits for room waits for nothing.
        self.lasting.close();
    }

    pub(super) fn next_call(&self) -> u64 {
        self.next_call.fetch_add(1, Ordering::Relaxed)
    }

    /// Room for `count` exchanges that may last.
    pub(super) async fn lasting(&self, count: u32) -> Result<OwnedSemaphorePermit> {
        self.check()?;
        self.lasting.clone().acquire_many_owned(count).await.map_err(|_| Error::Closed)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// What an exchange that broke off means: the whole connection is of no use, because a peer
    /// that keeps to the protocol ends none without a word.
    pub(super) fn broken(&self, error: Option<BoxError>) -> Error {
        self.life.lose(match error {
            Some(error) => describe(&*error),
            None => "an answer ended too early".to_owned(),
        });
        self.gone()
    }

    pub(super) fn gone(&self) -> Error {
        if self.is_closed() {
            return Error::Closed;
        }
        self.life.gone()
    }

    /// An error that the server told. That the session is closed is news unless it was closed
    /// here.
    pub(super) fn told(&self, error: Error) -> Error {
        match error {
            Error::Closed if !self.is_closed() => {
                self.life.lose("the server ended the session");
                self.gone()
            }
            error => error,
        }
    }

    /// What a broken body means to this call.
    fn broken_in(self: &Arc<Self>, failed: Option<(Failed, String)>) -> Broken {
        let connection = self.clone();
        Arc::new(move |error| content_error(failed.as_ref()).unwrap_or_else(|| connection.broken(error)))
    }

    /// Sends a request and gives the response, unless it is an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or later the reply, resets the exchange.
    pub(super) async fn send(self: &Arc<Self>, call: Call) -> Result<Reply> {
        self.check()?;
        self.send_even_closed(call).await
    }

    pub(super) async fn send_even_closed(self: &Arc<Self>, call: Call) -> Result<Reply> {
        let Call { method, path, body, abort, failed } = call;
        let mut builder =
            Request::builder().method(method).uri(format!("http://workspace{}{path}", self.base));
        if let Some(token) = &self.token {
            builder = builder.header(AUTHORIZATION, token);
        }
        if let Some(session) = self.session.get() {
            builder = builder.header(SESSION, session);
        }
        let request =
            builder.body(body).map_err(|error| Error::InvalidArgument { reason: error.to_string() })?;
        if self.life.shutdown.is_cancelled() {
            return Err(self.gone());
        }
        let broken = self.broken_in(failed.clone());
        let mut sender = self.sender.clone();
        let exchange = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        let response = exchange.await.map_err(|error| broken(Some(error.into())))?;
        let (parts, body) = response.into_parts();
        let mut body = BodyReader::new(boxed(body), &parts.headers, broken);
        if parts.status == StatusCode::OK {
            return Ok(Reply { headers: parts.headers, body, abort, failed });
        }
        let error: WireError = body.json(MAX_JSON_BYTES).await?;
        if parts.status == StatusCode::UNAUTHORIZED && self.session.get().is_some() {
            let detail = "its server does not accept the token any more".to_owned();
            return Err(Error::Gone { why: GoneReason::Other { detail } });
        }
        // The server was told of it and has taken back what it had begun.
        Err(content_error(failed.as_ref()).unwrap_or_else(|| self.told(error.into_error())))
    }

    /// Asks the server to end the session, and waits until it has.
    pub(super) async fn close_session(self: &Arc<Self>) -> Result<()> {
        let asked = async {
            let reply = self.send_even_closed(Call::new(Method::POST, "/v1/close")).await?;
            reply.json::<serde_json::Value>().await
        };
        match asked.await {
            Ok(_) => Ok(()),
            // The connection is lost, so that nothing says whether everything has ended.
            Err(Error::Closed) => Err(self.life.gone()),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and gives the JSON of its response.
    pub(super) async fn ask<T: DeserializeOwned>(self: &Arc<Self>, call: Call) -> Result<T> {
        self.send(call).await?.json().await
    }
}

impl Reply {
    /// What gives the error of the caller's own content, when that is why the call failed.
    pub(super) fn content_error(&self) -> impl Fn() -> Option<Error> + Send + Sync + use<> {
        let failed = self.failed.clone();
        move || content_error(failed.as_ref())
    }

    pub(super) async fn json<T: DeserializeOwned>(mut self) -> Result<T> {
        self.body.json(MAX_JSON_BYTES).await
    }
}

/// The error of the caller's own content, when that is why a call failed.
fn content_error(failed: Option<&(Failed, String)>) -> Option<Error> {
    let (failed, purpose) = failed?;
    let source = failed.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    if source.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        return Some(Error::from_io("read", purpose, source));
    }
    Some(Error::Io { operation: "read the content for".into(), path: purpose.clone(), source })
}

/// An error with its sources.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
