//! What to run, and how.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::files::Content;
use crate::output::OutputSink;
use crate::path::WorkspacePath;

/// How many bytes of each output stream are kept unless the caller says otherwise: the first and
/// the last 8 MiB.
pub const DEFAULT_OUTPUT_LIMIT: u64 = 16 * 1024 * 1024;

/// One process to run, for [`exec`](crate::Workspace::exec) or [`start`](crate::Starter::start).
///
/// ```
/// use std::time::Duration;
/// use agentworkspace::Command;
///
/// let command = Command::new("cargo")
///     .args(["test", "--workspace"])
///     .dir("crates/core")
///     .env("RUST_BACKTRACE", "1")
///     .timeout(Duration::from_secs(120));
/// assert_eq!(command.to_string(), "cargo test --workspace");
/// ```
///
/// Its `Debug` output shows neither environment values nor the content of standard input.
#[derive(Debug)]
#[non_exhaustive]
pub struct Command {
    /// The argument vector. `args[0]` is looked up in the command's own `PATH` inside the
    /// workspace; a relative path is resolved against the command's directory. No shell is in
    /// between.
    pub args: Vec<String>,
    /// The working directory, relative to the root; `""` is the root. `a/../b`, `./x` and `b/` are
    /// accepted; a directory that leaves the root, by name or through a link, is
    /// [`Error::OutsideWorkspace`].
    pub dir: String,
    /// Variables over the workspace's environment; the later name wins.
    pub env: Environment,
    /// Standard input. Default: none, which the process sees as end of file at once.
    pub stdin: Option<Content>,
    /// Ends the process and all it started after this long. Default: never.
    pub timeout: Option<Duration>,
    /// Ends it when it has printed nothing, on either stream, for this long. While the reader of
    /// [`stream`](Self::stream) is behind, the time does not count. Default: never.
    pub idle_timeout: Option<Duration>,
    /// Receives output as it arrives: for `exec` both streams, and [`Output`](crate::Output) then
    /// holds neither; for `start` standard error, so not together with a terminal. Default: `exec`
    /// collects, `start` discards.
    pub stream: Option<OutputSink>,
    /// How many bytes of each stream `exec` keeps: the first and the last half of it. What is
    /// dropped between them is counted; 0 keeps nothing and counts all. Not for `start`. Default:
    /// [`DEFAULT_OUTPUT_LIMIT`].
    pub output_limit: u64,
    /// Another user to run as: `name`, `uid`, `name:group`, `uid:gid` or a mix of those. Digits are
    /// a number. Without a group an account gets its primary one, and a number that is no account
    /// the group of the same number. Default: the workspace's own. In a container `HOME` is then
    /// that user's, unless it was set.
    pub user: Option<String>,
    /// How long after SIGTERM a command that timed out or was cancelled gets SIGKILL. Default: for
    /// `exec` none, SIGKILL at once; for `start` [`CLOSE_GRACE`](crate::CLOSE_GRACE).
    pub kill_grace: Option<Duration>,
    /// What becomes of processes that the command leaves behind when it exits by itself. After a
    /// timeout or a cancellation they are ended in any case, and by `start` always.
    pub leftovers: Leftovers,
    /// Gives the process a terminal of this size for standard input, output and error, which are
    /// then one stream. Only for `start`. Default: none.
    pub tty: Option<TtySize>,
    /// Ends the process and all it started when the token is cancelled. Default: none.
    pub cancel: Option<CancellationToken>,
}

/// What becomes of processes that a command leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Leftovers {
    /// They go on until the workspace closes. What they print is read and discarded; where
    /// [`Capabilities::leftover_output`](crate::Capabilities::leftover_output) does not hold, one
    /// that prints more than 2 s after the command has exited gets SIGPIPE, unless its output goes
    /// elsewhere.
    #[default]
    Keep,
    /// They are ended as soon as the command has exited.
    Kill,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TtySize {
    /// How many rows.
    pub rows: u16,
    /// How many columns.
    pub cols: u16,
}

impl TtySize {
    /// `rows` by `cols`.
    pub fn new(rows: u16, cols: u16) -> Self {
        TtySize { rows, cols }
    }
}

