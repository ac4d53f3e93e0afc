//! What is known of an open container's life.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use tokio::sync::watch;

use super::awake::Awake;
use super::end::KILLED;
use super::engine::Engine;
use super::own_pauses::OwnPauses;
use crate::error::{Error, GoneReason, Result};

/// How long a container may stay paused by somebody else before an operation gives up.
pub(crate) const PAUSE_GRACE: Duration = Duration::from_secs(5);

/// How long the state of a container that does not run waits for the events that say why.
const VERDICT_GRACE: Duration = Duration::from_secs(1);

/// How many exits of execs are remembered: as many as can be waited for at one time.
const REMEMBERED_EXITS: usize = 4096;

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

impl Condition {
    /// A condition is replaced only by one that says more: what a state shows by what events
    /// tell, and both by what happened to the container afterwards.
    fn rank(&self) -> u8 {
        match self {
            Condition::Running | Condition::Paused => 0,
            Condition::Gone(GoneReason::EngineUnreachable { .. }) => 1,
            Condition::Gone(GoneReason::ContainerExited { .. }) => 2,
            Condition::Gone(GoneReason::ContainerRestarted) => 4,
            Condition::Gone(GoneReason::ContainerRemoved) => 5,
            Condition::Gone(_) => 3,
            Condition::Closed => 6,
        }
    }
}

/// The condition of one container; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    condition: Arc<watch::Sender<Condition>>,
    seen: Arc<Mutex<Seen>>,
    own_pauses: Arc<OwnPauses>,
    /// What the engine said of the container when it was opened.
    opened: Arc<OnceLock<OpenedState>>,
    /// Whether the engine removes the container when it ends, so that a removal tells nothing.
    removed_at_end: bool,
}

/// What is remembered of the state that a container was opened in.
#[derive(Debug)]
struct OpenedState {
    /// When the container was started, in the engine's words.
    started_at: Option<String>,
    /// Whether it bore the mark that a process of it ran out of memory. Docker 28 puts that on a
    /// container that runs on, whichever process it was.
    marked_oom: bool,
}

