//! Work on a container while nothing in it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::container::engine::{Engine, SLOW_CALL_TIMEOUT};
use crate::container::launch::in_background;
use crate::container::monitor::PAUSE_GRACE;
use crate::container::shared::Shared;
use crate::error::{Error, GoneReason, Result};

/// How often a container is tried again that is not as it should be.
const RETRY: Duration = Duration::from_millis(100);

/// How long after a pause an engine may still hear of what was before it.
const LATE_NEWS: Duration = Duration::from_secs(3);

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
    let (mut caller, result) = oneshot::channel();
    let owner = Arc::clone(shared);
    shared.execs.tasks.spawn(async move {
        let shared = owner;
        let gate = shared.pause_gate.write().await;
        if caller.is_closed() {
            return;
        }
        let work = async {
            tokio::select! {
                biased;
                () = caller.closed() => None,
                done = work => Some(done),
            }
        };
        // Under the gate nothing is started either, so what is quiet needs no pause.
        let done = if shared.is_quiet() { work.await } else { under_pause(&shared, work).await };
        drop(gate);
        if let Some(done) = done {
            drop(caller.send(done));
        }
    });
    result.await.unwrap_or(Err(Error::Cancelled))
}

/// Runs `work`, which is [`None`] when nobody waits for it any more, between a pause and its end.
async fn under_pause<T>(
    shared: &Arc<Shared>,
    work: impl Future<Output = Option<Result<T>>>,
) -> Option<Result<T>> {
    // One that is still under way is held up by the pause, and does nothing before its end.
    let _all_done = starts_are_done(shared).await;
    let pause = match Pause::begin(shared).await {
        Ok(pause) => pause,
        Err(error) => return Some(Err(error)),
    };
    let done = work.await;
    match pause.end().await {
        Ok(()) => done,
        Err(error) => done.map(|done| done.and(Err(error))),
    }
}

/// Waits until the engine has started every process that it was told to; whether it has.
///
/// It answers a start before it does it. One that is caught by a pause keeps a lock in the engine,
/// behind which a look at the container waits with the container's own lock, and behind that every
/// archive call.
pub(crate) async fn starts_are_done(shared: &Shared) -> bool {
    let deadline = Instant::now() + START_GRACE;
    for exec in shared.execs.starts() {
        loop {
            match shared.engine.exec_state(&exec).await {
                Ok(state) if state.pid.unwrap_or(0) != 0 || state.exit_code.is_some() => break,
                Err(Error::Engine { status: Some(404), .. }) => break,
                // Neither a process nor an end: also before the engine has marked it as running.
                _ if Instant::now() >= deadline => return false,
                _ => tokio::time::sleep(START_DELAY).await,
            }
        }
        shared.execs.note_started(&exec);
    }
    true
}

/// A pause of the workspace itself. One that is not ended, because the runtime shuts down or a call
/// broke off, is ended in the background.
pub(crate) struct Pause {
    shared: Arc<Shared>,
    is_over: bool,
}

impl Pause {
    pub(crate) async fn begin(shared: &Arc<Shared>) -> Result<Pause> {
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

    /// Ends it; an error when somebody else has ended it before, so that it has held nothing.
    pub(crate) async fn end(self) -> Result<()> {
        let was_held = resume(&self.shared.engine, &self.shared.id).await?;
        self.mark_over();
        if was_held { Ok(()) } else { Err(resumed_by_others()) }
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
        let owner = Arc::clone(&self.shared);
        in_background(&owner, async move {
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

/// Resumes the container; whether it was paused.
///
/// An engine hears of each pause and resume from its runtime once more, and late: the news of the
/// resume before this pause makes it take the container for running until that of the pause comes.
/// So its word that nothing is paused counts only when it stays.
async fn resume(engine: &Engine, id: &str) -> Result<bool> {
    let deadline = Instant::now() + LATE_NEWS;
    loop {
        let resuming = engine.docker().unpause_container(id);
        match engine.call("resume the container", SLOW_CALL_TIMEOUT, resuming).await {
            Ok(()) => return Ok(true),
            Err(Error::Engine { message, .. }) if message.contains("not paused") => {
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn resumed_by_others() -> Error {
    Error::Engine {
        operation: "keep the container paused".to_owned(),
        status: None,
        message:
            "somebody else resumed it while its files were in use, and a link may have been swapped in; \
                  do it again, and leave the pauses of a workspace in use alone"
                .to_owned(),
    }
}
