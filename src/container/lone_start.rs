//! Starts a command in a directory that the engine has to enter, because no script can.
//!
//! The engine takes a path and follows the links in it, when it starts the process and not when it
//! is asked. So the path is looked up, and is used, while nothing runs that could swap a link in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::engine::is_refusal;
use super::files::{Last, Pause, resolve, starts_are_done};
use super::kill::kill_container;
use super::launch::tell;
use super::plan::START_TIMEOUT;
use super::raw_exec::{RawExec, RawStreams};
use super::shared::Shared;
use super::spawn_error::spawn;
use crate::command::TtySize;
use crate::descriptor::Kind;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::path::WorkspacePath;

/// Starts `exec` in `dir`, and returns once the engine has entered it.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    mut exec: RawExec,
    dir: &WorkspacePath,
    tty: Option<TtySize>,
    program: &str,
) -> Result<RawStreams> {
    let _gate = shared.pause_gate.write().await;
    if !nothing_runs(shared).await? {
        return Err(beside_others(dir));
    }
    exec.dir = look_up(shared, dir, program).await?;
    shared.mark_used();
    let started = match tell(shared, exec, tty).await {
        Ok(streams) => entered(shared, &streams.id).await.map(|()| streams),
        Err(error) if is_refusal(&error) => return Err(error),
        Err(error) => Err(error),
    };
    if let Err(error) = &started {
        // It may still start, when the gate is open and the directory is another one.
        tracing::warn!(container = %shared.id, %error, "killing the container: a command may start outside");
        if let Err(error) = kill_container(&shared.engine, shared).await {
            tracing::error!(container = %shared.id, %error, "the container could not be killed");
        }
    }
    started
}

/// Whether nothing but the container's first process runs, which does nothing.
async fn nothing_runs(shared: &Arc<Shared>) -> Result<bool> {
    if shared.is_quiet() {
        return Ok(true);
    }
    if !shared.exclusive || shared.execs.lost_a_start() || !starts_are_done(shared).await {
        return Ok(false);
    }
    // The engine lists numbers first and looks at their processes afterwards. What forks all the time
    // and ends would be missed, were it not held.
    let pause = Pause::begin(shared).await?;
    let count = shared.engine.count_processes(&shared.id).await;
    pause.end().await?;
    Ok(count? == 1)
}

/// The absolute path of a directory, without links.
async fn look_up(shared: &Shared, dir: &WorkspacePath, program: &str) -> Result<String> {
    let problem = match resolve(shared, dir, Last::Follow).await {
        Ok(place) => match &place.found {
            Some(found) if found.is_dir() => return Ok(place.path()),
            Some(_) => "is not a directory",
            None => "leads nowhere",
        },
        Err(Error::NotFound { .. }) => "leads nowhere",
        Err(Error::NotADirectory { .. }) => "leads through something that is not a directory",
        Err(Error::TooManyLinks { .. }) => "leads through too many links",
        Err(error) => return Err(error),
    };
    // A missing container is answered like a missing path.
    shared.monitor.check(&shared.engine, &shared.id).await?;
    Err(spawn(program, SpawnErrorKind::BadDirectory, &format!("`{dir}` {problem}")))
}

/// Waits until the engine has started an exec, or has failed to.
async fn entered(shared: &Shared, exec: &str) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match shared.engine.exec_state(exec).await {
            Ok(state) if state.pid.unwrap_or(0) != 0 || state.exit_code.is_some() => break,
            Err(Error::Engine { status: Some(404), .. }) => break,
            Err(error @ Error::NoEngine { .. }) => return Err(error),
            _ if Instant::now() >= deadline => {
                let operation = "starting a command, whose container was killed since it might start later";
                return Err(Error::Timeout { operation: operation.to_owned(), after: START_TIMEOUT });
            }
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    shared.execs.note_started(exec);
    Ok(())
}

fn beside_others(dir: &WorkspacePath) -> Error {
    Error::Unsupported {
        operation: format!("starting a command in `{dir}`"),
        backend: Kind::Container,
        reason: "no POSIX shell in the image can enter the directory step by step, and another process \
                 may be running that could swap it for a link while the engine enters it; use the \
                 workspace root, wait until nothing else runs in a container that was created and is not \
                 to be kept, or use an image that has `/bin/sh`"
            .to_owned(),
    }
}
