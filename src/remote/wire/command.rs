//! Commands and processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::{Command, DEFAULT_OUTPUT_LIMIT, Leftovers, TtySize};
use crate::environment::Environment;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::output::{Captured, End, Output};
use crate::remote::limits::{MAX_OUTPUT_LIMIT, MAX_TIMEOUT, MAX_VARIABLES};
use crate::signal::Signal;

/// A command without its standard input, which follows it, and without what stays with the caller.
#[derive(Serialize, Deserialize)]
pub(in crate::remote) struct CommandHead {
    /// The client's number of this call, by which it cancels it.
    pub(in crate::remote) call: u64,
    args: Vec<String>,
    #[serde(default)]
    dir: String,
    #[serde(default)]
    env: Vec<(String, String)>,
    /// Whether standard input follows.
    #[serde(default)]
    pub(in crate::remote) stdin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_timeout: Option<Duration>,
    /// Whether output is sent as it arrives; of a started process, whether standard error is sent.
    #[serde(default)]
    pub(in crate::remote) stream: bool,
    #[serde(default = "default_output_limit")]
    output_limit: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kill_grace: Option<Duration>,
    #[serde(default)]
    leftovers: Leftovers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tty: Option<TtySize>,
}

fn default_output_limit() -> u64 {
    DEFAULT_OUTPUT_LIMIT
}

impl CommandHead {
    pub(in crate::remote) fn new(call: u64, command: &Command) -> Self {
        CommandHead {
            call,
            args: command.args.clone(),
            dir: command.dir.clone(),
            env: command.env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            stdin: command.stdin.as_ref().is_some_and(|content| !content.is_empty()),
            timeout: command.timeout,
            idle_timeout: command.idle_timeout,
            stream: command.stream.is_some(),
            output_limit: command.output_limit,
            user: command.user.clone(),
            kill_grace: command.kill_grace,
            leftovers: command.leftovers,
            tty: command.tty,
        }
    }

    /// The command, without input, stream and token.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for more output than the server keeps; [`Error::Spawn`] for more variables
    /// than it takes.
    pub(in crate::remote) fn into_command(self) -> Result<Command> {
        if !self.stream && self.output_limit > MAX_OUTPUT_LIMIT {
            return Err(Error::Unsupported {
                operation: format!("keeping {} bytes of output", self.output_limit),
                backend: crate::Kind::Remote,
                reason: format!("the server keeps {MAX_OUTPUT_LIMIT} bytes at most; use a stream"),
            });
        }
        if self.env.len() > MAX_VARIABLES {
            let program = self.args.into_iter().next().unwrap_or_default();
            return Err(Error::Spawn { program, kind: SpawnErrorKind::ArgumentsTooLong, source: None });
        }
        let bounded = |time: Option<Duration>| time.map(|time| time.min(MAX_TIMEOUT));
        let mut command = Command::from_args(self.args);
        command.dir = self.dir;
        command.env = Environment::from_iter(self.env);
        command.timeout = bounded(self.timeout);
        command.idle_timeout = bounded(self.idle_timeout);
        command.output_limit = self.output_limit.min(MAX_OUTPUT_LIMIT);
        command.user = self.user;
        command.kill_grace = bounded(self.kill_grace);
        command.leftovers = self.leftovers;
        command.tty = self.tty;
        Ok(command)
    }
}

/// The number of a call that is to be cancelled.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct CallId {
    pub(in crate::remote) call: u64,
}

/// How much of a stream was kept; the bytes themselves were sent before.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Kept {
    head: u64,
    dropped: u64,
}

impl Kept {
    fn of(captured: &Captured) -> Self {
        Kept { head: captured.head().len() as u64, dropped: captured.dropped() }
    }

    fn captured(self, bytes: Vec<u8>) -> Option<Captured> {
        if self.dropped == 0 {
            return Some(Captured::whole(bytes));
        }
        let (head, tail) = bytes.split_at_checked(usize::try_from(self.head).ok()?)?;
        Some(Captured::cut(head.to_vec(), tail, self.dropped))
    }
}

/// How a command or process ended.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct Ended {
    pub(in crate::remote) end: End,
    #[serde(default)]
    stdout: Kept,
    #[serde(default)]
    stderr: Kept,
    #[serde(default)]
    output_detached: bool,
    #[serde(default)]
    duration: Duration,
}

impl Ended {
    pub(in crate::remote) fn command(output: &Output) -> Self {
        Ended {
            end: output.end,
            stdout: Kept::of(&output.stdout),
            stderr: Kept::of(&output.stderr),
            output_detached: output.output_detached,
            duration: output.duration,
        }
    }

    pub(in crate::remote) fn process(end: End) -> Self {
        let (stdout, stderr) = (Kept::default(), Kept::default());
        Ended { end, stdout, stderr, output_detached: false, duration: Duration::ZERO }
    }

    /// The output with these bytes; `None` when they contradict it.
    pub(in crate::remote) fn into_output(self, stdout: Vec<u8>, stderr: Vec<u8>) -> Option<Output> {
        let (stdout, stderr) = (self.stdout.captured(stdout)?, self.stderr.captured(stderr)?);
        let mut output = Output::new(self.end, stdout, stderr, self.duration);
        output.output_detached = self.output_detached;
        Some(output)
    }
}

/// The first frame of a process that has started.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct Started {
    pub(in crate::remote) process: u64,
}

/// Which process a request is about.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ProcessId {
    pub(in crate::remote) process: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct SignalRequest {
    pub(in crate::remote) process: u64,
    pub(in crate::remote) signal: Signal,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ResizeRequest {
    pub(in crate::remote) process: u64,
    pub(in crate::remote) size: TtySize,
}
