//! Every command of a workspace that has something running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Error, Result};

use super::patience;
use super::supervised::Supervised;

/// The commands that are running or have left something behind.
#[derive(Debug, Default)]
pub(super) struct Registry {
    live: Mutex<Live>,
    closing: CancellationToken,
    /// Cancelled once everything is dead, to stop whoever still waits for a reader.
    closed: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Live {
    next: u64,
    commands: HashMap<u64, Kept>,
}

#[derive(Debug)]
struct Kept {
    supervised: Arc<Supervised>,
    /// Whether a driver ends it politely when the workspace closes.
    driven: bool,
}

impl Registry {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancelled as soon as the workspace begins to close.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// [`Error::Closed`] once the workspace has begun to close.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.closing.is_cancelled() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Keeps `supervised` until `follow`, which follows it to its end, has ended. One that is
    /// `driven` is not killed by [`close`](Self::close) but by its driver.
    pub(super) fn keep(
        self: &Arc<Self>,
        supervised: Arc<Supervised>,
        driven: bool,
        follow: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut live = self.live();
        let id = live.next;
        live.next += 1;
        live.commands.insert(id, Kept { supervised, driven });
        drop(live);
        let registry = self.clone();
        self.tasks.spawn(async move {
            follow.await;
            registry.live().commands.remove(&id);
        });
    }

    /// Runs `task` for the workspace; it is dropped when the workspace has closed.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = closed.cancelled() => {}
            }
        });
    }

    /// Runs `task`, which ends by itself soon after `closing` is cancelled.
    pub(super) fn spawn_driver(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// How many commands have something running.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.live().commands.len()
    }

    /// Begins to kill everything without waiting; also outside of a runtime.
    /// What is being killed is returned.
    pub(super) fn abandon(&self) -> Vec<Arc<Supervised>> {
        self.closing.cancel();
        self.closed.cancel();
        let dying: Vec<_> = self.live().commands.values().map(|kept| kept.supervised.clone()).collect();
        for supervised in &dying {
            supervised.kill();
        }
        dying
    }

    /// Ends everything and waits until nothing is left.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the kernel does not let go of a process. Another call goes on.
    pub(super) async fn close(&self) -> Result<()> {
        self.closing.cancel();
        let mut kept = Vec::new();
        for command in self.live().commands.values() {
            if !command.driven {
                command.supervised.kill();
            }
            kept.push(command.supervised.clone());
        }
        let late = |_| Error::Timeout {
            operation: "ending the processes of the workspace".to_owned(),
            after: patience::CLOSE,
        };
        let dead = async {
            for supervised in kept {
                supervised.finished().await;
            }
        };
        tokio::time::timeout(patience::CLOSE, dead).await.map_err(late)?;
        self.closed.cancel();
        self.tasks.close();
        tokio::time::timeout(patience::CLOSE, self.tasks.wait()).await.map_err(late)
    }
}
