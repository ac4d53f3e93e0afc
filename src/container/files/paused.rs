//! Work on a container while nothing in it runs.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::shared::Shared;
use crate::error::{Error, Result};

/// Runs `work` with the container paused, so that no process in it can swap a directory for a link
/// between the check of a name and its use.
///
/// The container is resumed also when the returned future is dropped: the work is a task of its
/// own, which notices. One that somebody else had paused stays so.
pub(super) async fn paused<T, F>(shared: &Arc<Shared>, work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    if shared.is_quiet() {
        return work.await;
    }
    let (mut caller, result) = oneshot::channel();
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let gate = shared.pause_gate.write().await;
        if caller.is_closed() {
            return;
        }
        let done = match pause(&shared).await {
            Err(error) => Some(Err(error)),
            Ok(ours) => {
                let done = tokio::select! {
                    done = work => Some(done),
                    () = caller.closed() => None,
                };
                match resume(&shared, ours).await {
                    Ok(()) => done,
                    Err(error) => done.map(|done| done.and(Err(error))),
                }
            }
        };
        drop(gate);
        if let Some(done) = done {
            drop(caller.send(done));
        }
    });
    result.await.unwrap_or(Err(Error::Cancelled))
}

/// Pauses the container; whether it was us.
async fn pause(shared: &Shared) -> Result<bool> {
    let docker = shared.engine.docker();
    let pausing = docker.pause_container(&shared.id);
    match shared.engine.call("pause the container", SLOW_CALL_TIMEOUT, pausing).await {
        Ok(()) => Ok(true),
        Err(Error::Engine { message, .. }) if message.contains("already paused") => Ok(false),
        Err(error) => Err(error),
    }
}

async fn resume(shared: &Shared, ours: bool) -> Result<()> {
    if !ours {
        return Ok(());
    }
    let docker = shared.engine.docker();
    let resuming = docker.unpause_container(&shared.id);
    match shared.engine.call("resume the container", SLOW_CALL_TIMEOUT, resuming).await {
        Err(Error::Engine { message, .. }) if message.contains("not paused") => Ok(()),
        other => other,
    }
}
