//! What the commands of one container share.

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
}

impl Execs {
    pub(crate) fn new() -> Self {
        Execs {
            family: random(),
            starting: Arc::new(Semaphore::new(MAX_STARTING)),
            tasks: TaskTracker::new(),
            users: Mutex::default(),
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
