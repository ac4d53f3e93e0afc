//! How a command ended, after its output has.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::kill;
use super::monitor::Monitor;
use super::raw_exec::RawState;
use super::shared::Shared;
use super::spawn_error::{kind_of, spawn};
use super::start_line::{Start, StartLine};
use crate::error::{Error, GoneReason, Result, SpawnErrorKind};
use crate::output::End;
use crate::signal::Signal;

/// How long the engine may take to know the exit status once the output has ended.
const SETTLE: Duration = Duration::from_secs(2);

/// How long events may be late: they come on a connection of their own.
const EVENT_DELAY: Duration = Duration::from_millis(500);

/// How long a container that dies may take to be seen so, once its processes are gone.
pub(crate) const DEATH_DELAY: Duration = Duration::from_secs(5);

/// The same where nothing tells whether it dies: so long a process that SIGKILL ended seems to run on.
const DEATH_DELAY_UNSURE: Duration = Duration::from_secs(1);

/// How often the engine is asked whether a program still runs.
const QUESTION: Duration = Duration::from_secs(1);

/// How long Docker keeps the output of a program open that has exited.
const HELD_OPEN: Duration = Duration::from_secs(2);

/// The exit status of a process that SIGKILL ended.
pub(crate) const KILLED: i64 = 137;

/// The exit statuses of engines for what could not be started.
const NOT_STARTED: std::ops::RangeInclusive<i64> = 125..=128;

/// What there is to know of a command whose output has ended.
pub(crate) struct Ended<'a> {
    pub(crate) program: &'a str,
    /// The name of its directory.
    pub(crate) dir: &'a str,
    pub(crate) exec: &'a str,
    pub(crate) start_line: &'a StartLine,
    pub(crate) began: Instant,
}

/// How the command ended; [`Error::Spawn`] when it never began.
pub(crate) async fn conclude(shared: &Shared, ended: &Ended<'_>) -> Result<End> {
    match ended.start_line.state() {
        Start::Failed(word) => return Err(failed(ended, word)),
        Start::Refused => return Err(refused(shared, ended).await?),
        Start::Pending | Start::Started => {}
    }
    let state = settled(shared, ended.exec).await?;
    let code = state.exit_code.unwrap_or_default();
    if code == KILLED {
        return killed(shared, ended).await;
    }
    let pending = ended.start_line.state() == &Start::Pending;
    // Podman forgets the number of every process that has ended, so there only the words tell.
    let words = ended.start_line.words();
    let no_process = state.pid.unwrap_or_default() == 0
        && (words.starts_with("OCI runtime")
            || words.starts_with("Error: ")
            || words.contains("exec failed"));
    let refused = code == 1 && !ended.start_line.is_scripted() && kernel_refused(ended.program, &words);
    if pending || refused || (NOT_STARTED.contains(&code) && no_process) {
        // A container that is dying answers in the same way.
        shared.monitor.check(&shared.engine, &shared.id).await?;
        let kind = kind_of(&words);
        if kind == SpawnErrorKind::BadDirectory && ended.dir.is_empty() {
            return Err(Error::Gone { why: GoneReason::RootRemoved });
        }
        return Err(spawn(ended.program, kind, &words));
    }
    match i32::try_from(code - 128).ok().filter(|number| (1..=31).contains(number)) {
        Some(number) => Ok(End::Signaled(Signal::new(number)?)),
        None => Ok(End::Exited(i32::try_from(code).unwrap_or(-1))),
    }
}

/// Whether this is all that was printed, and what the runtime prints when the kernel refuses a
/// program that passed its checks. The engine has counted it as started by then.
fn kernel_refused(program: &str, words: &str) -> bool {
    let reason = words.strip_prefix("exec ").and_then(|rest| rest.strip_prefix(program));
    matches!(reason, Some(": no such file or directory" | ": exec format error" | ": permission denied"))
}

/// What the start script reported.
fn failed(ended: &Ended<'_>, word: &str) -> Error {
    let dir = ended.dir;
    let (kind, words) = match word {
        "outside" => return Error::OutsideWorkspace { path: dir.to_owned() },
        "not-found" => (SpawnErrorKind::NotFound, String::new()),
        "not-executable" => (SpawnErrorKind::NotExecutable, String::new()),
        "directory" => (SpawnErrorKind::BadDirectory, format!("`{dir}` cannot be entered")),
        "unreadable-link" => (
            SpawnErrorKind::BadDirectory,
            format!("`{dir}` leads through a link, and the image has no `readlink` to read it with"),
        ),
        other => (SpawnErrorKind::Other, other.to_owned()),
    };
    spawn(ended.program, kind, &words)
}

