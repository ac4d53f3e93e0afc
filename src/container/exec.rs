//! Runs a command to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::awake::Awake;
use super::end::{Ended, Exit, conclude};
use super::launch::{Launched, Leash, launch};
use super::plan::{START_TIMEOUT, plan};
use super::pump::{InputEnd, Outlet, Pump, Pumped, feed};
use super::shared::Shared;
use crate::collector::Collector;
use crate::command::{Command, Leftovers};
use crate::deadline::cancelled;
use crate::error::{Error, Result};
use crate::files::Content;
use crate::output::{End, Output};
use crate::path::WorkspacePath;

/// How long output is still carried once the processes of a command were killed: what is on its
/// way comes at once, and only a reader that has stopped reading takes longer.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Runs `command` to its end; see [`Workspace::exec`](crate::Workspace::exec).
///
/// The engine adds to its environment what it knows of the container and its user (`HOSTNAME`,
/// `HOME`, and `PATH` where there is none), and the workspace its marker.
pub(crate) async fn exec(shared: &Arc<Shared>, command: Command) -> Result<Output> {
    let dir = command.check_exec()?;
    shared.monitor.check_open()?;
    shared.guard(run(shared, command, dir)).await
}

/// Why a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Ended,
    TimedOut,
    IdleTimedOut,
    Cancelled,
}

async fn run(shared: &Arc<Shared>, mut command: Command, dir: WorkspacePath) -> Result<Output> {
    let plan = plan(shared, &command, &dir).await?;
    let program = plan.program.clone();
    let Launched { streams, start_line, mut leash, asked, turn } = launch(shared, plan, None).await?;
    let collector = Collector::new(command.stream.take(), command.output_limit);
    let mut pump = Pump::new(streams.output, start_line, Outlet::Collect(collector), shared.monitor.clone());
    let started = tokio::time::timeout(START_TIMEOUT, pump.until_started())
        .await
        .map_err(|_| Error::Timeout { operation: format!("starting `{program}`"), after: START_TIMEOUT })??;
    drop(turn);
    leash.target.leader = pump.start_line.leader().map(str::to_owned);
    let awake = shared.monitor.awake();
    let exit = Exit::default();

    let cause = match started {
        Pumped::Started => {
            let input = command.stdin.take().unwrap_or_else(Content::empty).into_reader();
            let input_end = if leash.can_end() { InputEnd::AfterLast } else { InputEnd::Always };
            let feeding = feed(input, streams.input, input_end);
            let watching = watch(&command, &awake, &mut pump, &mut leash, feeding);
            tokio::select! {
                cause = watching => cause?,
                never = exit.watch(shared, &streams.id) => match never {},
            }
        }
        _ => Cause::Ended,
    };
    let output_ended = Instant::now();
    let end = match cause {
        Cause::TimedOut => End::TimedOut,
        Cause::IdleTimedOut => End::IdleTimedOut,
        Cause::Cancelled => return Err(Error::Cancelled),
        Cause::Ended => {
            let ended = Ended {
                program: &program,
                dir: if dir.is_root() { "" } else { dir.as_str() },
                exec: &streams.id,
                start_line: &pump.start_line,
                began: asked,
            };
            match conclude(shared, &ended).await {
                Err(error @ (Error::Spawn { .. } | Error::OutsideWorkspace { .. })) => {
                    // Nothing was started, so there is nothing to end.
                    leash.release();
                    return Err(error);
                }
                concluded => concluded?,
            }
        }
    };
    let exited = exit.before(output_ended).filter(|_| cause == Cause::Ended);
    if cause == Cause::Ended {
        match command.leftovers {
            Leftovers::Kill => leash.kill().await?,
            Leftovers::Keep => leash.release(),
        }
    }
    let Outlet::Collect(collector) = pump.outlet else { unreachable!("the outlet was made above") };
    let (stdout, stderr) = collector.finish();
    let ran = exited.unwrap_or(output_ended).saturating_duration_since(asked);
    let mut output = Output::new(end, stdout, stderr, ran);
    output.output_detached = exited.is_some();
    Ok(output)
}

/// Carries input and output until the command is over, and ends it when its time is up.
async fn watch(
    command: &Command,
    awake: &Awake,
    pump: &mut Pump,
    leash: &mut Leash,
    feeding: impl Future<Output = std::io::Result<()>>,
) -> Result<Cause> {
    let mut feeding = std::pin::pin!(feeding);
    let mut fed = false;
    let mut time_up = std::pin::pin!(awake.passed(command.timeout));
    let mut cancel = std::pin::pin!(cancelled(command.cancel.as_ref()));
    let mut silent = false;
    let mut failed_input = None;
    let cause = {
        let mut running = std::pin::pin!(pump.run(command.idle_timeout));
        let cause = loop {
            tokio::select! {
                biased;
                pumped = &mut running => {
                    silent = pumped? == Pumped::Silent;
                    break if silent { Cause::IdleTimedOut } else { Cause::Ended };
                }
                () = &mut time_up => break Cause::TimedOut,
                () = &mut cancel => break Cause::Cancelled,
                done = &mut feeding, if !fed => {
                    fed = true;
                    failed_input = done.err();
                    if failed_input.is_some() && leash.can_end() {
                        break Cause::Cancelled;
                    }
                }
            }
        };
        if cause != Cause::Ended && !silent {
            stop(command, leash, &mut running).await?;
        }
        cause
    };
    if silent {
        stop(command, leash, pump.run(None)).await?;
    }
    match failed_input {
        Some(error) => Err(Error::from_io("read", "standard input", error)),
        None => Ok(cause),
    }
}

/// Ends a command, carrying what it still prints.
async fn stop(
    command: &Command,
    leash: &mut Leash,
    rest: impl Future<Output = Result<Pumped>>,
) -> Result<()> {
    let mut rest = std::pin::pin!(rest);
    let mut rest_done = false;
    if let Some(grace) = command.kill_grace {
        let ask = async {
            let asked = leash.signal(crate::Signal::TERM).await;
            tokio::time::sleep(grace).await;
            asked
        };
        tokio::select! {
            // A failed request is made up for by SIGKILL.
            asked = ask => drop(asked),
            _ = &mut rest => rest_done = true,
        }
    }
    let mut killing = std::pin::pin!(leash.kill());
    loop {
        tokio::select! {
            killed = &mut killing => {
                killed?;
                break;
            }
            _ = &mut rest, if !rest_done => rest_done = true,
        }
    }
    if !rest_done {
        drop(tokio::time::timeout(AFTER_KILL, rest).await);
    }
    Ok(())
}
