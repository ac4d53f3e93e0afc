//! Looks for the processes of many commands at once, so that ending them takes one exec and not one
//! for each.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, oneshot};

use super::engine::Engine;
use super::shared::{Shared, UserIds};
use super::sweep::{Swept, sweep};
use crate::error::{Error, Result};

/// How many commands are looked for at once.
const MAX_BATCH: usize = 64;

/// What waits to be looked for.
#[derive(Debug, Default)]
pub(crate) struct KillQueue {
    /// Held by whoever runs the script.
    turn: Turn<()>,
    waiting: Mutex<Vec<Waiting>>,
}

/// One command, and what is to be done with its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) user: UserIds,
    pub(crate) signal: i32,
    pub(crate) marker: String,
    pub(crate) known: Vec<String>,
}

#[derive(Debug)]
struct Waiting {
    wanted: Wanted,
    done: oneshot::Sender<Result<Swept>>,
}

impl KillQueue {
    /// Runs the script for `wanted`, with whatever else waits for the same signal of the same user.
    /// What is left may then belong to any of them, and is told to all.
    pub(crate) async fn sweep(&self, engine: &Engine, shared: &Shared, wanted: &Wanted) -> Result<Swept> {
        let (done, mut served) = oneshot::channel();
        self.lock().push(Waiting { wanted: wanted.clone(), done });
        let turn = tokio::select! {
            biased;
            result = &mut served => match result {
                Ok(swept) => return swept,
                // Whoever ran it was dropped.
                Err(_) => self.turn.lock().await,
            },
            turn = self.turn.lock() => turn,
        };
        if let Ok(swept) = served.try_recv() {
            return swept;
        }
        let others = self.take(wanted);
        let mut markers = vec![wanted.marker.as_str()];
        markers.extend(others.iter().map(|other| other.wanted.marker.as_str()));
        let known = others.iter().flat_map(|other| &other.wanted.known);
        let known: Vec<String> = wanted.known.iter().chain(known).cloned().collect();
        let swept = sweep(engine, shared, wanted.user, wanted.signal, &markers, &known).await;
        drop(turn);
        for other in others {
            // One that has gone away meanwhile needs no answer.
            let _ = other.done.send(swept.as_ref().map(Clone::clone).map_err(again));
        }
        swept
    }

    /// What else waits for the same as `wanted`, which itself waits no more.
    fn take(&self, wanted: &Wanted) -> Vec<Waiting> {
        let mut waiting = self.lock();
        waiting.retain(|one| one.wanted != *wanted);
        let like = |one: &mut Waiting| one.wanted.user == wanted.user && one.wanted.signal == wanted.signal;
        let mut left = MAX_BATCH - 1;
        waiting
            .extract_if(.., |one| {
                let taken = left > 0 && like(one);
                left -= usize::from(taken);
                taken
            })
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same error for another caller.
fn again(error: &Error) -> Error {
    match error {
        Error::Timeout { operation, after } => Error::Timeout { operation: operation.clone(), after: *after },
        Error::Engine { operation, status, message } => {
            Error::Engine { operation: operation.clone(), status: *status, message: message.clone() }
        }
        other => Error::Engine {
            operation: "look for the processes of a command".to_owned(),
            status: None,
            message: other.to_string(),
        },
    }
}
