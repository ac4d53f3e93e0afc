//! What the commands of one container share.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::shared::UserIds;
use crate::random::random_u64;

/// The variable that marks every process of a command.
pub(crate) const MARKER: &str = "AGENTWORKSPACE_EXEC";

/// How many commands may be starting at once. An engine starts those of one container one after
/// another, so more would only pile up in it.
const MAX_STARTING: usize = 32;

/// How many starts are remembered, and how long at most.
const REMEMBERED_STARTS: usize = 256;
const START_TIME: Duration = Duration::from_secs(20);

/// The commands of one container.
#[derive(Debug)]
pub(crate) struct Execs {
    /// What the markers of this workspace begin with.
    family: String,
    pub(crate) starting: Arc<Semaphore>,
    /// What runs beside the caller: starts, supervisors and kills.
    pub(crate) tasks: TaskTracker,
    /// Which execs the engine may still be starting, oldest first.
    starts: Mutex<VecDeque<(String, Instant)>>,
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
            starts: Mutex::default(),
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

    /// Notes that the engine has answered the start of an exec, which it does before it starts it.
    pub(crate) fn note_start(&self, exec: &str) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        if starts.len() == REMEMBERED_STARTS {
            starts.pop_front();
        }
        starts.push_back((exec.to_owned(), Instant::now()));
    }

    /// The execs that the engine may still be starting, and forgets them.
    pub(crate) fn take_starts(&self) -> Vec<String> {
        let starts = std::mem::take(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner));
        let recent = starts.into_iter().filter(|(_, at)| at.elapsed() < START_TIME);
        recent.map(|(exec, _)| exec).collect()
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
