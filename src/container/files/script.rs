//! One script of an operation, run in the container as the workspace's user.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::status;
use crate::container::end::{KILLED, check_alive};
use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::kill::Target;
use crate::container::launch::{Leash, launch};
use crate::container::plan::Plan;
use crate::container::raw_exec::{RawExec, RawStreams};
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::output::OutputChunk;

/// How much of what a script says on standard error is kept.
const STDERR_LIMIT: usize = 8 * 1024;

/// How much a script that answers in one piece may say.
const ANSWER_LIMIT: usize = 64 * 1024;

/// The longest line that a script says before the content.
const LINE_LIMIT: usize = 1024;

/// How many pieces of what a script says wait for whoever reads them.
const FRAMES: usize = 4;

/// How often an operation is tried again that found a component swapped while it walked. One that
/// is swapped every time is taken for what it leads to.
pub(super) const ATTEMPTS: usize = 4;

/// How long the engine may take to know the status of a script whose output has ended.
const STATUS_GRACE: Duration = Duration::from_secs(2);

/// Found first, so that a directory of the workspace in the image's own `PATH` hides no program.
const PROGRAM_DIRS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/busybox";

/// A script with the functions it needs in front of it.
macro_rules! script {
    ($($file:literal),+) => {
        concat!(include_str!("scripts/walk.sh"), $(include_str!(concat!("scripts/", $file))),+)
    };
}
pub(super) use script;

/// A script that runs.
pub(super) struct Running {
    shared: Arc<Shared>,
    output: Output,
    input: Input,
}

/// What a script reads.
pub(super) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// What comes from a script.
pub(super) struct Output {
    id: String,
    frames: mpsc::Receiver<Result<OutputChunk>>,
    stderr: Vec<u8>,
    pending: BytesMut,
}

/// How a script ended.
pub(super) struct Ended {
    pub(super) status: i64,
    pub(super) stderr: Vec<u8>,
}

impl Ended {
    /// [`Ok`] for a script that succeeded, otherwise what its status means for `path`.
    pub(super) fn check(&self, operation: &'static str, path: &str) -> Result<()> {
        match self.status {
            0 => Ok(()),
            failed => Err(status::error(operation, path, failed, &self.stderr)),
        }
    }
}

/// What happens to a script that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It only reads, and is killed.
    Kill,
    /// It removes what it has made so far, and is told to end.
    TidyUp,
}

/// Starts `text` with the root and `args` as its arguments.
pub(super) async fn start(
    shared: &Arc<Shared>,
    text: &str,
    args: &[&str],
    stdin: bool,
    dropped: Dropped,
) -> Result<Running> {
    let Some(shell) = &shared.shell else {
        return Err(super::capabilities::needs_shell("running a script"));
    };
    let path = match shared.env.get("PATH") {
        Some(own) if !own.is_empty() => format!("PATH={PROGRAM_DIRS}:{own}"),
        _ => format!("PATH={PROGRAM_DIRS}"),
    };
    let mut command = vec![shell.clone(), "-c".to_owned(), text.to_owned(), "sh".to_owned()];
    command.push(shared.root.clone());
    command.extend(args.iter().map(|arg| (*arg).to_owned()));
    let marker = shared.execs.marker();
    let exec = RawExec {
        args: command,
        env: vec!["LC_ALL=C".to_owned(), "ENV=".to_owned(), "BASH_ENV=".to_owned(), path, marker.clone()],
        user: shared.user.to_string(),
        dir: "/".to_owned(),
        stdin,
    };
    shared.execs.note_user(shared.user);
    let target = Target::new(marker, shared.user);
    let target = if dropped == Dropped::TidyUp { target.tidy() } else { target };
    let plan = Plan { program: shell.clone(), exec, target, nonce: None, enter: None };
    let launched = launch(shared, plan, None).await?;
    let RawStreams { id, output, input } = launched.streams;
    let (sender, frames) = mpsc::channel(FRAMES);
    tokio::spawn(pass_on(Arc::clone(shared), launched.leash, output, sender));
    let output = Output { id, frames, stderr: Vec::new(), pending: BytesMut::new() };
    Ok(Running { shared: Arc::clone(shared), output, input })
}

