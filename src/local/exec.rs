//! Runs one command to its end.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::collector::Collector;
use crate::command::{Command, Leftovers};
use crate::deadline::{cancelled, passed};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::files::Content;
use crate::output::{End, Output};
use crate::signal::Signal;

use super::clock::OutputClock;
use super::patience;
use super::pump::{CHUNK_BYTES, Pump, discard};
use super::registry::Registry;
use super::spawn::{Spawned, Streams, spawn};
use super::supervised::{KillOnDrop, Supervised};

/// See [`Workspace::exec`](crate::Workspace::exec).
pub(super) async fn exec(
    registry: &Arc<Registry>,
    dir: OwnedFd,
    env: &Environment,
    mut command: Command,
) -> Result<Output> {
    let begin = Instant::now();
    let stdin = command.stdin.take().filter(|content| !content.is_empty());
    let streams = Streams::Pipes { stdin: stdin.is_some() };
    let Spawned { supervised, stdin: pipe, stdout, stderr } =
        spawn(registry, dir, env, &command, streams, false).await?;
    let collector = Collector::new(command.stream.take(), command.output_limit);
    let mut run = Run {
        guard: Some(KillOnDrop::new(supervised.clone())),
        supervised,
        pump: Pump::new(stdout, stderr, collector),
        clock: OutputClock::new(),
    };
    let deadline = command.timeout.map(|timeout| begin + timeout);
    let stop = run.until_end(registry.closing(), &command, deadline, stdin.zip(pipe)).await;
    let end = match stop {
        Cause::Exited(end) => {
            let end = end?;
            if let Err(error) = run.drain(&command, deadline, registry.closing()).await {
                run.end(None).await;
                return Err(error);
            }
            end
        }
        Cause::Ended(result) => {
            run.end(command.kill_grace).await;
            result?
        }
    };
    Ok(run.into_output(registry, end, begin.elapsed()))
}

/// Why a command no longer runs, or shall not.
enum Cause {
    /// The leader has exited by itself.
    Exited(Result<End>),
    /// Everything is to be ended, and this is the outcome.
    Ended(Result<End>),
}

/// A command while it runs.
struct Run {
    /// Kills everything when this future is dropped; let go of once the command has exited and may
    /// leave something behind.
    guard: Option<KillOnDrop>,
    supervised: Arc<Supervised>,
    pump: Pump,
    clock: OutputClock,
}

impl Run {
    /// Passes input and output on until the command exits or is to be ended.
    async fn until_end(
        &mut self,
        closing: &CancellationToken,
        command: &Command,
        deadline: Option<Instant>,
        input: Option<(Content, ChildStdin)>,
    ) -> Cause {
        let mut output = pin!(self.pump.run(&self.clock));
        let mut input = pin!(feed(input));
        let mut exited = pin!(self.supervised.exited());
        let mut silent = pin!(self.clock.silent_for(command.idle_timeout));
        let (mut output_ended, mut input_ended) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return Cause::Ended(Err(Error::Closed)),
                () = cancelled(command.cancel.as_ref()) => return Cause::Ended(Err(Error::Cancelled)),
                end = &mut exited => return Cause::Exited(end),
                () = passed(deadline) => return Cause::Ended(Ok(End::TimedOut)),
                () = &mut silent => return Cause::Ended(Ok(End::IdleTimedOut)),
                () = &mut output, if !output_ended => output_ended = true,
                fed = &mut input, if !input_ended => match fed {
                    Ok(()) => input_ended = true,
                    Err(error) => {
                        return Cause::Ended(Err(Error::from_io("read", "standard input", error)));
                    }
                },
            }
        }
    }

    /// Waits for the rest of the output after the exit, but not long for what others hold open.
    async fn drain(
        &mut self,
        command: &Command,
        deadline: Option<Instant>,
        closing: &CancellationToken,
    ) -> Result<()> {
        if command.leftovers == Leftovers::Kill {
            self.supervised.kill();
        }
        tokio::select! {
            biased;
            () = closing.cancelled() => return Err(Error::Closed),
            () = cancelled(command.cancel.as_ref()) => return Err(Error::Cancelled),
            () = self.pump.run(&self.clock) => {}
            () = self.clock.unblocked_for(patience::DRAIN) => {}
            () = passed(deadline) => {}
        }
        if command.leftovers == Leftovers::Kill {
            // What it left behind is gone when `exec` returns.
            let _ = tokio::time::timeout(patience::KILL, self.supervised.finished()).await;
        } else if let Some(guard) = self.guard.take() {
            guard.release();
        }
        Ok(())
    }

    /// Ends everything, passing on what is still printed.
    async fn end(&mut self, grace: Option<Duration>) {
        let supervised = &self.supervised;
        let ending = async {
            if let Some(grace) = grace {
                supervised.signal(Signal::TERM).await;
                let _ = tokio::time::timeout(grace, supervised.finished()).await;
            }
            supervised.kill();
            if tokio::time::timeout(patience::KILL, supervised.finished()).await.is_err() {
                tracing::warn!("a killed command is still there; the kernel does not let go of it");
            }
        };
        let mut output = pin!(self.pump.run(&self.clock));
        let mut ending = pin!(ending);
        let output_ended = tokio::select! {
            () = &mut output => true,
            () = &mut ending => false,
        };
        if output_ended {
            ending.await;
        } else {
            let _ = tokio::time::timeout(patience::DRAIN, output).await;
        }
    }

    fn into_output(self, registry: &Registry, end: End, duration: Duration) -> Output {
        let detached = !self.pump.is_finished();
        let (collector, stdout, stderr) = self.pump.into_parts();
        if detached {
            registry.spawn(discard(stdout, stderr));
        }
        let (stdout, stderr) = collector.finish();
        let mut output = Output::new(end, stdout, stderr, duration);
        output.output_detached = detached;
        output
    }
}

/// Writes the content to the pipe and closes it. What the command does not read is discarded.
///
/// # Errors
///
/// What reading the content reports.
async fn feed(input: Option<(Content, ChildStdin)>) -> io::Result<()> {
    let Some((content, mut pipe)) = input else { return Ok(()) };
    let content = match content.into_bytes() {
        Ok(bytes) => {
            // A broken pipe says that nobody reads.
            let _ = pipe.write_all(&bytes).await;
            return Ok(());
        }
        Err(content) => content,
    };
    let mut reader = content.into_reader();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = reader.read(&mut buffer).await?;
        if read == 0 || pipe.write_all(&buffer[..read]).await.is_err() {
            return Ok(());
        }
    }
}
