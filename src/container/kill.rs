//! Ends processes in a container, where the engine has no call for it: a script in the container
//! looks for them and signals them.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerStateStatusEnum as Status;
use bollard::query_parameters::KillContainerOptionsBuilder;
use tokio::time::Instant;

use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::kill_queue::Wanted;
use super::launch::in_background;
use super::patience::{Patience, Trouble};
use super::plan::no_shell;
use super::shared::{Shared, UserIds};
use super::sweep::{Swept, sweep};
use crate::error::{Error, Result};
use crate::signal::Signal;

/// How long what cleans up after itself may take for that.
const TIDY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long closing a workspace waits for what still runs in the background: it includes the
/// polite steps of ending a process and a kill.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the engine may take to notice that a process has ended.
const NOTICE: Duration = Duration::from_millis(500);

/// How quickly an engine tells the state of a container that has time for it. One that does not may
/// be the reason why a kill does not get on.
const QUICK: Duration = Duration::from_secs(1);

/// How long a paused container is left before it is looked at again.
const PAUSED_DELAY: Duration = Duration::from_millis(500);

const ROOT: UserIds = UserIds { uid: 0, gid: 0 };

/// The processes of one command.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What their environment holds.
    marker: String,
    user: UserIds,
    /// The engine's id of the exec, once it is known.
    pub(crate) exec: Option<String>,
    /// The first process as `pid:start`, once it is known.
    pub(crate) leader: Option<String>,
    /// Whether it cleans up after itself on SIGTERM.
    is_tidy: bool,
}

impl Target {
    pub(crate) fn new(marker: String, user: UserIds) -> Self {
        Target { marker, user, exec: None, leader: None, is_tidy: false }
    }

    /// What cleans up after itself on SIGTERM, and so gets that and some time first when it is
    /// dropped.
    pub(crate) fn tidy(self) -> Self {
        Target { is_tidy: true, ..self }
    }

    fn known(&self) -> Vec<String> {
        self.leader.iter().cloned().collect()
    }

    fn wanted(&self, signal: Signal) -> Wanted {
        let (signal, known) = (signal.number(), self.known());
        Wanted { user: self.user, signal, marker: self.marker.clone(), known }
    }
}

/// Sends `signal` once to every process of a command; whether there was one.
pub(crate) async fn signal(shared: &Shared, target: &Target, signal: Signal) -> Result<bool> {
    let swept =
        sweep(&shared.engine, shared, target.user, signal.number(), &[&target.marker], &target.known())
            .await?;
    Ok(swept.met)
}

/// Whether a process can be started in the container, and so its first process lives.
pub(crate) async fn is_alive(shared: &Shared) -> bool {
    sweep(&shared.engine, shared, shared.user, 0, &["there-is-no-such-variable="], &[]).await.is_ok()
}

/// Ends every process of a command, and returns once none is left.
pub(crate) async fn kill(shared: &Shared, target: &Target) -> Result<()> {
    kill_by(&shared.engine, shared, target).await
}

async fn kill_by(engine: &Engine, shared: &Shared, target: &Target) -> Result<()> {
    if shared.shell.is_none() {
        return Err(no_shell("ending a command"));
    }
    let progress = || async { progress(engine, target.exec.as_deref()).await };
    let wanted = target.wanted(Signal::KILL);
    match sweep_until(engine, shared, wanted, progress).await {
        Err(Failed { error, runs_on: true }) if shared.owned => {
            // Better no workspace than one where something runs on that was to be ended.
            tracing::warn!(container = %shared.id, %error, "killing the container: a command in it cannot be ended");
            if let Err(problem) = kill_container(engine, shared).await {
                tracing::error!(container = %shared.id, error = %problem, "the container could not be killed");
                return Err(error);
            }
            shared.monitor.check(engine, &shared.id).await
        }
        Err(failed) => Err(failed.error),
        Ok(()) => {
            target.exec.iter().for_each(|exec| shared.execs.note_ended(exec));
            Ok(())
        }
    }
}

