//! Ends processes in a container, where the engine has no call for it: a script in the container
//! looks for them and signals them.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerStateStatusEnum as Status;
use bollard::query_parameters::KillContainerOptionsBuilder;
use futures::StreamExt as _;
use tokio::time::Instant;

use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::launch::in_background;
use super::plan::no_shell;
use super::raw_exec::RawExec;
use super::shared::{Shared, UserIds};
use crate::error::{Error, Result};
use crate::output::OutputChunk;
use crate::signal::Signal;

const SCRIPT: &str = include_str!("scripts/kill.sh");

/// How long one run of the script may take. It reads a few files a process.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long ending the processes of one command is tried.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what cleans up after itself may take for that.
const TIDY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long closing a workspace waits for what still runs in the background: it includes the
/// polite steps of ending a process and a kill.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the engine may take to notice that a process has ended.
const NOTICE: Duration = Duration::from_millis(500);

/// More output than the script can have.
const MAX_REPORT: usize = 1024 * 1024;

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
}

/// Sends `signal` once to every process of a command; whether there was one.
pub(crate) async fn signal(shared: &Shared, target: &Target, signal: Signal) -> Result<bool> {
    let swept =
        sweep(&shared.engine, shared, target.user, signal.number(), &target.marker, &target.known()).await?;
    Ok(swept.met)
}

/// Whether a process can be started in the container, and so its first process lives.
pub(crate) async fn is_alive(shared: &Shared) -> bool {
    sweep(&shared.engine, shared, shared.user, 0, "no variable is called this=", &[]).await.is_ok()
}

/// Ends every process of a command, and returns once none is left.
pub(crate) async fn kill(shared: &Shared, target: &Target) -> Result<()> {
    kill_by(&shared.engine, shared, target).await
}

async fn kill_by(engine: &Engine, shared: &Shared, target: &Target) -> Result<()> {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let ended = || async { has_ended(engine, target.exec.as_deref()).await };
    match sweep_until(engine, shared, target.user, &target.marker, target.known(), deadline, ended).await {
        Ok(()) => Ok(()),
        Err(error) if shared.owned => {
            // Better no workspace than one where something runs on that was to be ended.
            tracing::warn!(container = %shared.id, %error, "killing the container: a command in it cannot be ended");
            let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
            let call = engine.docker().kill_container(&shared.id, Some(options));
            engine.call("kill the container", SLOW_CALL_TIMEOUT, call).await?;
            shared.monitor.check(engine, &shared.id).await
        }
        Err(error) => Err(error),
    }
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
    let mut signal = Signal::TERM.number();
    let known = target.known();
    while let Ok(swept) = sweep(engine, shared, target.user, signal, &target.marker, &known).await {
        if swept.left.is_empty() || Instant::now() >= deadline {
            return;
        }
        signal = 0;
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
    let deadline = Instant::now() + KILL_TIMEOUT;
    let marker = shared.execs.family_marker();
    for user in users {
        sweep_until(&shared.engine, shared, user, &marker, Vec::new(), deadline, || async { true }).await?;
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
            Ok(state) if !state.running => {}
            Err(Error::Engine { status: Some(404), .. }) => {}
            _ if !has_container(&shared.engine, shared).await => return Ok(()),
            Ok(_) => return Err(no_shell("ending a command that still runs")),
            Err(error) => return Err(error),
        }
        shared.execs.note_ended(&exec);
    }
    Ok(())
}

