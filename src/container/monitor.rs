//! Watches what becomes of an open container.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerStateStatusEnum as Status;
use tokio::sync::watch;

use super::engine::{CALL_TIMEOUT, Engine};
use crate::error::{Error, GoneReason, Result};

/// How long a container may stay paused by somebody else before an operation gives up.
pub(crate) const PAUSE_GRACE: Duration = Duration::from_secs(5);

/// What is known of a container's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Running,
    /// Somebody else paused it.
    Paused,
    Gone(GoneReason),
    /// The workspace was closed.
    Closed,
}

/// The condition of one container; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    condition: Arc<watch::Sender<Condition>>,
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Monitor { condition: Arc::new(watch::Sender::new(Condition::Running)) }
    }

    /// Records what has become of the container. What is final stays.
    pub(crate) fn set(&self, new: Condition) {
        self.condition.send_if_modified(|condition| {
            let is_final = match condition {
                Condition::Closed => true,
                Condition::Gone(_) => new != Condition::Closed,
                Condition::Running | Condition::Paused => false,
            };
            if is_final || *condition == new {
                return false;
            }
            *condition = new;
            true
        });
    }

    /// The error of an operation that would begin now; for a paused container there is none yet.
    pub(crate) fn check_open(&self) -> Result<()> {
        match &*self.condition.borrow() {
            Condition::Closed => Err(Error::Closed),
            Condition::Gone(why) => Err(Error::Gone { why: why.clone() }),
            Condition::Running | Condition::Paused => Ok(()),
        }
    }

    /// Waits until the workspace is closed, its container is gone, or has been paused for
    /// [`PAUSE_GRACE`].
    pub(crate) async fn lost(&self) -> Error {
        let mut changes = self.condition.subscribe();
        loop {
            let condition = changes.borrow_and_update().clone();
            let change = match condition {
                Condition::Closed => return Error::Closed,
                Condition::Gone(why) => return Error::Gone { why },
                Condition::Running => changes.changed().await,
                Condition::Paused => match tokio::time::timeout(PAUSE_GRACE, changes.changed()).await {
                    Ok(change) => change,
                    Err(_) => return Error::Gone { why: GoneReason::ContainerPaused },
                },
            };
            if change.is_err() {
                unreachable!("the monitor holds the sender");
            }
        }
    }

    /// Asks the engine what has become of the container, and records it.
    pub(crate) async fn check(&self, engine: &Engine, id: &str) -> Result<()> {
        let inspected = engine
            .call("inspect the container", CALL_TIMEOUT, engine.docker().inspect_container(id, None))
            .await;
        let state = match inspected {
            Ok(container) => container.state.unwrap_or_default(),
            Err(Error::Engine { status: Some(404), .. }) => {
                self.set(Condition::Gone(GoneReason::ContainerRemoved));
                return self.check_open();
            }
            Err(Error::NoEngine { source, .. }) => {
                let detail = source.map_or_else(String::new, |source| source.to_string());
                self.set(Condition::Gone(GoneReason::EngineUnreachable { detail }));
                return self.check_open();
            }
            Err(error) => return Err(error),
        };
        match state.status {
            Some(Status::RUNNING) => {}
            Some(Status::PAUSED) => return Err(Error::Gone { why: GoneReason::ContainerPaused }),
            _ if state.oom_killed == Some(true) => self.set(Condition::Gone(GoneReason::OutOfMemory)),
            _ => self.set(Condition::Gone(GoneReason::ContainerExited { exit_code: state.exit_code })),
        }
        self.check_open()
    }
}
