//! What the commands of one container share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::engine::is_refusal;
use super::kill_queue::KillQueue;
use super::raw_exec::RawStreams;
use super::shared::UserIds;
use crate::error::Result;
use crate::random::random_u64;

/// The variable that marks every process of a command.
pub(crate) const MARKER: &str = "AGENTWORKSPACE_EXEC";

/// How many commands may be starting at once. An engine starts those of one container one after
/// another, so more would only pile up in it.
const MAX_STARTING: usize = 32;

/// The commands of one container.
#[derive(Debug)]
pub(crate) struct Execs {
    /// What the markers of this workspace begin with.
    family: String,
    pub(crate) starting: Arc<Semaphore>,
    /// What runs beside the caller: starts, supervisors and kills.
    pub(crate) tasks: TaskTracker,
    /// What is to be ended.
    pub(crate) kills: KillQueue,
    /// Which execs the engine may still be starting.
    starts: Mutex<HashSet<String>>,
    /// Whether the engine may be starting an exec whose id is not known.
    lost_a_start: AtomicBool,
    /// Who commands have run as.
    users: Mutex<Vec<UserIds>>,
    /// The engine's ids of commands that may run and that nothing in the container can end.
    unleashed: Mutex<HashSet<String>>,
}

impl Execs {
    pub(crate) fn new() -> Self {
        Execs {
            family: format!("{:016x}", random_u64()),
            starting: Arc::new(Semaphore::new(MAX_STARTING)),
            tasks: TaskTracker::new(),
            kills: KillQueue::default(),
            starts: Mutex::default(),
            lost_a_start: AtomicBool::new(false),
            users: Mutex::default(),
            unleashed: Mutex::default(),
        }
    }

    /// A marker for one command.
    pub(crate) fn marker(&self) -> String {
        format!("{MARKER}={}{:016x}", self.family, random_u64())
    }

    /// What all markers of this workspace begin with.
    pub(crate) fn family_marker(&self) -> String {
        format!("{MARKER}={}", self.family)
    }

    /// To be called before the engine is told to start an exec.
    pub(crate) fn asking(&self) -> Asked<'_> {
        Asked { execs: self, is_answered: false }
    }

    /// The execs that the engine may still be starting.
    pub(crate) fn starts(&self) -> Vec<String> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Notes that the engine has started an exec, or will not start it any more.
    pub(crate) fn note_started(&self, exec: &str) {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).remove(exec);
    }

    /// Whether the engine may still be starting an exec that nobody knows.
    pub(crate) fn lost_a_start(&self) -> bool {
        self.lost_a_start.load(Ordering::Relaxed)
    }

    /// Notes that a command runs as `user`.
    pub(crate) fn note_user(&self, user: UserIds) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.contains(&user) {
            users.push(user);
        }
    }

    /// Notes that a command has started that cannot be ended from inside.
    pub(crate) fn note_unleashed(&self, exec: &str) {
        self.unleashed.lock().unwrap_or_else(PoisonError::into_inner).insert(exec.to_owned());
    }

    /// Notes that a command has ended.
    pub(crate) fn note_ended(&self, exec: &str) {
        self.note_started(exec);
        self.unleashed.lock().unwrap_or_else(PoisonError::into_inner).remove(exec);
    }

    /// The commands that may still run and cannot be ended from inside.
    pub(crate) fn unleashed(&self) -> Vec<String> {
        self.unleashed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Everybody that commands have run as.
    pub(crate) fn users(&self) -> Vec<UserIds> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An exec that the engine is being told to start. Dropped without an answer, it may start at any
/// later time.
pub(crate) struct Asked<'a> {
    execs: &'a Execs,
    is_answered: bool,
}

impl Asked<'_> {
    /// Notes what the engine answered, which it does before it starts anything.
    pub(crate) fn answered(mut self, started: Result<RawStreams>) -> Result<RawStreams> {
        match &started {
            Ok(streams) => {
                self.is_answered = true;
                let mut starts = self.execs.starts.lock().unwrap_or_else(PoisonError::into_inner);
                starts.insert(streams.id.clone());
            }
            Err(error) => self.is_answered = is_refusal(error),
        }
        started
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.execs.lost_a_start.store(true, Ordering::Relaxed);
        }
    }
}