impl Command {
    /// The program with no arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Command {
            args: vec![program.into()],
            dir: String::new(),
            env: Environment::empty(),
            stdin: None,
            timeout: None,
            idle_timeout: None,
            stream: None,
            output_limit: DEFAULT_OUTPUT_LIMIT,
            user: None,
            kill_grace: None,
            leftovers: Leftovers::Keep,
            tty: None,
            cancel: None,
        }
    }

    /// A whole argument vector, the program first.
    pub fn from_args<A: Into<String>>(args: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new("");
        command.args = args.into_iter().map(Into::into).collect();
        command
    }

    /// `script` in a POSIX shell, `/bin/sh -c`, for a workspace that has one.
    pub fn shell(script: impl Into<String>) -> Self {
        Command::from_args(["/bin/sh".to_owned(), "-c".to_owned(), script.into()])
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<String>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name, value);
        self
    }

    /// Sets standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Content>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// Sets the total timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the timeout for silence.
    #[must_use]
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = Some(idle_timeout);
        self
    }

    /// Sends output to `sink` as it arrives.
    #[must_use]
    pub fn stream(mut self, sink: OutputSink) -> Self {
        self.stream = Some(sink);
        self
    }

    /// Sets how many bytes of each stream are kept.
    #[must_use]
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Runs as another user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Asks with SIGTERM first, and waits this long.
    #[must_use]
    pub fn kill_grace(mut self, kill_grace: Duration) -> Self {
        self.kill_grace = Some(kill_grace);
        self
    }

    /// Sets what becomes of processes left behind.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.leftovers = leftovers;
        self
    }

    /// Gives the process a terminal.
    #[must_use]
    pub fn tty(mut self, size: TtySize) -> Self {
        self.tty = Some(size);
        self
    }

    /// Ties the process to `token`.
    #[must_use]
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// The program, `args[0]`; empty when there is none.
    pub fn program(&self) -> &str {
        self.args.first().map_or("", String::as_str)
    }

    /// Checks what both refuse:
    /// [`Error::InvalidArgument`] for an empty argument vector or program, a NUL byte in an
    /// argument, an impossible environment variable, an empty user or a timeout of 0;
    /// [`Error::OutsideWorkspace`] and [`Error::InvalidPath`] for the directory;
    /// [`Error::Cancelled`] when the token is cancelled already.
    fn check(&self) -> Result<WorkspacePath> {
        let invalid = |reason: &str| Err(Error::InvalidArgument { reason: reason.to_owned() });
        if self.program().is_empty() {
            return invalid("the command names no program");
        }
        if self.args.iter().any(|arg| arg.contains('\0')) {
            return invalid("an argument of the command holds a NUL byte");
        }
        if self.timeout == Some(Duration::ZERO) || self.idle_timeout == Some(Duration::ZERO) {
            return invalid("a timeout of 0 would end the command before it starts; leave it out for none");
        }
        if self.user.as_ref().is_some_and(|user| user.is_empty() || user.contains('\0')) {
            return invalid("the command's user is empty or holds a NUL byte");
        }
        self.env.check()?;
        let dir = WorkspacePath::parse_dir(&self.dir)?;
        if self.cancel.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Err(Error::Cancelled);
        }
        Ok(dir)
    }

    /// Checks what `exec` refuses before it starts anything, and gives the directory cleaned. For
    /// backends.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an empty argument vector or program, a NUL byte in an
    /// argument, an impossible environment variable, an empty user, a timeout of 0 or a terminal;
    /// [`Error::OutsideWorkspace`] and [`Error::InvalidPath`] for the directory;
    /// [`Error::Cancelled`] when the token is cancelled already.
    pub fn check_exec(&self) -> Result<WorkspacePath> {
        if self.tty.is_some() {
            return Err(Error::InvalidArgument {
                reason: "a command with a terminal is started, not executed: use `start`".to_owned(),
            });
        }
        self.check()
    }

    /// Checks what `start` refuses before it starts anything, and gives the directory cleaned. For
    /// backends.
    ///
    /// # Errors
    ///
    /// As [`check_exec`](Self::check_exec), but a terminal is accepted; [`Error::InvalidArgument`]
    /// for standard input, and for a terminal together with a stream for standard error.
    pub fn check_start(&self) -> Result<WorkspacePath> {
        if self.stdin.is_some() {
            return Err(Error::InvalidArgument {
                reason: "a started process is written to through `Process::stdin`, not `Command::stdin`"
                    .to_owned(),
            });
        }
        if self.tty.is_some() && self.stream.is_some() {
            return Err(Error::InvalidArgument {
                reason: "a terminal has one output stream, so there is no standard error to pass on"
                    .to_owned(),
            });
        }
        self.check()
    }
}

impl fmt::Display for Command {
    /// The argument vector as a POSIX shell would take it. Environment and input are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arg) in self.args.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(&quote(arg))?;
        }
        Ok(())
    }
}

/// `arg` as one word of a POSIX shell.
pub(crate) fn quote(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg.to_owned();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_displays_as_a_shell_line() {
        let command = Command::new("sh").args(["-c", "echo 'hi'", ""]);
        assert_eq!(command.to_string(), r"sh -c 'echo '\''hi'\''' ''");
    }

    #[test]
    fn debug_output_hides_values_and_input() {
        let command = Command::new("a").env("TOKEN", "hunter2").stdin("swordfish");
        let text = format!("{command:?}");
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{text}");
    }

    #[test]
    fn impossible_commands_are_refused() {
        let empty: [&str; 0] = [];
        for command in [
            Command::from_args(empty),
            Command::new(""),
            Command::new("a").arg("b\0"),
            Command::new("a").env("A=B", "c"),
            Command::new("a").timeout(Duration::ZERO),
        ] {
            assert!(matches!(command.check_exec(), Err(Error::InvalidArgument { .. })), "{command:?}");
        }
        assert!(Command::new("a").dir("../x").check_exec().unwrap_err().is_outside());
        assert_eq!(Command::new("a").dir("b/../c").check_start().unwrap().as_str(), "c");
        assert!(Command::new("a").stdin("x").check_start().is_err());
        assert!(Command::new("a").tty(TtySize::new(24, 80)).check_exec().is_err());
        let token = CancellationToken::new();
        token.cancel();
        assert!(matches!(Command::new("a").cancel(token).check_exec(), Err(Error::Cancelled)));
    }
}
