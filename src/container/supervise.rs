//! Looks after one started process until it has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncWrite, DuplexStream};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::awake::Awake;
use super::end::{Ended, conclude};
use super::launch::Leash;
use super::monitor::Condition;
use super::pump::{InputEnd, Pump, Pumped, feed};
use super::shared::Shared;
use super::spawn_error::spawn;
use super::start_line::StartLine;
use crate::deadline::cancelled;
use crate::error::{Error, GoneReason, Result, SpawnErrorKind};
use crate::output::End;
use crate::process::CLOSE_GRACE;
use crate::signal::Signal;

/// How often the engine is asked for the exit while a reader is behind, when the end of the
/// output cannot be seen.
const HELD_UP_POLL: Duration = Duration::from_millis(250);

/// What the caller wants of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    None,
    Close,
    Abandon,
}

/// What became of a process, for any number of callers.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Ended(End),
    Gone(GoneReason),
    NotStarted { program: String, kind: SpawnErrorKind, words: String },
    Unknown(String),
}

impl Outcome {
    fn of(result: Result<End>) -> Outcome {
        match result {
            Ok(end) => Outcome::Ended(end),
            Err(Error::Gone { why }) => Outcome::Gone(why),
            Err(Error::Closed) => Outcome::Ended(End::Signaled(Signal::KILL)),
            Err(Error::Spawn { program, kind, source }) => {
                let words = source.map_or_else(String::new, |source| source.to_string());
                Outcome::NotStarted { program, kind, words }
            }
            Err(other) => Outcome::Unknown(other.to_string()),
        }
    }

    pub(crate) fn into_result(self) -> Result<End> {
        match self {
            Outcome::Ended(end) => Ok(end),
            Outcome::Gone(why) => Err(Error::Gone { why }),
            Outcome::NotStarted { program, kind, words } => Err(spawn(&program, kind, &words)),
            Outcome::Unknown(message) => {
                Err(Error::Engine { operation: "run a process".to_owned(), status: None, message })
            }
        }
    }
}

/// Everything that can end one process.
pub(crate) struct Supervisor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) program: String,
    pub(crate) dir: String,
    pub(crate) exec: String,
    pub(crate) began: Instant,
    pub(crate) awake: Awake,
    pub(crate) kill_grace: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) is_tty: bool,
    pub(crate) leash: Leash,
    pub(crate) requested: watch::Receiver<Request>,
    pub(crate) outcome: watch::Sender<Option<Outcome>>,
}

/// Why a process is to end, or has.
#[derive(Debug)]
enum Cause {
    Exited,
    TimedOut,
    IdleTimedOut,
    Cancelled,
    CloseAsked,
    Abandoned,
    /// The workspace is closed or gone.
    Lost(Error),
}

impl Supervisor {
    /// Runs until the process has ended and its output was carried to the last byte.
    pub(crate) async fn run(
        mut self,
        pump: Pump,
        stdin: DuplexStream,
        input: Pin<Box<dyn AsyncWrite + Send>>,
    ) {
        let input_end = if self.is_tty { InputEnd::Tty } else { InputEnd::AfterLast };
        let feeding = AbortOnDropHandle::new(tokio::spawn(feed(stdin, input, input_end)));
        let (mut carrier, silence) = Carrier::start(&self, pump);
        let cause = self.first_cause(&mut carrier, silence).await;
        let result = self.end(cause, &mut carrier).await;
        drop(feeding);
        self.outcome.send_replace(Some(Outcome::of(result)));
        // A reader may still be behind. It ends this by going away, or by closing the workspace.
        tokio::select! {
            () = carrier.output_ended() => {}
            _lost = self.shared.monitor.lost() => {}
        }
    }

    async fn first_cause(&mut self, carrier: &mut Carrier, silence: oneshot::Receiver<()>) -> Cause {
        let asked = self.requested.wait_for(|request| *request != Request::None);
        tokio::select! {
            biased;
            () = carrier.exited() => Cause::Exited,
            Ok(()) = silence => Cause::IdleTimedOut,
            () = self.awake.passed(self.timeout) => Cause::TimedOut,
            () = cancelled(self.cancel.as_ref()) => Cause::Cancelled,
            request = asked => match request.as_deref() {
                Ok(Request::Close) => Cause::CloseAsked,
                _ => Cause::Abandoned,
            },
            error = lost_for_good(&self.shared) => Cause::Lost(error),
        }
    }

