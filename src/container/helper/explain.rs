//! What the loss of a helper means: its container knows.

use std::time::{Duration, Instant};

use crate::container::end;
use crate::container::shared::Shared;
use crate::error::{Error, GoneReason, Result};
use crate::output::End;
use crate::signal::Signal;

/// How long events may be late: they come on a connection of their own.
const EVENT_DELAY: Duration = Duration::from_millis(500);

/// How often it is looked whether they have come.
const LOOK: Duration = Duration::from_millis(20);

/// Runs an operation through the helper, and explains its failure.
pub(super) async fn guard<T>(shared: &Shared, operation: impl Future<Output = Result<T>>) -> Result<T> {
    shared.monitor.when_running().await?;
    guard_started(shared, operation).await
}

/// As [`guard`], for one that may have its answer already.
pub(super) async fn guard_started<T>(
    shared: &Shared,
    operation: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        result = operation => match result {
            Err(error) => Err(explain(shared, error).await),
            done => done,
        },
        error = shared.monitor.lost() => Err(error),
    }
}

/// What an error of the helper means: one that is gone went with its container, and the engine says
/// what became of that.
pub(super) async fn explain(shared: &Shared, error: Error) -> Error {
    if !matches!(error, Error::Gone { why: GoneReason::Disconnected { .. } }) {
        return error;
    }
    match end::wait_for_death(shared, end::DEATH_DELAY).await {
        Err(lost) => lost,
        Ok(()) => error,
    }
}

/// How a command ended. SIGKILL came from the kernel, if the engine reports a lack of memory.
pub(super) async fn end_of(shared: &Shared, end: End, began: Instant) -> End {
    if end != End::Signaled(Signal::KILL) {
        return end;
    }
    let deadline = Instant::now() + EVENT_DELAY;
    while !shared.monitor.oom_since(began) {
        if Instant::now() >= deadline {
            return end;
        }
        tokio::time::sleep(LOOK).await;
    }
    End::OutOfMemory
}
