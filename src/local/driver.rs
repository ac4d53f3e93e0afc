//! Ends a started process in its own time: a task that goes on whoever stops waiting.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::command::TtySize;
use crate::deadline::{cancelled, passed};
use crate::error::{Error, GoneReason, Result};
use crate::output::End;
use crate::process::{CLOSE_GRACE, ProcessControl};
use crate::signal::Signal;

use super::clock::OutputClock;
use super::patience;
use super::stdout::has_unread;
use super::supervised::{KillOnDrop, Supervised};
use super::terminal::Terminal;

/// How a started process ended; nothing is known when its supervisor was killed.
pub(super) type Outcome = Option<End>;

/// What ends a started process.
pub(super) struct Driver {
    pub(super) supervised: Arc<Supervised>,
    /// Cancelled when the workspace closes.
    pub(super) closing: CancellationToken,
    /// Cancelled by the first [`Process::close`](crate::Process::close).
    pub(super) close: CancellationToken,
    /// The caller's own token.
    pub(super) cancel: Option<CancellationToken>,
    pub(super) deadline: Option<Instant>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) kill_grace: Option<Duration>,
    pub(super) clock: Arc<OutputClock>,
    /// Standard output, to be asked for unread bytes.
    pub(super) unread: Option<Weak<OwnedFd>>,
    /// Cancelled once standard error has ended and was passed on.
    pub(super) stderr_passed: CancellationToken,
}

impl Driver {
    /// Follows the process to its end and announces it.
    pub(super) async fn run(self, outcome: watch::Sender<Option<Outcome>>) {
        // Should the runtime shut down, this is dropped and the process killed.
        let _guard = KillOnDrop::new(self.supervised.clone());
        let end = self.until_exit().await;
        // Whatever it left behind goes with it.
        self.supervised.kill();
        if timeout(patience::KILL, self.supervised.finished()).await.is_err() {
            tracing::warn!("a killed process is still there; the kernel does not let go of it");
        }
        // Its reader may be slow or gone.
        let _ = timeout(patience::DRAIN, self.stderr_passed.cancelled()).await;
        outcome.send_replace(Some(end));
    }

    /// Waits for the exit, or brings it about.
    async fn until_exit(&self) -> Outcome {
        let grace = self.kill_grace.unwrap_or(CLOSE_GRACE);
        let (end, grace) = tokio::select! {
            biased;
            end = self.supervised.exited() => return end.ok(),
            () = self.closing.cancelled() => (None, CLOSE_GRACE),
            () = cancelled(self.cancel.as_ref()) => (Some(End::Cancelled), grace),
            () = passed(self.deadline) => (Some(End::TimedOut), grace),
            () = self.silence() => (Some(End::IdleTimedOut), grace),
            () = self.close.cancelled() => {
                // Its input is closed already, and that ends most.
                tokio::select! {
                    biased;
                    end = self.supervised.exited() => return end.ok(),
                    () = self.closing.cancelled() => {}
                    () = tokio::time::sleep(CLOSE_GRACE) => {}
                }
                (None, CLOSE_GRACE)
            }
        };
        let actual = self.terminate(grace).await;
        end.or(actual)
    }

    /// SIGTERM to everything, `grace`, SIGKILL.
    async fn terminate(&self, grace: Duration) -> Outcome {
        let politely = async {
            self.supervised.signal(Signal::TERM).await;
            self.supervised.exited().await
        };
        if let Ok(end) = timeout(grace, politely).await {
            return end.ok();
        }
        self.supervised.kill();
        match timeout(patience::KILL, self.supervised.exited()).await {
            Ok(end) => end.ok(),
            // It is as good as dead: the signal is pending.
            Err(_) => Some(End::Signaled(Signal::KILL)),
        }
    }

    /// Waits until the process was silent for its idle timeout. Output that nobody has read yet is
    /// not silence.
    async fn silence(&self) {
        loop {
            self.clock.silent_for(self.idle_timeout).await;
            if !has_unread(self.unread.as_ref()) {
                return;
            }
            self.clock.touch();
        }
    }
}

/// The control of a started process.
#[derive(Debug)]
pub(super) struct Started {
    supervised: Arc<Supervised>,
    terminal: Option<Terminal>,
    close: CancellationToken,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Started {
    pub(super) fn new(
        supervised: Arc<Supervised>,
        terminal: Option<Terminal>,
        close: CancellationToken,
        outcome: watch::Receiver<Option<Outcome>>,
    ) -> Self {
        Started { supervised, terminal, close, outcome }
    }
}

#[async_trait]
impl ProcessControl for Started {
    async fn wait(&self) -> Result<End> {
        let mut outcome = self.outcome.clone();
        let known = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.flatten(),
            // The driver went down with its runtime, and killed the process.
            Err(_) => {
                let detail = "the runtime that looked after the process was shut down".to_owned();
                return Err(Error::Gone { why: GoneReason::Other { detail } });
            }
        };
        known.ok_or(Error::Gone { why: GoneReason::SupervisorKilled })
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        if self.supervised.has_exited() {
            return Err(Error::ProcessDone);
        }
        self.supervised.signal(signal).await;
        Ok(())
    }

    async fn resize(&self, size: TtySize) -> Result<()> {
        let Some(terminal) = &self.terminal else {
            return Err(Error::InvalidArgument {
                reason: "the process was started without a terminal, so there is none to resize".to_owned(),
            });
        };
        if self.supervised.has_exited() {
            return Err(Error::ProcessDone);
        }
        terminal.resize(size).map_err(|error| Error::from_io("resize", "the terminal", error))
    }

    async fn close(&self) -> Result<End> {
        self.close.cancel();
        self.wait().await
    }

    fn abandon(&self) {
        self.supervised.kill();
    }
}