/// Passes on what a script says for as long as somebody listens and the workspace is open, so that
/// a reader which nobody polls keeps no stream of the engine: under one the engine cannot remove
/// the container.
async fn pass_on(
    shared: Arc<Shared>,
    leash: Leash,
    mut output: Pin<Box<dyn Stream<Item = Result<OutputChunk>> + Send>>,
    sender: mpsc::Sender<Result<OutputChunk>>,
) {
    let passing = async {
        while let Some(frame) = output.next().await {
            if sender.send(frame).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let passed = tokio::select! {
        biased;
        lost = shared.monitor.lost() => Err(lost),
        () = sender.closed() => Ok(false),
        passed = passing => passed,
    };
    drop(output);
    match passed {
        Ok(true) => leash.release(),
        // Dropped, the leash ends the script.
        Ok(false) => drop(leash),
        Err(lost) => {
            // What closes the workspace ends everything that it has started.
            if matches!(lost, Error::Closed) {
                leash.release();
            }
            drop(sender.send(Err(lost)).await);
        }
    }
}

/// Runs a script that answers in one piece, again when a component was swapped under it.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    text: &str,
    args: &[&str],
    dropped: Dropped,
) -> Result<(Bytes, Ended)> {
    let mut attempt = 1;
    loop {
        let mut running = start(shared, text, args, false, dropped).await?;
        let mut data = BytesMut::new();
        while let Some(chunk) = running.output.next().await? {
            if data.len() + chunk.len() > ANSWER_LIMIT {
                return Err(unexpected("a script said more than it should"));
            }
            data.extend_from_slice(&chunk);
        }
        let ended = running.output.end(shared, &data).await?;
        if ended.status != status::RACED || attempt == ATTEMPTS {
            return Ok((data.freeze(), ended));
        }
        attempt += 1;
    }
}

/// Starts a script that says one line before anything else, again when a component was swapped under
/// it, and returns that line. Without it the script failed at `operation` on `path`, the first of
/// `args`.
pub(super) async fn begin(
    shared: &Arc<Shared>,
    text: &str,
    args: &[&str],
    stdin: bool,
    dropped: Dropped,
    operation: &'static str,
) -> Result<(Running, String)> {
    let mut attempt = 1;
    loop {
        let mut running = start(shared, text, args, stdin, dropped).await?;
        match running.line().await? {
            Ok(line) => return Ok((running, line)),
            Err(ended) if ended.status == status::RACED && attempt < ATTEMPTS => attempt += 1,
            Err(ended) => {
                ended.check(operation, args.first().unwrap_or(&""))?;
                return Err(unexpected("a script ended without an answer"));
            }
        }
    }
}

impl Running {
    /// The first line of standard output; an error if the script ended instead.
    async fn line(&mut self) -> Result<Result<String, Ended>> {
        let line = tokio::time::timeout(SLOW_CALL_TIMEOUT, self.output.line());
        let line = line.await.map_err(|_| Error::Timeout {
            operation: "a script in the container".to_owned(),
            after: SLOW_CALL_TIMEOUT,
        })??;
        match line {
            Some(line) => Ok(Ok(line)),
            None => {
                let said = self.output.pending.split().freeze();
                Ok(Err(self.output.end(&self.shared, &said).await?))
            }
        }
    }

    /// Its two sides, to be used at the same time.
    pub(super) fn split(self) -> (Output, Input) {
        (self.output, self.input)
    }
}

impl Output {
    /// The next piece of standard output; [`None`] at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        if !self.pending.is_empty() {
            return Ok(Some(self.pending.split().freeze()));
        }
        while let Some(chunk) = self.frames.recv().await.transpose()? {
            match chunk {
                OutputChunk::Stdout(data) => return Ok(Some(data)),
                OutputChunk::Stderr(data) => {
                    let room = STDERR_LIMIT - self.stderr.len();
                    self.stderr.extend_from_slice(&data[..data.len().min(room)]);
                }
            }
        }
        Ok(None)
    }

    async fn line(&mut self) -> Result<Option<String>> {
        let mut line = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            line.extend_from_slice(&chunk);
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                let head = line.split_to(end);
                line.advance(1);
                self.pending = line;
                return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
            }
            if line.len() > LINE_LIMIT {
                break;
            }
        }
        self.pending = line;
        Ok(None)
    }

    /// How the script ended, once its output has; `said` is what it said last.
    pub(super) async fn end(&mut self, shared: &Shared, said: &[u8]) -> Result<Ended> {
        let mut deadline = tokio::time::Instant::now() + STATUS_GRACE;
        let mut pause = Duration::from_millis(10);
        loop {
            let state = shared.engine.exec_state(&self.id).await?;
            match state.exit_code {
                // The engine knows no process: what it says instead of one is on standard output.
                Some(126..=128) if state.pid.unwrap_or(0) == 0 => {
                    return Err(unexpected(String::from_utf8_lossy(said).trim()));
                }
                Some(status) if !state.running => {
                    if status == KILLED {
                        // Nobody here does that, but the end of the container does.
                        check_alive(shared).await?;
                    }
                    return Ok(Ended { status, stderr: std::mem::take(&mut self.stderr) });
                }
                // The engine sees no end in a container that is paused.
                _ if shared.monitor.own_pauses().is_active() => {
                    deadline = tokio::time::Instant::now() + STATUS_GRACE;
                    drop(shared.pause_gate.read().await);
                }
                _ if tokio::time::Instant::now() >= deadline => {
                    return Err(unexpected("the status of a script is not known"));
                }
                // The engine ends the output shortly before it records the status, and tells
                // nobody when it does.
                _ => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

pub(super) fn unexpected(message: &str) -> Error {
    Error::Engine {
        operation: "run a script in the container".to_owned(),
        status: None,
        message: message.to_owned(),
    }
}