    /// Ends what is left, and says how the process ended.
    async fn end(&mut self, cause: Cause, carrier: &mut Carrier) -> Result<End> {
        let grace = self.kill_grace.unwrap_or(CLOSE_GRACE);
        let end = match cause {
            Cause::Exited => {
                let end = self.conclude(carrier).await;
                self.leash.kill().await?;
                return end;
            }
            Cause::TimedOut => End::TimedOut,
            Cause::IdleTimedOut => End::IdleTimedOut,
            Cause::Cancelled => End::Cancelled,
            Cause::Abandoned => {
                self.leash.kill().await?;
                return Ok(End::Signaled(Signal::KILL));
            }
            Cause::CloseAsked => {
                if !self.exits_within(CLOSE_GRACE, carrier).await {
                    self.ask(CLOSE_GRACE, carrier).await;
                }
                self.leash.kill().await?;
                self.exits_within(CLOSE_GRACE, carrier).await;
                return self.conclude(carrier).await;
            }
            Cause::Lost(Error::Closed) => {
                self.ask(CLOSE_GRACE, carrier).await;
                self.leash.kill().await?;
                return Ok(End::Signaled(Signal::KILL));
            }
            Cause::Lost(error) => return Err(error),
        };
        self.ask(grace, carrier).await;
        self.leash.kill().await?;
        Ok(end)
    }

    /// Sends SIGTERM and waits for the exit. A request that fails is made up for by SIGKILL.
    async fn ask(&mut self, grace: Duration, carrier: &mut Carrier) {
        if self.leash.signal(Signal::TERM).await.is_ok_and(|met| met) {
            self.exits_within(grace, carrier).await;
        }
    }

    /// Waits for the exit, unless the process is dropped meanwhile; whether it came.
    async fn exits_within(&mut self, grace: Duration, carrier: &mut Carrier) -> bool {
        let abandoned = self.requested.wait_for(|request| *request == Request::Abandon);
        tokio::select! {
            biased;
            () = carrier.exited() => true,
            _ = abandoned => false,
            () = tokio::time::sleep(grace) => false,
        }
    }

    /// How the process ended that has exited.
    async fn conclude(&self, carrier: &mut Carrier) -> Result<End> {
        let start_line = match carrier.finished.take() {
            Some((_, Err(error))) => return Err(self.shared.explain(error).await),
            Some((pump, Ok(()))) => pump.start_line,
            None => StartLine::new(None, true),
        };
        let ended = Ended {
            program: &self.program,
            dir: &self.dir,
            exec: &self.exec,
            start_line: &start_line,
            began: self.began,
        };
        conclude(&self.shared, &ended).await
    }
}

/// Waits until the workspace is closed or gone. A paused one may come back, however late.
async fn lost_for_good(shared: &Shared) -> Error {
    loop {
        let error = shared.monitor.lost().await;
        if error.is_gone() {
            return error;
        }
        let mut conditions = shared.monitor.subscribe();
        // The monitor holds the sender, so there is always a next condition.
        drop(conditions.wait_for(|condition| *condition != Condition::Paused).await);
    }
}

/// The task that carries the output, and what came of it.
struct Carrier {
    shared: Arc<Shared>,
    exec: String,
    held_up: watch::Receiver<bool>,
    task: Option<AbortOnDropHandle<(Pump, Result<()>)>>,
    finished: Option<(Pump, Result<()>)>,
}

impl Carrier {
    /// Starts to carry; the receiver is told when there is no output for too long.
    fn start(supervisor: &Supervisor, mut pump: Pump) -> (Carrier, oneshot::Receiver<()>) {
        let (silent, silence) = oneshot::channel();
        let idle_timeout = supervisor.idle_timeout;
        let held_up = pump.held_up.subscribe();
        let task = tokio::spawn(async move {
            let mut result = pump.run(idle_timeout).await;
            if matches!(result, Ok(Pumped::Silent)) {
                // Without a receiver the process is being ended already.
                let _ = silent.send(());
                result = pump.run(None).await;
            }
            (pump, result.map(drop))
        });
        let carrier = Carrier {
            shared: supervisor.shared.clone(),
            exec: supervisor.exec.clone(),
            held_up,
            task: Some(AbortOnDropHandle::new(task)),
            finished: None,
        };
        (carrier, silence)
    }

    /// Waits until all output has been passed on.
    async fn output_ended(&mut self) {
        if let Some(task) = &mut self.task {
            self.finished = task.await.ok();
            self.task = None;
        }
    }

    /// Waits until the process has exited: by the end of its output or, while a reader is behind,
    /// by the engine's word.
    async fn exited(&mut self) {
        let mut held_up = self.held_up.clone();
        let (shared, exec) = (self.shared.clone(), self.exec.clone());
        let engine_says_so = async {
            loop {
                if held_up.wait_for(|held_up| *held_up).await.is_err() {
                    // The carrying has ended, which is seen by itself.
                    return std::future::pending().await;
                }
                tokio::time::sleep(HELD_UP_POLL).await;
                if *held_up.borrow()
                    && let Ok(state) = shared.engine.exec_state(&exec).await
                    && !state.running
                    && state.exit_code.is_some()
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.output_ended() => {}
            () = engine_says_so => {}
        }
    }
}
