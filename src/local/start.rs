//! Starts a process that runs for longer than one call.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::process::{ChildStderr, ChildStdin};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::collector::Collector;
use crate::command::Command;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::process::Process;

use super::clock::OutputClock;
use super::driver::{Driver, Started};
use super::pump::Pump;
use super::registry::Registry;
use super::spawn::{Spawned, Streams, spawn};
use super::stdout::Watched;
use super::terminal::{Keyboard, Screen, Terminal};

/// See [`Starter::start`](crate::Starter::start).
pub(super) async fn start(
    registry: &Arc<Registry>,
    dir: OwnedFd,
    env: &Environment,
    mut command: Command,
) -> Result<Process> {
    let begin = Instant::now();
    let (terminal, streams) = streams(&command)?;
    let Spawned { supervised, stdin, stdout, stderr } =
        spawn(registry, dir, env, &command, streams, true).await?;

    let clock = Arc::new(OutputClock::new());
    let collector = Collector::new(command.stream.take(), 0);
    let stderr_passed = pass_on(registry, stderr, collector, clock.clone());
    let close = CancellationToken::new();
    let (sender, outcome) = watch::channel(None);
    let probe = match (command.idle_timeout, &terminal, &stdout) {
        (None, _, _) | (_, None, None) => None,
        (Some(_), Some(terminal), _) => probe(terminal.as_fd()),
        (Some(_), None, Some(stdout)) => probe(stdout.as_fd()),
    };
    let driver = Driver {
        supervised: supervised.clone(),
        closing: registry.closing().clone(),
        close: close.clone(),
        cancel: command.cancel.take(),
        deadline: command.timeout.map(|timeout| begin + timeout),
        idle_timeout: command.idle_timeout,
        kill_grace: command.kill_grace,
        clock: clock.clone(),
        unread: probe.as_ref().map(Arc::downgrade),
        stderr_passed,
    };
    registry.spawn_driver(driver.run(sender));

    let control = Arc::new(Started::new(supervised, terminal.clone(), close, outcome));
    Ok(match (terminal, stdin, stdout) {
        (Some(terminal), _, _) => {
            let screen = Watched::new(Screen(terminal.clone()), clock, probe);
            Process::new(Keyboard(terminal), screen, control)
        }
        (None, stdin, Some(stdout)) => pipes(stdin, Watched::new(stdout, clock, probe), control),
        (None, stdin, None) => pipes(stdin, tokio::io::empty(), control),
    })
}

/// What the process's standard streams are, and this side of them when that is a terminal.
fn streams(command: &Command) -> Result<(Option<Terminal>, Streams)> {
    let Some(size) = command.tty else { return Ok((None, Streams::Pipes { stdin: true })) };
    match Terminal::open(size) {
        Ok((terminal, slave)) => Ok((Some(terminal), Streams::Terminal(slave))),
        Err(error) => Err(Error::from_io("open", "a terminal", error)),
    }
}

/// Passes standard error on, or discards it, in the background. The token is cancelled when it has
/// ended.
fn pass_on(
    registry: &Registry,
    stderr: Option<ChildStderr>,
    collector: Collector,
    clock: Arc<OutputClock>,
) -> CancellationToken {
    let passed = CancellationToken::new();
    let guard = passed.clone().drop_guard();
    let mut pump = Pump::new(None, stderr, collector);
    registry.spawn(async move {
        pump.run(&clock).await;
        drop(guard);
    });
    passed
}

/// Another descriptor of what is read, to be asked for unread bytes. Without one unread output is
/// not known of, and counts as silence.
fn probe(output: BorrowedFd<'_>) -> Option<Arc<OwnedFd>> {
    output.try_clone_to_owned().ok().map(Arc::new)
}

fn pipes(
    stdin: Option<ChildStdin>,
    stdout: impl AsyncRead + Send + 'static,
    control: Arc<Started>,
) -> Process {
    match stdin {
        Some(stdin) => Process::new(stdin, stdout, control),
        None => Process::new(tokio::io::sink(), stdout, control),
    }
}
