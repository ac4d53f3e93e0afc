//! Starts a command's exec, so that nobody loses sight of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::cleanup;
use super::engine::is_refusal;
use super::hijack;
use super::kill::{self, Target};
use super::lone_start;
use super::monitor::PAUSE_GRACE;
use super::plan::Plan;
use super::raw_exec::{RawExec, RawStreams};
use super::shared::Shared;
use super::spawn_error::from_call;
use super::start_line::StartLine;
use crate::command::TtySize;
use crate::error::{Error, GoneReason, Result};
use crate::signal::Signal;

/// How often a paused container is tried again.
const PAUSE_RETRY: Duration = Duration::from_millis(100);

/// A command that the engine has been told to start.
pub(crate) struct Launched {
    pub(crate) streams: RawStreams,
    pub(crate) start_line: StartLine,
    pub(crate) leash: Leash,
    /// When the engine was asked.
    pub(crate) asked: Instant,
    /// Given back once the command has started.
    pub(crate) turn: OwnedSemaphorePermit,
}

/// Holds the processes of one command: dropped, it ends them in the background.
pub(crate) struct Leash {
    shared: Arc<Shared>,
    pub(crate) target: Target,
    armed: bool,
}

impl Leash {
    fn new(shared: Arc<Shared>, target: Target) -> Self {
        Leash { shared, target, armed: true }
    }

    /// Lets the processes go: they have ended, or may go on.
    pub(crate) fn release(mut self) {
        self.armed = false;
        if let Some(exec) = &self.target.exec {
            self.shared.execs.note_ended(exec);
        }
    }

    /// Whether there is a way to end the processes.
    pub(crate) fn can_end(&self) -> bool {
        self.shared.shell.is_some()
    }

    /// Sends `signal` to the processes; whether there was one.
    pub(crate) async fn signal(&self, signal: Signal) -> Result<bool> {
        kill::signal(&self.shared, &self.target, signal).await
    }

    /// Ends the processes and waits for it.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        kill::kill(&self.shared, &self.target).await?;
        self.armed = false;
        Ok(())
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.armed && self.can_end() {
            kill::spawn_kill(&self.shared, self.target.clone());
        }
    }
}

/// Tells the engine to start `plan`.
///
/// It runs in a task of its own: cut off in the middle, the engine would start the process all the
/// same, and nobody would know of it.
pub(crate) async fn launch(shared: &Arc<Shared>, plan: Plan, tty: Option<TtySize>) -> Result<Launched> {
    let turn = shared.execs.starting.clone().acquire_owned().await;
    let Ok(turn) = turn else { unreachable!("the semaphore is never closed") };
    let owner = shared.clone();
    let task = shared.execs.tasks.spawn(async move {
        let Plan { program, exec, target, nonce, enter } = plan;
        let mut leash = Leash::new(owner.clone(), target);
        let deadline = Instant::now() + PAUSE_GRACE;
        let (streams, asked) = loop {
            let asked = Instant::now();
            let started = match &enter {
                Some(dir) => lone_start::start(&owner, exec.clone(), dir, tty, &program).await,
                None => {
                    owner.mark_used();
                    let _gate = owner.pause_gate.read().await;
                    tell(&owner, exec.clone(), tty).await
                }
            };
            match started {
                Ok(streams) => break (streams, asked),
                Err(error) => {
                    if !is_paused(&owner, &error).await || Instant::now() >= deadline {
                        if is_refusal(&error) {
                            leash.armed = false;
                        }
                        return Err(from_call(&program, error));
                    }
                    tokio::time::sleep(PAUSE_RETRY).await;
                }
            }
        };
        leash.target.exec = Some(streams.id.clone());
        let start_line = StartLine::new(nonce.as_deref(), tty.is_none());
        Ok(Launched { streams, start_line, leash, asked, turn })
    });
    match task.await {
        Ok(launched) => launched,
        Err(failed) => Err(Error::Engine {
            operation: "start an exec".to_owned(),
            status: None,
            message: failed.to_string(),
        }),
    }
}

/// Tells the engine to start `exec`. The gate must be held.
pub(crate) async fn tell(shared: &Shared, exec: RawExec, tty: Option<TtySize>) -> Result<RawStreams> {
    let asked = shared.execs.asking();
    let started = match tty {
        Some(size) => hijack::start_tty(&shared.engine, &shared.id, exec, size).await,
        None => shared.engine.start_exec(&shared.id, exec).await,
    };
    let streams = asked.answered(started)?;
    if shared.shell.is_none() {
        shared.execs.note_unleashed(&streams.id);
    }
    Ok(streams)
}

/// Whether a start failed because the container is paused.
async fn is_paused(shared: &Shared, error: &Error) -> bool {
    let Error::Engine { status: Some(409 | 500), message, .. } = error else { return false };
    match shared.monitor.check(&shared.engine, &shared.id).await {
        Err(Error::Gone { why: GoneReason::ContainerPaused }) => true,
        // It was resumed since it was refused.
        Ok(()) => message.contains("is paused"),
        Err(_) => false,
    }
}

/// Runs `work` in the background, where closing the workspace waits for it.
pub(crate) fn in_background(shared: &Shared, work: impl Future<Output = ()> + Send + 'static) {
    cleanup::spawn(shared.execs.tasks.track_future(work));
}
