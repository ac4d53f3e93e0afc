//! Starts a process that runs for longer than one call.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::collector::Collector;
use crate::command::Command;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::process::Process;

use super::clock::OutputClock;
use super::driver::{Driver, Outcome, Started};
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
    let (terminal, streams) = match command.tty {
        Some(size) => {
            let opened = Terminal::open(size);
            let (terminal, slave) = opened.map_err(|error| Error::from_io("open", "a terminal", error))?;
            (Some(terminal), Streams::Terminal(slave))
        }
        None => (None, Streams::Pipes { stdin: true }),
    };
    let Spawned { supervised, stdin, stdout, stderr } =
        spawn(registry, dir, env, &command, streams, true).await?;

    let clock = Arc::new(OutputClock::new());
    let mut pump = Pump::new(None, stderr, Collector::new(command.stream.take(), 0));
    let stderr_clock = clock.clone();
    let stderr_passed = CancellationToken::new();
    let passed = stderr_passed.clone().drop_guard();
    registry.spawn(async move {
        pump.run(&stderr_clock).await;
        drop(passed);
    });

    let close = CancellationToken::new();
    let (sender, outcome) = tokio::sync::watch::channel::<Option<Outcome>>(None);
    let unread = |fd: std::os::fd::BorrowedFd<'_>| -> Option<Arc<OwnedFd>> {
        // Without a copy of the descriptor unread output is not known, and counts as silence.
        command.idle_timeout.and_then(|_| fd.try_clone_to_owned().ok()).map(Arc::new)
    };
    let probe = match (&terminal, &stdout) {
        (Some(terminal), _) => unread(terminal.as_fd()),
        (None, Some(stdout)) => unread(stdout.as_fd()),
        (None, None) => None,
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

fn pipes(
    stdin: Option<tokio::process::ChildStdin>,
    stdout: impl AsyncRead + Send + 'static,
    control: Arc<Started>,
) -> Process {
    match stdin {
        Some(stdin) => Process::new(stdin, stdout, control),
        None => Process::new(tokio::io::sink(), stdout, control),
    }
}
