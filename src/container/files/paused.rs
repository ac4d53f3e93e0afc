//! Work on a container while nothing in it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::container::cleanup;
use crate::container::engine::{Engine, SLOW_CALL_TIMEOUT};
use crate::container::monitor::PAUSE_GRACE;
use crate::container::shared::Shared;
use crate::error::{Error, GoneReason, Result};

/// How often a container that somebody else has paused is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// How long a pause waits for processes that the engine is starting, and between two looks at one.
const START_GRACE: Duration = Duration::from_secs(5);
const START_DELAY: Duration = Duration::from_millis(5);

/// Runs `work` with the container paused, so that no process in it can swap a directory for a link
/// between the check of a name and its use.
///
/// The container is resumed also when the returned future is dropped: the work is a task of its
/// own, which notices. One that somebody else has paused is waited for, since they may resume it
/// at any moment.
pub(super) async fn paused<T, F>(shared: &Arc<Shared>, work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    {
        // One after another: a transfer waits for another's lock in the engine, and would be taken
        // for a stuck one.
        let _gate = shared.pause_gate.write().await;
        if shared.is_quiet() {
            return work.await;
        }
    }
    let (mut caller, result) = oneshot::channel();
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let gate = shared.pause_gate.write().await;
        if caller.is_closed() {
            return;
        }
        starts_are_done(&shared).await;
        let done = match Pause::begin(&shared).await {
            Err(error) => Some(Err(error)),
            Ok(pause) => {
                let done = tokio::select! {
                    done = work => Some(done),
                    () = caller.closed() => None,
                };
                match pause.end().await {
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

/// Waits until the engine has started every process that it was told to.
///
/// It answers a start before it does it. One that is caught by a pause keeps a lock in the engine,
/// behind which a look at the container waits with the container's own lock, and behind that every
/// archive call.
async fn starts_are_done(shared: &Shared) {
    let deadline = Instant::now() + START_GRACE;
    for exec in shared.execs.take_starts() {
        while Instant::now() < deadline {
            match shared.engine.exec_state(&exec).await {
                // Neither a process nor an end: also before the engine has marked it as running.
                Ok(state) if state.pid.unwrap_or(0) == 0 && state.exit_code.is_none() => {
                    tokio::time::sleep(START_DELAY).await;
                }
                _ => break,
            }
        }
    }
}

/// A pause of the workspace itself. One that is not ended, because the runtime shuts down or a call
/// broke off, is ended in the background.
struct Pause {
    shared: Arc<Shared>,
    is_over: bool,
}

impl Pause {
    async fn begin(shared: &Arc<Shared>) -> Result<Pause> {
        let deadline = Instant::now() + PAUSE_GRACE;
        loop {
            shared.monitor.own_pauses().begin();
            let pause = Pause { shared: Arc::clone(shared), is_over: false };
            let docker = shared.engine.docker();
            let pausing = docker.pause_container(&shared.id);
            match shared.engine.call("pause the container", SLOW_CALL_TIMEOUT, pausing).await {
                Ok(()) => return Ok(pause),
                Err(Error::Engine { message, .. }) if message.contains("already paused") => {
                    pause.mark_over();
                    if Instant::now() >= deadline {
                        return Err(Error::Gone { why: GoneReason::ContainerPaused });
                    }
                }
                // A freeze that races with forks in the container is given up and undone by the
                // runtime.
                Err(Error::Engine { message, .. })
                    if message.contains("unable to freeze") && Instant::now() < deadline =>
                {
                    pause.mark_over();
                }
                // An engine that refused has not paused it; of any other nobody knows.
                Err(error @ Error::Engine { status: Some(_), .. }) => {
                    pause.mark_over();
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn end(self) -> Result<()> {
        resume(&self.shared.engine, &self.shared.id).await?;
        self.mark_over();
        Ok(())
    }

    fn mark_over(mut self) {
        self.is_over = true;
        self.shared.monitor.own_pauses().end();
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let shared = Arc::clone(&self.shared);
        cleanup::spawn(async move {
            // A connection of its own: those of the workspace end with their runtime.
            let resumed = match Engine::connect_to(shared.engine.address()).await {
                Ok(engine) => resume(&engine, &shared.id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = resumed {
                tracing::warn!(container = %shared.id, %error, "the container may be left paused");
            }
            shared.monitor.own_pauses().end();
        });
    }
}

async fn resume(engine: &Engine, id: &str) -> Result<()> {
    let resuming = engine.docker().unpause_container(id);
    match engine.call("resume the container", SLOW_CALL_TIMEOUT, resuming).await {
        Err(Error::Engine { message, .. }) if message.contains("not paused") => Ok(()),
        other => other,
    }
}
