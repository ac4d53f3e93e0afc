//! The server and its sessions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::session::{Session, lock};
use super::source::Source;
use crate::error::{Error, GoneReason, Result};
use crate::random::random_hex;
use crate::remote::frame::{self, HEAD};
use crate::remote::grant::{Authorize, Everybody, Grant};
use crate::remote::limits::{FRAME_QUEUE, GENERATION, MAX_SESSIONS, OLDEST_GENERATION, PING_INTERVAL};
use crate::remote::outgoing::Outgoing;
use crate::remote::windows::Windows;
use crate::remote::wire::{Hello, Welcome};

/// Serves workspaces over byte streams.
///
/// A client opens a *session* and gets a workspace from the [`Source`]. When the client closes the
/// session, drops it, dies or does not answer for 15 s, everything it started is ended, and the
/// workspace is let go of.
///
/// Clones are the same server.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
    windows: Windows,
    keep_alive: bool,
}

struct Inner {
    source: Arc<dyn Source>,
    authorize: Box<dyn Authorize>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// No session begins any more.
    stopping: CancellationToken,
    /// All sessions have ended, and connections are of no use.
    stopped: CancellationToken,
    /// Sessions that end by themselves.
    endings: TaskTracker,
}

impl Server {
    /// A server that lets whoever is at the other end of a stream do everything.
    pub fn new(source: impl Source) -> Self {
        Server::authorized(source, Everybody)
    }

    fn authorized(source: impl Source, authorize: impl Authorize + 'static) -> Self {
        let inner = Arc::new(Inner {
            source: Arc::new(source),
            authorize: Box::new(authorize),
            sessions: Mutex::default(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            endings: TaskTracker::new(),
        });
        Server { inner, windows: Windows::default(), keep_alive: true }
    }

    /// A server that lets in whoever has one of `tokens`.
    #[cfg(feature = "remote")]
    pub fn with_tokens(source: impl Source, tokens: crate::remote::Tokens) -> Self {
        Server::authorized(source, tokens)
    }

    /// Whether everybody is let in.
    #[cfg(feature = "remote")]
    pub(in crate::remote) fn is_open(&self) -> bool {
        self.inner.authorize.is_open()
    }

    /// Lets clients send `bytes` of each exchange ahead, 1 to 2 MiB. More is faster over long
    /// distances, and takes more memory when what was sent is not taken. Default: 256 KiB.
    #[must_use]
    pub fn window(self, bytes: u32) -> Self {
        Server { windows: Windows::new(bytes), ..self }
    }

    /// Sets whether a client that does not answer for 15 s is given up. Without that only the end of
    /// a stream tells that its client has died. Default: true.
    #[must_use]
    pub fn keep_alive(self, keep_alive: bool) -> Self {
        Server { keep_alive, ..self }
    }

    pub(super) fn windows(&self) -> Windows {
        self.windows
    }

    /// How often a client is asked whether it is there.
    pub(super) fn ping_interval(&self) -> Option<Duration> {
        self.keep_alive.then_some(PING_INTERVAL)
    }

    /// Ends every session, and returns once what clients started has ended and the workspaces are
    /// let go of. Connections are closed then, and no new session begins. A call in flight ends as
    /// [`Error::Gone`] on the client's side.
    pub async fn shutdown(&self) {
        self.inner.stopping.cancel();
        let sessions: Vec<_> = lock(&self.inner.sessions).drain().map(|(_, session)| session).collect();
        join_all(sessions.iter().map(|session| session.end())).await;
        self.inner.endings.close();
        self.inner.endings.wait().await;
        self.inner.stopped.cancel();
    }

    /// When connections are of no use any more.
    pub(in crate::remote) fn stopped(&self) -> &CancellationToken {
        &self.inner.stopped
    }

    pub(super) fn authorize(&self, token: Option<&str>) -> Option<Grant> {
        self.inner.authorize.authorize(token)
    }

    /// The session of this id, if whoever asks has opened it.
    pub(super) fn session(&self, id: &str, grant: &Grant) -> Result<Arc<Session>> {
        let session = lock(&self.inner.sessions).get(id).cloned();
        session.filter(|session| session.grant.identity == grant.identity).ok_or(Error::Closed)
    }

    /// Opens a session. It ends with the body, which its client keeps open.
    pub(super) async fn open_session(&self, hello: Hello, grant: Grant) -> Result<Outgoing> {
        if hello.generation < OLDEST_GENERATION {
            return Err(Error::InvalidArgument {
                reason: format!(
                    "the client speaks generation {} of the protocol, and the server no older one than \
                     {OLDEST_GENERATION}; use a newer client",
                    hello.generation
                ),
            });
        }
        self.check_room()?;
        let workspace = self.inner.source.open().await?;
        let (sender, receiver) = mpsc::channel(FRAME_QUEUE);
        let scopes = grant.scopes;
        let session = Session::new(workspace.clone(), self.inner.source.clone(), grant, sender.clone());
        let (id, session) = (random_hex(), Arc::new(session));
        // From here on, whatever happens, the session is ended.
        let guard = Guard {
            server: self.clone(),
            id: id.clone(),
            session: session.clone(),
            runtime: Handle::current(),
        };
        {
            // A shutdown that begins meanwhile either finds the session or is seen here.
            let mut sessions = lock(&self.inner.sessions);
            if !self.inner.stopping.is_cancelled() {
                sessions.insert(id.clone(), session);
            }
        }
        self.check_room()?;
        let mut capabilities = workspace.capabilities();
        capabilities.start &= scopes.exec;
        let env = workspace.env();
        let welcome = Welcome {
            generation: GENERATION,
            session: id,
            descriptor: workspace.descriptor(),
            details: workspace.details(),
            capabilities,
            env: match scopes.exec {
                true => env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                false => Vec::new(),
            },
        };
        // The queue is empty, so there is room.
        let _ = sender.try_send(frame::json(HEAD, &welcome));
        Ok(Outgoing::queue(receiver).holding(guard))
    }

    fn check_room(&self) -> Result<()> {
        if self.inner.stopping.is_cancelled() {
            return Err(Error::Gone {
                why: GoneReason::Other { detail: "its server is shutting down".to_owned() },
            });
        }
        if lock(&self.inner.sessions).len() > MAX_SESSIONS {
            let reason = format!("the server holds {MAX_SESSIONS} sessions already; close one");
            return Err(Error::InvalidArgument { reason });
        }
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("source", &self.inner.source).finish_non_exhaustive()
    }
}

/// Ends a session when its stream is of no use any more.
struct Guard {
    server: Server,
    id: String,
    session: Arc<Session>,
    runtime: Handle,
}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.server.inner.sessions).remove(&self.id);
        let session = self.session.clone();
        self.server.inner.endings.spawn_on(async move { session.end().await }, &self.runtime);
    }
}
