//! What the commands of one container share.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::shared::UserIds;

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
    /// Who commands have run as.
    users: Mutex<Vec<UserIds>>,
    /// The engine's ids of commands that may run and that nothing in the container can end.
    unleashed: Mutex<HashSet<String>>,
}

impl Execs {
    pub(crate) fn new() -> Self {
        Execs {
            family: random(),
            starting: Arc::new(Semaphore::new(MAX_STARTING)),
            tasks: TaskTracker::new(),
            users: Mutex::default(),
            unleashed: Mutex::default(),
        }
    }

    /// A marker for one command.
    pub(crate) fn marker(&self) -> String {
        format!("{MARKER}={}{}", self.family, random())
    }

    /// What all markers of this workspace begin with.
    pub(crate) fn family_marker(&self) -> String {
        format!("{MARKER}={}", self.family)
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

/// 64 bits that nobody can guess, in hex. The standard library keys its hashers from the system's
/// random numbers, and the hash of nothing under an unknown key is as good as random.
pub(crate) fn random() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
