//! Blocking work on the file system, off the async threads and stopped with its caller.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::root::Root;
use crate::error::{Error, Result};

/// The root, and all work on it that has not ended.
#[derive(Debug)]
pub(super) struct Tasks {
    root: Arc<Root>,
    closed: CancellationToken,
    running: TaskTracker,
}

/// Tells work that nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct Stop(CancellationToken);

impl Stop {
    /// Fails once the caller has gone or the workspace is closed. Work that takes more than a few
    /// system calls asks this between steps.
    pub(super) fn check(&self) -> Result<()> {
        if self.0.is_cancelled() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Waits for async code from blocking code, no longer than anybody waits for that.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = self.0.cancelled() => Err(Error::Closed),
                value = future => Ok(value),
            }
        })
    }
}

impl Tasks {
    pub(super) fn new(root: Root) -> Self {
        Tasks { root: Arc::new(root), closed: CancellationToken::new(), running: TaskTracker::new() }
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Cancelled when the workspace closes.
    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Fails after [`close`](Self::close).
    pub(super) fn check(&self) -> Result<()> {
        if self.closed.is_cancelled() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Runs `work` where it may block. Dropping the future or closing the workspace tells it to
    /// stop.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root, &Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.check()?;
        let token = self.closed.child_token();
        let stop = Stop(token.clone());
        let _stops_when_dropped = token.drop_guard();
        let job = self.spawn(stop, work);
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Error::Closed),
            result = job => match result {
                Ok(result) => result,
                Err(failed) => match failed.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // Only a runtime that shuts down gives up a blocking task.
                    Err(_) => Err(Error::Closed),
                },
            },
        }
    }

    /// Begins `work` in the background, until `stop` or the end of the workspace.
    fn spawn<T: Send + 'static>(
        &self,
        stop: Stop,
        work: impl FnOnce(&Root, &Stop) -> Result<T> + Send + 'static,
    ) -> tokio::task::JoinHandle<Result<T>> {
        let root = self.root.clone();
        self.running.spawn_blocking(move || {
            root.check()?;
            match work(&root, &stop) {
                // In a directory that was removed nothing is found any more.
                Err(error @ Error::NotFound { .. }) => Err(root.check().err().unwrap_or(error)),
                result => result,
            }
        })
    }

    /// Begins work that goes on by itself, such as filling a stream, until the workspace closes.
    pub(super) fn detach(&self, work: impl FnOnce(&Root, &Stop) -> Result<()> + Send + 'static) {
        drop(self.spawn(Stop(self.closed.child_token()), work));
    }

    /// Refuses more work and tells what runs to stop.
    pub(super) fn cancel(&self) {
        self.closed.cancel();
    }

    /// Refuses more work, stops what runs and waits for it.
    pub(super) async fn close(&self) {
        self.cancel();
        self.running.close();
        self.running.wait().await;
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}
