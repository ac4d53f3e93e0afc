//! What all operations on one open container share.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::RwLock;

use super::accounts::User;
use super::engine::Engine;
use super::engine_env::EngineEnv;
use super::execs::Execs;
use super::monitor::Monitor;
use crate::environment::Environment;
use crate::error::{Error, GoneReason, Result};

/// One open container.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// The engine's id of the container.
    pub(crate) id: String,
    /// The absolute path of the workspace root, without links, `.` or a trailing `/`.
    pub(crate) root: String,
    /// What every process starts with, the image's own variables and the engine's included.
    pub(crate) env: Environment,
    /// The part of it that the engine gives unasked.
    pub(crate) engine_env: EngineEnv,
    /// Whether a process of another user has that one's home directory.
    pub(crate) home_is_the_users: bool,
    /// Who processes run as and files belong to.
    pub(crate) user: UserIds,
    /// That user in the words that the engine takes for a command.
    pub(crate) user_words: String,
    /// The absolute path of a POSIX shell in the container, if it has one.
    pub(crate) shell: Option<String>,
    /// Absolute paths that the archive calls do not see as processes do: tmpfs and the kernel's
    /// own file systems.
    pub(crate) hidden_mounts: Vec<String>,
    /// Whether the root file system cannot be written, so that archive calls reach volumes only.
    pub(crate) read_only_rootfs: bool,
    /// Whether the workspace made the container.
    pub(crate) owned: bool,
    /// Whether nobody else is to use it: the workspace made it, and not to be kept.
    pub(crate) exclusive: bool,
    /// Watches what becomes of the container.
    pub(crate) monitor: Monitor,
    /// Held for writing while the workspace itself has the container paused, for reading while an
    /// exec is created and started, which a paused container refuses.
    pub(crate) pause_gate: RwLock<()>,
    /// What the commands in it share.
    pub(crate) execs: Execs,
    /// Whether any process but the first has been started through this workspace.
    used: AtomicBool,
}

/// A numeric user and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl std::fmt::Display for UserIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// What [`Shared::new`] is made from.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    pub(crate) id: String,
    pub(crate) root: String,
    pub(crate) env: Environment,
    pub(crate) engine_env: EngineEnv,
    pub(crate) home_is_the_users: bool,
    pub(crate) user: User,
    pub(crate) shell: Option<String>,
    pub(crate) hidden_mounts: Vec<String>,
    pub(crate) read_only_rootfs: bool,
    pub(crate) owned: bool,
    pub(crate) exclusive: bool,
    pub(crate) monitor: Monitor,
}

impl Shared {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { engine, id, root, env, engine_env, home_is_the_users, user, .. } = opened;
        let Opened { shell, hidden_mounts, read_only_rootfs, owned, exclusive, monitor, .. } = opened;
        Shared {
            engine,
            id,
            root,
            env,
            engine_env,
            home_is_the_users,
            user: user.ids,
            user_words: user.words,
            shell,
            hidden_mounts,
            read_only_rootfs,
            owned,
            exclusive,
            monitor,
            pause_gate: RwLock::new(()),
            execs: Execs::new(),
            used: AtomicBool::new(false),
        }
    }

    /// Runs an operation to its end unless the workspace is closed or dies first, and turns an
    /// engine that was lost in the middle into [`Error::Gone`].
    pub(crate) async fn guard<T>(&self, operation: impl Future<Output = Result<T>>) -> Result<T> {
        self.monitor.when_running().await?;
        tokio::select! {
            biased;
            result = operation => match result {
                Err(error) => Err(self.explain(error).await),
                done => done,
            },
            error = self.monitor.lost() => Err(error),
        }
    }

    /// What an engine error of an operation on this container really means.
    ///
    /// A missing, stopped or paused container answers 404, 409 or 500 by engine and call, so
    /// the state decides and not the status.
    pub(crate) async fn explain(&self, error: Error) -> Error {
        match error {
            Error::NoEngine { source, .. } => {
                let detail =
                    source.map_or_else(|| "the connection was lost".to_owned(), |source| source.to_string());
                Error::Gone { why: GoneReason::EngineUnreachable { detail } }
            }
            // A script that was killed with its container ends with a status as of any failure.
            Error::Engine { .. } | Error::Timeout { .. } | Error::Io { .. } => self.unless_lost(error).await,
            // The engine answers 404 for a missing path and for a missing container, and with no
            // shell it is the one that is asked for paths.
            Error::NotFound { .. } if self.shell.is_none() => self.unless_lost(error).await,
            other => other,
        }
    }

    /// This error, unless the container is lost, which explains it.
    async fn unless_lost(&self, error: Error) -> Error {
        match self.monitor.check(&self.engine, &self.id).await {
            Err(lost) => lost,
            Ok(()) => error,
        }
    }

    /// Notes that a process was started, so that from now on something may run beside us.
    pub(crate) fn mark_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// Whether nothing but the container's first process can be running: nobody else uses it, and
    /// the workspace has started nothing. It stays so for as long as the gate is held for writing.
    pub(crate) fn is_quiet(&self) -> bool {
        self.exclusive && !self.used.load(Ordering::Relaxed)
    }
}
