//! Starts a process that runs for longer than one call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::watch;

use super::end::{Ended, conclude};
use super::kill::{self, Target};
use super::launch::{Launched, launch};
use super::plan::{START_TIMEOUT, no_shell, plan};
use super::pump::{Outlet, Pump, Pumped};
use super::raw_exec::RawStreams;
use super::shared::Shared;
use super::supervise::{Outcome, Request, Supervisor};
use crate::command::{Command, TtySize};
use crate::error::{Error, Result};
use crate::output::End;
use crate::path::WorkspacePath;
use crate::process::{Process, ProcessControl};
use crate::signal::Signal;

/// Where what a process reads is written.
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// As much as a pipe of Linux holds.
const PIPE_BYTES: usize = 64 * 1024;

/// How long a terminal may take to be there: the engine answers before its process exists.
const RESIZE_PATIENCE: Duration = Duration::from_secs(5);

/// Starts `command`; see [`Starter::start`](crate::Starter::start).
///
/// Output and errors come over one connection, so a reader of one that stops reading holds up the
/// other as well.
pub(crate) async fn start(shared: &Arc<Shared>, command: Command) -> Result<Process> {
    let dir = command.check_start()?;
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return Err(no_shell("starting a process"));
    }
    shared.guard(begin(shared, command, dir)).await
}

async fn begin(shared: &Arc<Shared>, mut command: Command, dir: WorkspacePath) -> Result<Process> {
    let mut plan = plan(shared, &command, &dir).await?;
    plan.exec.stdin = true;
    let (program, scripted) = (plan.program.clone(), plan.nonce.is_some());
    let Launched { streams, start_line, mut leash, asked, turn } = launch(shared, plan, command.tty).await?;
    let (stdout, our_stdout) = tokio::io::duplex(PIPE_BYTES);
    let (stdin, our_stdin): (DuplexStream, DuplexStream) = tokio::io::duplex(PIPE_BYTES);
    let outlet = Outlet::Pipes { stdout: Some(our_stdout), stderr: command.stream.take() };
    let RawStreams { id, output, mut input } = streams;
    let mut pump = Pump::new(output, start_line, outlet, shared.monitor.clone());
    let started = tokio::time::timeout(START_TIMEOUT, async {
        if let Some(size) = command.tty {
            size_first(shared, &id, &mut input, size, scripted).await;
        }
        match pump.until_started().await? {
            // Without the script only the engine knows when there is a process.
            Pumped::Started if pump.start_line.leader().is_none() => until_process(shared, &id).await,
            other => Ok(other),
        }
    });
    let started = started
        .await
        .map_err(|_| Error::Timeout { operation: format!("starting `{program}`"), after: START_TIMEOUT })??;
    drop(turn);
    leash.target.leader = pump.start_line.leader().map(str::to_owned);
    let dir = if dir.is_root() { String::new() } else { dir.as_str().to_owned() };
    if started != Pumped::Started {
        // Ended before it began: what it printed says why.
        if pump.run(None).await? == Pumped::Ended {
            let start_line = &pump.start_line;
            let ended = Ended { program: &program, dir: &dir, exec: &id, start_line, began: asked };
            if let Err(error) = conclude(shared, &ended).await {
                if matches!(error, Error::Spawn { .. } | Error::OutsideWorkspace { .. }) {
                    leash.release();
                }
                return Err(error);
            }
        }
    }
    let target = leash.target.clone();
    let (outcome, outcomes) = watch::channel(None);
    let (requests, requested) = watch::channel(Request::None);
    let supervisor = Supervisor {
        shared: shared.clone(),
        program,
        dir,
        exec: id.clone(),
        began: Instant::now(),
        awake: shared.monitor.awake(),
        kill_grace: command.kill_grace,
        timeout: command.timeout,
        idle_timeout: command.idle_timeout,
        cancel: command.cancel.take(),
        is_tty: command.tty.is_some(),
        leash,
        requested,
        outcome,
    };
    shared.execs.tasks.spawn(supervisor.run(pump, our_stdin, input));
    let control = Control {
        shared: shared.clone(),
        target,
        exec: id,
        has_tty: command.tty.is_some(),
        requests,
        outcomes,
    };
    Ok(Process::new(stdin, stdout, Arc::new(control)))
}

