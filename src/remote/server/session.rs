//! One session: a workspace, and what its client runs in it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::process::Entry;
use super::source::Source;
use crate::error::{Error, Result};
use crate::remote::grant::Grant;
use crate::remote::limits::LAST_FRAMES;
use crate::workspace::Workspace;

pub(super) struct Session {
    pub(super) workspace: Arc<dyn Workspace>,
    source: Arc<dyn Source>,
    pub(super) grant: Grant,
    /// Once set, every new request is refused.
    closed: AtomicBool,
    /// Ends what the end of the workspace did not end, since others use it too.
    ended: CancellationToken,
    /// Whether everything is released, held while somebody releases it.
    released: AsyncMutex<bool>,
    tasks: TaskTracker,
    /// What a client cancels by its own number.
    calls: Mutex<HashMap<u64, CancellationToken>>,
    processes: Mutex<HashMap<u64, Arc<Entry>>>,
    next: AtomicU64,
    /// The stream that tells the client when the session ends.
    stream: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Session {
    pub(super) fn new(
        workspace: Arc<dyn Workspace>,
        source: Arc<dyn Source>,
        grant: Grant,
        stream: mpsc::Sender<Bytes>,
    ) -> Self {
        Session {
            workspace,
            source,
            grant,
            closed: AtomicBool::new(false),
            ended: CancellationToken::new(),
            released: AsyncMutex::new(false),
            tasks: TaskTracker::new(),
            calls: Mutex::default(),
            processes: Mutex::default(),
            next: AtomicU64::new(1),
            stream: Mutex::new(Some(stream)),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Does `work` unless the session ends.
    pub(super) async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.ended.cancelled() => Err(Error::Closed),
        }
    }

    /// A task that ends with its handle.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(self.tasks.spawn(work))
    }

    /// Makes a call known under the client's own number.
    pub(super) fn register_call(self: &Arc<Self>, call: u64) -> Result<Call> {
        let token = CancellationToken::new();
        match lock(&self.calls).entry(call) {
            std::collections::hash_map::Entry::Occupied(_) => {
                Err(Error::InvalidArgument { reason: format!("the call {call} is there already") })
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(token.clone());
                Ok(Call { session: self.clone(), call, token })
            }
        }
    }

    /// Cancels a call; one that has ended is left alone.
    pub(super) fn cancel_call(&self, call: u64) {
        if let Some(token) = lock(&self.calls).get(&call) {
            token.cancel();
        }
    }

    pub(super) fn add_process(self: &Arc<Self>, entry: Entry) -> Registered {
        let (id, entry) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(entry));
        lock(&self.processes).insert(id, entry.clone());
        Registered { session: self.clone(), id, entry }
    }

    /// A process that has not been let go of.
    pub(super) fn process(&self, id: u64) -> Result<Arc<Entry>> {
        lock(&self.processes).get(&id).cloned().ok_or(Error::ProcessDone)
    }

    /// Ends everything the session started and lets go of its workspace. Returns once that is
    /// done, whoever began it.
    pub(super) async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let mut released = self.released.lock().await;
        if *released {
            return Ok(());
        }
        self.source.release(&*self.workspace).await?;
        self.ended.cancel();
        self.tasks.close();
        // A client that does not read would hold it up for ever.
        let _ = tokio::time::timeout(LAST_FRAMES, self.tasks.wait()).await;
        *released = true;
        Ok(())
    }

    /// Closes it because the client is gone or the server stops, and tells the client if it is
    /// still there.
    pub(super) async fn end(&self) {
        if let Err(error) = self.close().await {
            tracing::error!(%error, "a session's workspace could not be released");
            self.ended.cancel();
        }
        lock(&self.stream).take();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that the client can cancel, until this is dropped.
#[derive(Debug)]
pub(super) struct Call {
    session: Arc<Session>,
    call: u64,
    pub(super) token: CancellationToken,
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.session.calls).remove(&self.call);
    }
}

/// A process that the client can name, until this is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    session: Arc<Session>,
    pub(super) id: u64,
    pub(super) entry: Arc<Entry>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.session.processes).remove(&self.id);
    }
}