/// Ends all that runs in the container, and so the container.
pub(crate) async fn kill_container(engine: &Engine, shared: &Shared) -> Result<()> {
    let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
    let call = engine.docker().kill_container(&shared.id, Some(options));
    engine.call("kill the container", SLOW_CALL_TIMEOUT, call).await
}

/// Ends every process of a command in the background; also outside of a runtime.
pub(crate) fn spawn_kill(shared: &Arc<Shared>, target: Target) {
    let owner = shared.clone();
    in_background(shared, async move {
        // A connection of its own: those of the workspace are driven by another runtime, which may be
        // shutting down.
        let killed = match Engine::connect_to(owner.engine.address()).await {
            Ok(engine) => {
                if target.is_tidy {
                    ask_to_end(&engine, &owner, &target).await;
                }
                kill_by(&engine, &owner, &target).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = killed {
            tracing::error!(container = %owner.id, %error, "a dropped command could not be ended");
        }
    });
}

/// Sends SIGTERM to every process of a command, and gives them some time. What does not work out is
/// left to a kill.
async fn ask_to_end(engine: &Engine, shared: &Shared, target: &Target) {
    let deadline = Instant::now() + TIDY_TIMEOUT;
    let mut wanted = target.wanted(Signal::TERM);
    while let Ok(swept) = shared.execs.kills.sweep(engine, shared, &wanted).await {
        if swept.left.is_empty() || Instant::now() >= deadline {
            return;
        }
        wanted.signal = 0;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ends every process that this workspace has started, and waits for what it does in the
/// background. Works on a closed workspace; one whose container is gone has none left.
pub(crate) async fn end_everything(shared: &Arc<Shared>) -> Result<()> {
    shared.execs.tasks.close();
    let waited = tokio::time::timeout(BACKGROUND_TIMEOUT, shared.execs.tasks.wait()).await;
    if shared.shell.is_none() {
        return check_ended(shared).await;
    }
    let users = shared.execs.users();
    let marker = shared.execs.family_marker();
    for user in users {
        let wanted = Target::new(marker.clone(), user).wanted(Signal::KILL);
        let nothing_more = || async { Progress::Ended };
        let ended = sweep_until(&shared.engine, shared, wanted, nothing_more).await;
        ended.map_err(|failed| failed.error)?;
    }
    waited.map_err(|_| Error::Timeout {
        operation: "ending the commands of the workspace".to_owned(),
        after: BACKGROUND_TIMEOUT,
    })
}

/// Fails when a command of the workspace still runs in a container without a shell, where nothing
/// can end it.
async fn check_ended(shared: &Shared) -> Result<()> {
    for exec in shared.execs.unleashed() {
        match shared.engine.exec_state(&exec).await {
            Ok(exec) if !exec.running => {}
            Err(Error::Engine { status: Some(404), .. }) => {}
            _ if matches!(state(&shared.engine, shared).await, State::Gone) => return Ok(()),
            Ok(_) => return Err(no_shell("ending a command that still runs")),
            Err(error) => return Err(error),
        }
        shared.execs.note_ended(&exec);
    }
    Ok(())
}

/// Why processes could not be ended.
struct Failed {
    error: Error,
    /// Whether it is certain that they run on, and not only that the engine does not answer.
    runs_on: bool,
}

/// How far the engine has got with an exec.
enum Progress {
    /// It may not have started yet.
    Starting,
    Runs,
    Ended,
}

/// What has become of the container.
enum State {
    Gone,
    Paused,
    /// It runs, and the engine said so at once.
    Runs,
    /// The engine does not say, or is slow.
    Unsure,
}

/// Sweeps with SIGKILL until nothing is left and the engine agrees.
async fn sweep_until<E: Future<Output = Progress>>(
    engine: &Engine,
    shared: &Shared,
    mut wanted: Wanted,
    progress: impl Fn() -> E,
) -> Result<(), Failed> {
    let mut patience = Patience::new();
    loop {
        let trouble = match sweep_once(engine, shared, &wanted).await {
            Ok(Swept { left, .. }) if left.is_empty() => match progress().await {
                Progress::Ended => return Ok(()),
                Progress::Starting => Trouble::Slow("the engine has not started it yet".to_owned()),
                Progress::Runs => Trouble::Left("the engine says that it still runs".to_owned()),
            },
            Ok(Swept { left, .. }) => {
                let words = format!("{} processes of what is being ended cannot be", left.len());
                // Nothing else may tell any more what they belong to.
                wanted.known.extend(left);
                wanted.known.sort_unstable();
                wanted.known.dedup();
                Trouble::Left(words)
            }
            Err(error @ Error::Timeout { .. }) => Trouble::Slow(error.to_string()),
            Err(error) => Trouble::Refused(error.to_string()),
        };
        let trouble = match state(engine, shared).await {
            State::Gone => return Ok(()),
            State::Paused => {
                patience.rest();
                tokio::time::sleep(PAUSED_DELAY).await;
                continue;
            }
            State::Runs => trouble,
            State::Unsure => trouble.of_a_slow_engine(),
        };
        if let Some(runs_on) = patience.is_over(&trouble) {
            let message = format!("{trouble}; it may still run");
            let error = Error::Engine { operation: "end a command".to_owned(), status: None, message };
            return Err(Failed { error, runs_on });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// One sweep, and a second one as root for what it did not end.
async fn sweep_once(engine: &Engine, shared: &Shared, wanted: &Wanted) -> Result<Swept> {
    let kills = &shared.execs.kills;
    let swept = kills.sweep(engine, shared, wanted).await?;
    if swept.left.is_empty() || wanted.user == ROOT {
        return Ok(swept);
    }
    // What changed its user cannot be signaled by the command's own.
    let as_root = Wanted { user: ROOT, known: swept.left, ..wanted.clone() };
    kills.sweep(engine, shared, &as_root).await
}

/// How far the engine has got with an exec. It may not even have started it when a command is
/// dropped at once, and notices an end late, so a while is given.
async fn progress(engine: &Engine, exec: Option<&str>) -> Progress {
    let Some(exec) = exec else { return Progress::Ended };
    let deadline = Instant::now() + NOTICE;
    loop {
        let progress = match engine.exec_state(exec).await {
            Ok(state) if !state.running && state.exit_code.is_some() => return Progress::Ended,
            Err(Error::Engine { status: Some(404), .. }) => return Progress::Ended,
            Ok(state) if state.pid.unwrap_or(0) != 0 => Progress::Runs,
            _ => Progress::Starting,
        };
        if Instant::now() >= deadline {
            return progress;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What has become of the container. The monitor knows of a closed workspace only that it is closed,
/// so it is asked last.
async fn state(engine: &Engine, shared: &Shared) -> State {
    if matches!(engine.is_paused(&shared.id).await, Ok(true)) {
        return State::Paused;
    }
    let asked = Instant::now();
    match engine.inspect(&shared.id).await {
        Ok(Some(container)) => {
            let state = container.state.unwrap_or_default();
            match state.status {
                Some(Status::RUNNING | Status::PAUSED)
                    if !shared.monitor.is_same_start(state.started_at.as_ref()) =>
                {
                    State::Gone
                }
                Some(Status::RUNNING) if asked.elapsed() <= QUICK => State::Runs,
                Some(Status::RUNNING) => State::Unsure,
                Some(Status::PAUSED) => State::Paused,
                _ => State::Gone,
            }
        }
        Ok(None) => State::Gone,
        Err(Error::NoEngine { .. }) if matches!(shared.monitor.check_open(), Err(Error::Gone { .. })) => {
            State::Gone
        }
        Err(_) => State::Unsure,
    }
}
