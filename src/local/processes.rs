//! The processes of one local workspace.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use crate::command::Command;
use crate::environment::Environment;
use crate::error::Result;
use crate::output::Output;
use crate::process::Process;

use super::registry::Registry;
use super::{exec, patience, start};

/// Runs and starts commands, and knows everything that they have running. Dropping it kills all of
/// that without waiting.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    registry: Arc<Registry>,
}

impl Processes {
    /// None yet.
    pub(crate) fn new() -> Self {
        Processes::default()
    }

    /// See [`Workspace::exec`](crate::Workspace::exec). `command` was checked, `dir` is its
    /// directory and `env` what its variables go over.
    pub(crate) async fn exec(&self, dir: OwnedFd, env: &Environment, command: Command) -> Result<Output> {
        exec::exec(&self.registry, dir, env, command).await
    }

    /// See [`Starter::start`](crate::Starter::start); the arguments are as in [`exec`](Self::exec).
    pub(crate) async fn start(&self, dir: OwnedFd, env: &Environment, command: Command) -> Result<Process> {
        start::start(&self.registry, dir, env, command).await
    }

    /// Ends everything and waits until nothing is left. Other calls are
    /// [`Error::Closed`](crate::Error::Closed) from the beginning of this on.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`](crate::Error::Timeout) when the kernel does not let go of a process;
    /// calling it again goes on.
    pub(crate) async fn close(&self) -> Result<()> {
        self.registry.close().await
    }

    /// Begins to kill everything without waiting, also outside of a runtime, and returns what
    /// blocks until that has worked or taken too long.
    pub(crate) fn abandon(&self) -> impl FnOnce() + Send + use<> {
        let dying = self.registry.abandon();
        move || {
            let deadline = Instant::now() + patience::KILL;
            if !dying.iter().all(|supervised| supervised.gone_by(deadline)) {
                tracing::warn!("a killed process is still there; the kernel does not let go of it");
            }
        }
    }

    /// How many supervisors there are that have not been reaped.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.registry.len()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        drop(self.registry.abandon());
    }
}