/// Gives a new terminal its size and then lets the program begin, which the start script holds back
/// until it has read a line: engines before API 1.42 take no size along with the start.
async fn size_first(shared: &Shared, exec: &str, input: &mut Input, size: TtySize, scripted: bool) {
    // A terminal that is not there any more shows in the output.
    drop(resize(shared, exec, size).await);
    if scripted {
        drop(input.write_all(b"\n").await);
        drop(input.flush().await);
    }
}

/// Waits until the engine has a process for an exec, or has failed to make one.
async fn until_process(shared: &Shared, exec: &str) -> Result<Pumped> {
    let mut delay = Duration::from_millis(5);
    loop {
        let state = shared.engine.exec_state(exec).await?;
        if state.running && state.pid.unwrap_or_default() != 0 {
            return Ok(Pumped::Started);
        }
        if !state.running && state.exit_code.is_some() {
            return Ok(Pumped::Ended);
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(Duration::from_millis(50));
    }
}

/// Sets the size of a terminal, which may not be there yet.
async fn resize(shared: &Shared, exec: &str, size: TtySize) -> Result<()> {
    let deadline = Instant::now() + RESIZE_PATIENCE;
    loop {
        match shared.engine.resize_exec(exec, size).await {
            Err(Error::Engine { .. }) if Instant::now() < deadline => {
                let state = shared.engine.exec_state(exec).await?;
                if !state.running && state.exit_code.is_some() {
                    return Err(Error::ProcessDone);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

/// The caller's side of a process.
struct Control {
    shared: Arc<Shared>,
    target: Target,
    exec: String,
    has_tty: bool,
    requests: watch::Sender<Request>,
    outcomes: watch::Receiver<Option<Outcome>>,
}

impl Control {
    fn is_done(&self) -> bool {
        self.outcomes.borrow().is_some()
    }
}

#[async_trait]
impl ProcessControl for Control {
    async fn wait(&self) -> Result<End> {
        let mut outcomes = self.outcomes.clone();
        let ended = async { outcomes.wait_for(Option::is_some).await.map(|outcome| outcome.clone()) };
        let outcome = tokio::select! {
            biased;
            outcome = ended => outcome,
            // The process is still there, and another call may see its end.
            paused = self.shared.monitor.paused_for_long() => return Err(paused),
        };
        match outcome {
            Ok(Some(outcome)) => outcome.into_result(),
            // The supervisor is gone without a word: its runtime has been shut down.
            _ => Err(Error::Closed),
        }
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        if self.is_done() {
            return Err(Error::ProcessDone);
        }
        let sent = self.shared.guard(kill::signal(&self.shared, &self.target, signal)).await?;
        if sent { Ok(()) } else { Err(Error::ProcessDone) }
    }

    async fn resize(&self, size: TtySize) -> Result<()> {
        if !self.has_tty {
            return Err(Error::InvalidArgument {
                reason: "the process was started without a terminal, so there is none to resize".to_owned(),
            });
        }
        if self.is_done() {
            return Err(Error::ProcessDone);
        }
        self.shared.guard(resize(&self.shared, &self.exec, size)).await
    }

    async fn close(&self) -> Result<End> {
        self.requests.send_if_modified(|request| {
            let first = *request == Request::None;
            if first {
                *request = Request::Close;
            }
            first
        });
        self.wait().await
    }

    fn abandon(&self) {
        self.requests.send_replace(Request::Abandon);
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("exec", &self.exec).finish_non_exhaustive()
    }
}