/// The program passed every check and the kernel refused it: its loader is missing, or it is for
/// another machine.
async fn refused(shared: &Shared, ended: &Ended<'_>) -> Result<Error> {
    let code = settled(shared, ended.exec).await?.exit_code;
    let kind = if code == Some(127) { SpawnErrorKind::NotFound } else { SpawnErrorKind::NotExecutable };
    Ok(spawn(ended.program, kind, "the kernel refused to run it"))
}

/// The state of an exec whose output has ended, once it has an exit status.
async fn settled(shared: &Shared, exec: &str) -> Result<RawState> {
    let deadline = Instant::now() + SETTLE;
    let mut delay = Duration::from_millis(10);
    loop {
        let state = match shared.engine.exec_state(exec).await {
            Ok(state) => state,
            Err(error) => {
                // Engines forget the execs of a container that has died.
                wait_for_death(shared, DEATH_DELAY).await?;
                return Err(error);
            }
        };
        if !state.running && state.exit_code.is_some() {
            return Ok(state);
        }
        if Instant::now() >= deadline {
            wait_for_death(shared, DEATH_DELAY).await?;
            return Err(Error::Engine {
                operation: "tell how a command ended".to_owned(),
                status: None,
                message: "its output has ended and it still counts as running".to_owned(),
            });
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(Duration::from_millis(100));
    }
}

/// SIGKILL came from the kernel for want of memory, from the end of the whole container, or from
/// somebody else.
async fn killed(shared: &Shared, ended: &Ended<'_>) -> Result<End> {
    check_alive(shared).await?;
    // The engine reports a lack of memory before the end of the process that it hit.
    exit_time(&shared.monitor, ended.exec, EVENT_DELAY).await;
    if shared.monitor.oom_since(ended.began) {
        return Ok(End::OutOfMemory);
    }
    Ok(End::Signaled(Signal::KILL))
}

/// Fails when SIGKILL ended a process because its container is ending.
pub(crate) async fn check_alive(shared: &Shared) -> Result<()> {
    // The first process of a container takes all others with it before it counts as ended itself.
    // In one that is ending nothing can be started.
    match shared.shell {
        None => wait_for_death(shared, DEATH_DELAY_UNSURE).await?,
        Some(_) if kill::is_alive(shared).await => {}
        Some(_) => wait_for_death(shared, DEATH_DELAY).await?,
    }
    // One that was restarted meanwhile lives as well.
    shared.monitor.check(&shared.engine, &shared.id).await
}

/// Fails as soon as the container is known to be dead, within `patience`.
pub(crate) async fn wait_for_death(shared: &Shared, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        shared.monitor.check(&shared.engine, &shared.id).await?;
        if Instant::now() >= deadline {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// When an exec's own process ended, by the engine's events.
async fn exit_time(monitor: &Monitor, exec: &str, patience: Duration) -> Option<Instant> {
    let deadline = Instant::now() + patience;
    loop {
        match monitor.exec_died(exec) {
            None if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(20)).await,
            died => return died,
        }
    }
}

/// Whether the program itself had exited some time before its output ended: then the engine has cut
/// the output off from a process that was left behind.
#[derive(Debug, Default)]
pub(crate) struct Exit {
    /// Since when the engine has not said that it runs.
    seen: Mutex<Option<Instant>>,
}

impl Exit {
    /// Asks the engine from time to time whether the program still runs; never ends.
    ///
    /// An engine keeps the output open for 2 s at most once the program has exited, so a question
    /// a second cannot miss that. Until the output is closed Docker leaves it unanswered.
    pub(crate) async fn watch(&self, shared: &Shared, exec: &str) -> Infallible {
        loop {
            tokio::time::sleep(QUESTION).await;
            self.set(Some(Instant::now()));
            match shared.engine.exec_state(exec).await {
                Ok(state) if state.running => self.set(None),
                Ok(_) => return std::future::pending().await,
                // Nothing is known, and what ends the command will say why.
                Err(_) => self.set(None),
            }
        }
    }

    /// When it came, if that was long before this moment.
    pub(crate) fn before(&self, output_ended: Instant) -> Option<Instant> {
        const LONG: Duration = Duration::from_millis(800);
        let seen = (*self.seen.lock().unwrap_or_else(PoisonError::into_inner))?;
        if output_ended.saturating_duration_since(seen) <= LONG {
            return None;
        }
        // The question before this one was answered, so it came between the two.
        let earliest = seen.checked_sub(QUESTION).unwrap_or(seen);
        Some(output_ended.checked_sub(HELD_OPEN).unwrap_or(seen).clamp(earliest, seen))
    }

    fn set(&self, seen: Option<Instant>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}