/// What the engine told of processes in the container.
#[derive(Debug, Default)]
struct Seen {
    last_oom: Option<Instant>,
    /// The last exits of execs by the engine's id, oldest first.
    exits: VecDeque<(String, Instant)>,
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Monitor {
            condition: Arc::new(watch::Sender::new(Condition::Running)),
            seen: Arc::default(),
            own_pauses: Arc::default(),
            opened: Arc::default(),
            removed_at_end: false,
        }
    }

    /// A container that the engine removes when it ends.
    #[cfg(feature = "helper")]
    pub(crate) fn removed_at_end() -> Self {
        Monitor { removed_at_end: true, ..Monitor::new() }
    }

    /// Whether a removal tells nothing.
    pub(crate) fn is_removed_at_end(&self) -> bool {
        self.removed_at_end
    }

    /// Records what has become of the container, unless more is known already.
    pub(crate) fn set(&self, new: Condition) {
        let is_removal = new == Condition::Gone(GoneReason::ContainerRemoved);
        self.condition.send_if_modified(|condition| {
            if is_removal && self.removed_at_end && condition.rank() >= 2 {
                return false;
            }
            let (old_rank, new_rank) = (condition.rank(), new.rank());
            let says_more = new_rank > old_rank || (new_rank == 0 && old_rank == 0 && *condition != new);
            if says_more {
                *condition = new;
            }
            says_more
        });
    }

    /// Remembers the state of the container that the workspace is about.
    pub(crate) fn remember_state(&self, state: ContainerState) {
        let marked_oom = state.oom_killed == Some(true);
        // It is remembered once, when the workspace is opened.
        let _ = self.opened.set(OpenedState { started_at: state.started_at, marked_oom });
    }

    /// Whether the container that was started at this time is the one that was opened.
    pub(crate) fn is_same_start(&self, started_at: Option<&String>) -> bool {
        self.opened.get().is_none_or(|opened| opened.started_at.as_ref() == started_at)
    }

    /// When the workspace itself has the container paused, which is no condition.
    pub(crate) fn own_pauses(&self) -> &OwnPauses {
        &self.own_pauses
    }

    /// Begins to measure the time that a command has.
    pub(crate) fn awake(&self) -> Awake {
        Awake::begin(Arc::clone(&self.own_pauses))
    }

    /// Every change of the condition.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// Records that the kernel ended a process of the container for want of memory.
    pub(crate) fn note_oom(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).last_oom = Some(Instant::now());
    }

    /// Records that an exec's process has exited.
    pub(crate) fn note_exit(&self, exec: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.exits.len() == REMEMBERED_EXITS {
            seen.exits.pop_front();
        }
        seen.exits.push_back((exec.to_owned(), Instant::now()));
    }

    /// Why the container ended by itself. `marked_oom` is the engine's mark on it, which says little
    /// alone: it stays from a process that ran out of memory earlier.
    pub(crate) fn end(&self, exit_code: Option<i64>, marked_oom: bool) -> GoneReason {
        let was_marked = self.opened.get().is_some_and(|opened| opened.marked_oom);
        let told = self.seen.lock().unwrap_or_else(PoisonError::into_inner).last_oom.is_some();
        if exit_code == Some(KILLED) && (told || (marked_oom && !was_marked)) {
            GoneReason::OutOfMemory
        } else {
            GoneReason::ContainerExited { exit_code }
        }
    }

    /// Whether the engine told since then that a process of the container ran out of memory.
    /// Engines tell it shortly after the process has exited.
    pub(crate) fn oom_since(&self, since: Instant) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.last_oom.is_some_and(|at| at >= since)
    }

    /// When the engine told that the process of this exec has exited. Podman does not tell.
    pub(crate) fn exec_died(&self, exec: &str) -> Option<Instant> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.exits.iter().rev().find(|(id, _)| id == exec).map(|(_, at)| *at)
    }

    /// The error of an operation that would begin now; for a paused container there is none yet.
    pub(crate) fn check_open(&self) -> Result<()> {
        match &*self.condition.borrow() {
            Condition::Closed => Err(Error::Closed),
            Condition::Gone(why) => Err(Error::Gone { why: why.clone() }),
            Condition::Running | Condition::Paused => Ok(()),
        }
    }

    /// Whether somebody else has the container paused.
    pub(crate) fn is_paused(&self) -> bool {
        *self.condition.borrow() == Condition::Paused
    }

    /// Waits while somebody else has the container paused, [`PAUSE_GRACE`] at most.
    pub(crate) async fn when_running(&self) -> Result<()> {
        if !self.is_paused() {
            return self.check_open();
        }
        let mut changes = self.condition.subscribe();
        let resumed = changes.wait_for(|condition| *condition != Condition::Paused);
        let resumed = tokio::time::timeout(PAUSE_GRACE, resumed).await.is_ok();
        if resumed { self.check_open() } else { Err(Error::Gone { why: GoneReason::ContainerPaused }) }
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

    /// Waits until the container has been paused by somebody else for [`PAUSE_GRACE`]; for ever in
    /// one that is closed or gone.
    pub(crate) async fn paused_for_long(&self) -> Error {
        match self.lost().await {
            paused @ Error::Gone { why: GoneReason::ContainerPaused } => paused,
            _ => std::future::pending().await,
        }
    }

    /// Asks the engine what has become of the container, and records it.
    pub(crate) async fn check(&self, engine: &Engine, id: &str) -> Result<()> {
        let before = self.own_pauses.now();
        if matches!(engine.is_paused(id).await, Ok(true)) && self.own_pauses.none_since(before) {
            return Err(Error::Gone { why: GoneReason::ContainerPaused });
        }
        let state = match engine.inspect(id).await {
            Ok(Some(container)) => container.state.unwrap_or_default(),
            Ok(None) => {
                if self.removed_at_end {
                    self.verdict().await;
                }
                self.set(Condition::Gone(GoneReason::ContainerRemoved));
                return self.check_open();
            }
            Err(Error::NoEngine { source, .. }) => {
                let detail = source.map_or_else(String::new, |source| source.to_string());
                return Err(Error::Gone { why: GoneReason::EngineUnreachable { detail } });
            }
            Err(error) => return Err(error),
        };
        let runs = matches!(state.status, Some(Status::RUNNING | Status::PAUSED));
        if runs && !self.is_same_start(state.started_at.as_ref()) {
            // All that ran before has ended, however well the container does now.
            self.set(Condition::Gone(GoneReason::ContainerRestarted));
            return self.check_open();
        }
        match state.status {
            Some(Status::PAUSED) if self.own_pauses.none_since(before) => {
                return Err(Error::Gone { why: GoneReason::ContainerPaused });
            }
            Some(Status::RUNNING | Status::PAUSED) => return self.check_open(),
            _ => {}
        }
        self.verdict().await;
        self.set(Condition::Gone(self.end(state.exit_code, state.oom_killed == Some(true))));
        self.check_open()
    }

    /// Waits for what the events, which are under way, say of a container that does not run: its state
    /// does not tell a kill from an exit.
    async fn verdict(&self) {
        let mut changes = self.condition.subscribe();
        let verdict = changes.wait_for(|condition| condition.rank() > 0);
        // What it gives holds a lock on the condition, which is to be set next.
        drop(tokio::time::timeout(VERDICT_GRACE, verdict).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_more_replaces_what_says_less() {
        let monitor = Monitor::new();
        let gone = |why: GoneReason| Condition::Gone(why);
        monitor.set(Condition::Paused);
        monitor.set(Condition::Running);
        assert!(monitor.check_open().is_ok());
        monitor.set(gone(GoneReason::ContainerKilled));
        monitor.set(gone(GoneReason::ContainerExited { exit_code: Some(137) }));
        monitor.set(Condition::Running);
        let error = monitor.check_open().unwrap_err();
        assert!(matches!(error, Error::Gone { why: GoneReason::ContainerKilled }), "{error}");
        monitor.set(gone(GoneReason::ContainerRemoved));
        let error = monitor.check_open().unwrap_err();
        assert!(matches!(error, Error::Gone { why: GoneReason::ContainerRemoved }), "{error}");
        monitor.set(Condition::Closed);
        monitor.set(gone(GoneReason::ContainerRemoved));
        assert!(matches!(monitor.check_open().unwrap_err(), Error::Closed));
    }

    #[cfg(feature = "helper")]
    #[test]
    fn a_removal_that_follows_the_end_does_not_explain_it() {
        let monitor = Monitor::removed_at_end();
        monitor.set(Condition::Gone(GoneReason::OutOfMemory));
        monitor.set(Condition::Gone(GoneReason::ContainerRemoved));
        let error = monitor.check_open().unwrap_err();
        assert!(matches!(error, Error::Gone { why: GoneReason::OutOfMemory }), "{error}");
    }

    #[test]
    fn a_mark_from_before_does_not_tell_how_a_container_ended() {
        let exited = |code| GoneReason::ContainerExited { exit_code: Some(code) };
        let monitor = Monitor::new();
        monitor.remember_state(ContainerState::default());
        assert_eq!(monitor.end(Some(KILLED), true), GoneReason::OutOfMemory);
        assert_eq!(monitor.end(Some(KILLED), false), exited(KILLED));
        assert_eq!(monitor.end(Some(0), true), exited(0));
        let monitor = Monitor::new();
        monitor.remember_state(ContainerState { oom_killed: Some(true), ..Default::default() });
        assert_eq!(monitor.end(Some(KILLED), true), exited(KILLED));
        monitor.note_oom();
        assert_eq!(monitor.end(Some(KILLED), true), GoneReason::OutOfMemory);
        assert_eq!(monitor.end(Some(143), true), exited(143));
    }

    #[test]
    fn exits_are_remembered_up_to_a_bound() {
        let monitor = Monitor::new();
        for exec in 0..=REMEMBERED_EXITS {
            monitor.note_exit(&exec.to_string());
        }
        assert!(monitor.exec_died("0").is_none());
        assert!(monitor.exec_died("1").is_some());
    }

    #[test]
    fn an_oom_counts_from_when_it_was_told() {
        let monitor = Monitor::new();
        let before = Instant::now();
        assert!(!monitor.oom_since(before));
        monitor.note_oom();
        assert!(monitor.oom_since(before));
        assert!(!monitor.oom_since(Instant::now() + Duration::from_secs(1)));
    }
}
