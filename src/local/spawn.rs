//! Starts a command under a supervisor of its own.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::command::Command;
use crate::environment::Environment;
use crate::error::{Error, Result, SpawnErrorKind};

use super::leader::{Failure, Launch, Stage};
use super::registry::Registry;
use super::supervised::{KillOnDrop, Supervised};
use super::{supervisor, user};

/// How long to wait, in turn, for a program that is still open for writing. A process forked by
/// another thread holds a copy of every descriptor until it executes its own program, a freshly
/// written program's among them.
const BUSY_NAPS: [Duration; 5] = [
    Duration::from_millis(2),
    Duration::from_millis(8),
    Duration::from_millis(30),
    Duration::from_millis(60),
    Duration::from_millis(100),
];

/// What the command's standard streams are.
#[derive(Debug)]
pub(super) enum Streams {
    /// Pipes; without one for input that is empty.
    Pipes { stdin: bool },
    /// This terminal, which also becomes the controlling one.
    Terminal(OwnedFd),
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) supervised: Arc<Supervised>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Streams {
    fn try_clone(&self) -> io::Result<Streams> {
        Ok(match self {
            Streams::Pipes { stdin } => Streams::Pipes { stdin: *stdin },
            Streams::Terminal(terminal) => Streams::Terminal(terminal.try_clone()?),
        })
    }
}

/// Starts `command` in `dir` with its variables over `env`, and returns once its program runs.
/// A `driven` one has a task that ends it when the workspace closes.
pub(super) async fn spawn(
    registry: &Arc<Registry>,
    dir: OwnedFd,
    env: &Environment,
    command: &Command,
    streams: Streams,
    driven: bool,
) -> Result<Spawned> {
    let env = env.merged(&command.env);
    let failed = |error| spawn_error(command.program(), error);
    let mut naps = BUSY_NAPS.iter();
    loop {
        registry.check_open()?;
        let (dir, streams) = (dir.try_clone().map_err(failed)?, streams.try_clone().map_err(failed)?);
        let (spawned, follow) = fork(dir, &env, command, streams).await?;
        registry.keep(spawned.supervised.clone(), driven, follow);
        let guard = KillOnDrop::new(spawned.supervised.clone());
        let started = spawned.supervised.started().await?;
        registry.check_open()?;
        match (started, naps.next()) {
            (Ok(()), _) => {
                guard.release();
                return Ok(spawned);
            }
            (Err(code), Some(nap)) if errno_of(code) == libc::ETXTBSY => tokio::time::sleep(*nap).await,
            (Err(code), _) => return Err(failed(io::Error::from_raw_os_error(code))),
        }
    }
}

/// Forks a supervisor that will run the program.
async fn fork(
    dir: OwnedFd,
    env: &Environment,
    command: &Command,
    streams: Streams,
) -> Result<(Spawned, impl Future<Output = ()> + Send + use<>)> {
    let failed = |error| spawn_error(command.program(), error);
    let tty = matches!(streams, Streams::Terminal(_));
    let (link, theirs) = UnixStream::pair().map_err(failed)?;
    let launch = prepare(theirs.into(), dir, env, command, tty).await?;
    // The program named here never runs: the supervisor's hook does not return.
    let mut process = tokio::process::Command::new("/proc/self/exe");
    set_streams(&mut process, streams).map_err(failed)?;
    supervisor::install(&mut process, launch);
    let mut child = process.spawn().map_err(failed)?;
    // Closes this process's copy of the supervisor's end, so that the supervisor's is the last.
    drop(process);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (supervised, follow) = Supervised::new(child, link).map_err(failed)?;
    Ok((Spawned { supervised, stdin, stdout, stderr }, follow))
}

fn set_streams(process: &mut tokio::process::Command, streams: Streams) -> io::Result<()> {
    match streams {
        Streams::Pipes { stdin } => {
            process.stdin(if stdin { Stdio::piped() } else { Stdio::null() });
            process.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        Streams::Terminal(terminal) => {
            process.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
        }
    }
    Ok(())
}

/// Makes everything that can only be made before the fork.
async fn prepare(
    link: OwnedFd,
    dir: OwnedFd,
    env: &Environment,
    command: &Command,
    tty: bool,
) -> Result<Launch> {
    let user = match &command.user {
        Some(user) => user::resolve(command.program(), user).await?,
        None => None,
    };
    let candidates = strings(candidates(command.program(), env.get("PATH")))?;
    let args = strings(command.args.iter().cloned())?;
    let env = strings(env.iter().map(|(name, value)| format!("{name}={value}")))?;
    Ok(Launch::new(link, dir, candidates, args, env, user, tty))
}

fn strings(strings: impl IntoIterator<Item = String>) -> Result<Vec<CString>> {
    let nul = |_| Error::InvalidArgument {
        reason: "an argument or variable of the command holds a NUL byte".to_owned(),
    };
    strings.into_iter().map(|string| CString::new(string).map_err(nul)).collect()
}

/// Where `program` may be: itself when it is a path, otherwise in each directory of `path`, of
/// which an empty one is the command's own, as POSIX has it. Without a `PATH` it is nowhere.
fn candidates(program: &str, path: Option<&str>) -> Vec<String> {
    if program.contains('/') {
        return vec![program.to_owned()];
    }
    let Some(path) = path else { return Vec::new() };
    let directories = path.split(':').map(|dir| if dir.is_empty() { "." } else { dir });
    directories.map(|dir| format!("{dir}/{program}")).collect()
}

/// The system's error number, without the stage.
fn errno_of(code: i32) -> i32 {
    Failure::decode(code).map_or(code, |failure| failure.errno)
}

/// What a failed start means.
fn spawn_error(program: &str, error: io::Error) -> Error {
    let number = errno_of(error.raw_os_error().unwrap_or_default());
    let failure = error.raw_os_error().and_then(Failure::decode);
    let kind = match (failure.map(|failure| failure.stage), number) {
        (_, libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => SpawnErrorKind::NoResources,
        (Some(Stage::User), _) => SpawnErrorKind::UnknownUser,
        (Some(Stage::Directory), _) => SpawnErrorKind::BadDirectory,
        (Some(Stage::Exec), libc::ENOENT | libc::ENOTDIR) => SpawnErrorKind::NotFound,
        (Some(Stage::Exec), libc::EACCES | libc::ENOEXEC | libc::EISDIR | libc::EPERM) => {
            SpawnErrorKind::NotExecutable
        }
        (Some(Stage::Exec), libc::E2BIG) => SpawnErrorKind::ArgumentsTooLong,
        _ => SpawnErrorKind::Other,
    };
    let source = match failure {
        Some(failure) => io::Error::from_raw_os_error(failure.errno),
        None => error,
    };
    Error::Spawn { program: program.to_owned(), kind, source: Some(source.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_up_in_path_only_without_a_slash() {
        assert_eq!(candidates("a/b", Some("/bin")), ["a/b"]);
        assert_eq!(candidates("a", Some("/bin::/x")), ["/bin/a", "./a", "/x/a"]);
        assert!(candidates("a", None).is_empty());
    }
}