/// Sweeps with SIGKILL until nothing is left and `ended` agrees.
async fn sweep_until<E: Future<Output = bool>>(
    engine: &Engine,
    shared: &Shared,
    user: UserIds,
    marker: &str,
    mut known: Vec<String>,
    deadline: Instant,
    ended: impl Fn() -> E,
) -> Result<()> {
    loop {
        let mut swept = sweep(engine, shared, user, Signal::KILL.number(), marker, &known).await;
        if let Ok(Swept { left, .. }) = &swept
            && !left.is_empty()
            && user != ROOT
        {
            // What changed its user cannot be signaled by the command's own.
            swept = sweep(engine, shared, ROOT, Signal::KILL.number(), marker, left).await;
        }
        let problem = match swept {
            Ok(Swept { left, .. }) if left.is_empty() => {
                if ended().await {
                    return Ok(());
                }
                "the engine says that it still runs".to_owned()
            }
            Ok(Swept { left, .. }) => {
                let count = left.len();
                known.extend(left.into_iter().filter(|process| !known.contains(process)).collect::<Vec<_>>());
                format!("{count} of its processes cannot be ended")
            }
            Err(error) => {
                if !has_container(engine, shared).await {
                    return Ok(());
                }
                error.to_string()
            }
        };
        if Instant::now() >= deadline {
            return Err(Error::Engine {
                operation: "end a command".to_owned(),
                status: None,
                message: problem,
            });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether the engine has seen the end of an exec. It may not even have seen its start when a
/// command is dropped at once, so a while is given.
async fn has_ended(engine: &Engine, exec: Option<&str>) -> bool {
    let Some(exec) = exec else { return true };
    let deadline = Instant::now() + NOTICE;
    loop {
        match engine.exec_state(exec).await {
            Ok(state) if !state.running && state.exit_code.is_some() => return true,
            Err(Error::Engine { status: Some(404), .. }) => return true,
            _ if Instant::now() >= deadline => return false,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Whether the container still runs; a paused one does. The monitor is not asked, which knows of a
/// closed workspace only that it is closed.
async fn has_container(engine: &Engine, shared: &Shared) -> bool {
    match engine.inspect(&shared.id).await {
        Ok(Some(container)) => {
            let state = container.state.unwrap_or_default();
            matches!(state.status, Some(Status::RUNNING | Status::PAUSED))
                && shared.monitor.is_same_start(state.started_at.as_ref())
        }
        Ok(None) | Err(Error::NoEngine { .. }) => false,
        Err(_) => true,
    }
}

/// What one run of the script came to.
#[derive(Debug, PartialEq, Eq)]
struct Swept {
    /// The processes that it met last, as `pid:start`.
    left: Vec<String>,
    /// Whether it met any at all.
    met: bool,
}

/// Runs the script once as `user`.
async fn sweep(
    engine: &Engine,
    shared: &Shared,
    user: UserIds,
    signal: i32,
    marker: &str,
    known: &[String],
) -> Result<Swept> {
    let Some(shell) = &shared.shell else { return Err(no_shell("ending a command")) };
    let mut args: Vec<String> = [shell, "-c", SCRIPT, shell].map(str::to_owned).to_vec();
    args.extend([signal.to_string(), marker.to_owned()]);
    // The script finds the rest again by itself; more would not fit into its arguments.
    args.extend(known.iter().take(1024).cloned());
    let exec = RawExec { args, env: Vec::new(), user: user.to_string(), dir: "/".to_owned(), stdin: false };
    let run = async {
        let _gate = shared.pause_gate.read().await;
        let mut streams = engine.start_exec(&shared.id, exec).await?;
        let mut report = Vec::new();
        while let Some(chunk) = streams.output.next().await {
            if let OutputChunk::Stdout(bytes) = chunk?
                && report.len() < MAX_REPORT
            {
                report.extend_from_slice(&bytes);
            }
        }
        Ok(report)
    };
    let report = tokio::time::timeout(SWEEP_TIMEOUT, run).await.map_err(|_| Error::Timeout {
        operation: "looking for the processes of a command".to_owned(),
        after: SWEEP_TIMEOUT,
    })??;
    parse_report(&String::from_utf8_lossy(&report)).ok_or_else(|| Error::Engine {
        operation: "look for the processes of a command".to_owned(),
        status: None,
        message: String::from_utf8_lossy(&report).trim().to_owned(),
    })
}

/// What the script met; `None` when it did not get to its end.
fn parse_report(report: &str) -> Option<Swept> {
    let (left, rounds) = report.strip_suffix('\n')?.strip_prefix("left ")?.split_once("\ndone ")?;
    let met = rounds.parse::<u32>().ok()? > 0;
    Some(Swept { left: left.split_whitespace().map(str::to_owned).collect(), met })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_report_counts() {
        let left = vec!["12:3".to_owned(), "4:5".to_owned()];
        assert_eq!(parse_report("left 12:3 4:5 \ndone 100\n"), Some(Swept { left, met: true }));
        assert_eq!(parse_report("left \ndone 1\n"), Some(Swept { left: Vec::new(), met: true }));
        assert_eq!(parse_report("left \ndone 0\n"), Some(Swept { left: Vec::new(), met: false }));
        for broken in ["", "left 12:3 \n", "left 12:3 \ndone", "OCI runtime exec failed: no\r\n"] {
            assert_eq!(parse_report(broken), None, "{broken}");
        }
    }
}
