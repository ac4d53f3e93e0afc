//! This process's side of a supervisor: what it reported, and how to let go of it.

use std::convert::Infallible;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use tokio::process::Child;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, GoneReason, Result};
use crate::output::End;
use crate::signal::Signal;

use super::descendants;
use super::pidfd::ProcessFd;
use super::supervisor::{DONE, FAILED, LEADER, REPORT_BYTES, STARTED, STATUS};

/// A command under its supervisor. Everything that the command started ends when this is told to
/// [`kill`](Self::kill), and when this process dies.
#[derive(Debug)]
pub(super) struct Supervised {
    /// The supervisor kills when this is shut or closed.
    link: UnixStream,
    pid: i32,
    supervisor: Option<ProcessFd>,
    progress: watch::Receiver<Progress>,
    /// Cancelled by the first [`kill`](Self::kill).
    killed: CancellationToken,
}

/// How often, and how many times, a supervisor that does not say whether the program runs is told
/// to go on. A program on a slow disk takes long to load, too.
const NUDGE: Duration = Duration::from_millis(50);
const MAX_NUDGES: usize = 1200;

/// How many times a supervisor that was told to kill is told to go on before what is below it is
/// killed from here as well: something there may stop it time and again.
const NUDGES_BEFORE_FORCE: usize = 4;

/// What is known of a command so far.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    leader: Option<i32>,
    /// Whether the program runs, or the encoded reason why it does not.
    started: Option<std::result::Result<(), i32>>,
    /// The leader's wait status once it has ended.
    status: Option<i32>,
    /// Set once the supervisor is gone.
    finished: bool,
}

/// How the leader ended by itself or by a signal.
pub(super) fn end_of(status: i32) -> End {
    if libc::WIFSIGNALED(status) {
        return End::Signaled(Signal::new(libc::WTERMSIG(status)).unwrap_or(Signal::KILL));
    }
    End::Exited(libc::WEXITSTATUS(status))
}

impl Supervised {
    /// Takes over a supervisor that was just forked as `child`, with `link` as this side of its
    /// socket. The returned future follows it to its end and must be run.
    pub(super) fn new(
        child: Child,
        link: UnixStream,
    ) -> std::io::Result<(Arc<Supervised>, impl Future<Output = ()> + Send + use<>)> {
        link.set_nonblocking(true)?;
        let reports = tokio::net::UnixStream::from_std(link.try_clone()?)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        let (sender, progress) = watch::channel(Progress::default());
        // Without process descriptors (kernels before 5.3) a stopped supervisor stays stopped.
        let supervisor = ProcessFd::open(pid).ok();
        let killed = CancellationToken::new();
        let supervised = Arc::new(Supervised { link, pid, supervisor, progress, killed });
        let guard = KillOnDrop::new(supervised.clone());
        let following = follow(child, reports, sender);
        let followed = supervised.clone();
        let until_gone = async move {
            let _guard = guard;
            let mut following = pin!(following);
            tokio::select! {
                () = &mut following => return,
                () = followed.killed.cancelled() => {}
            }
            tokio::select! {
                () = following => {}
                never = followed.insist() => match never {},
            }
        };
        Ok((supervised, until_gone))
    }

    /// Begins to kill everything, without waiting; also outside of a runtime.
    pub(super) fn kill(&self) {
        self.killed.cancel();
        // A socket that is shut already has told the supervisor.
        let _ = self.link.shutdown(Shutdown::Write);
        if let Some(supervisor) = &self.supervisor {
            // A process of the same user may have stopped it.
            let _ = supervisor.send(Signal::CONT);
        }
    }

    /// Sees to it that a supervisor that was told to kill is not kept from it.
    async fn insist(&self) -> Infallible {
        for round in 1..=MAX_NUDGES {
            tokio::time::sleep(NUDGE).await;
            if round % NUDGES_BEFORE_FORCE == 0 {
                self.signal(Signal::KILL).await;
            }
            if let Some(supervisor) = &self.supervisor {
                // It fails when the supervisor has gone, and that is followed elsewhere.
                let _ = supervisor.send(Signal::CONT);
            }
        }
        std::future::pending().await
    }

    /// Blocks, also outside of a runtime, until the supervisor, which was told to kill, is gone.
    /// Whether it is by `deadline`.
    pub(super) fn gone_by(&self, deadline: Instant) -> bool {
        let Some(supervisor) = &self.supervisor else { return false };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if supervisor.ended_within(left.min(NUDGE)) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
            let _ = supervisor.send(Signal::CONT);
        }
    }

    /// Sends `signal` to everything below the supervisor, the leader among it.
    pub(super) async fn signal(&self, signal: Signal) {
        let pid = self.pid;
        // It fails only when the runtime shuts down, and then everything is killed.
        let _ = tokio::task::spawn_blocking(move || descendants::signal_below(pid, signal)).await;
    }

    /// Waits until the program runs; the encoded reason when it does not.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] when the supervisor was killed before it could say.
    pub(super) async fn started(&self) -> Result<std::result::Result<(), i32>> {
        let mut progress = self.progress.clone();
        let known = progress.wait_for(|progress| progress.started.is_some() || progress.finished);
        let mut known = pin!(known);
        for _ in 0..MAX_NUDGES {
            if let Ok(known) = tokio::time::timeout(NUDGE, &mut known).await {
                let started = known.ok().and_then(|progress| progress.started);
                return started.ok_or(Error::Gone { why: GoneReason::SupervisorKilled });
            }
            // The program may run already and have stopped its supervisor, which then cannot say so.
            if let Some(supervisor) = &self.supervisor {
                let _ = supervisor.send(Signal::CONT);
            }
        }
        Err(Error::Gone { why: GoneReason::SupervisorKilled })
    }

    /// Whether the leader has ended.
    pub(super) fn has_exited(&self) -> bool {
        let progress = self.progress.borrow();
        progress.status.is_some() || progress.finished
    }

    /// Waits for the leader's end.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] when the supervisor was killed, so that nobody knows.
    pub(super) async fn exited(&self) -> Result<End> {
        let mut progress = self.progress.clone();
        let known = progress.wait_for(|progress| progress.status.is_some() || progress.finished).await;
        match known.ok().and_then(|progress| progress.status) {
            Some(status) => Ok(end_of(status)),
            None => Err(Error::Gone { why: GoneReason::SupervisorKilled }),
        }
    }

    /// Waits until nothing of the command is left.
    pub(super) async fn finished(&self) {
        // The sender is dropped only with the runtime.
        let _ = self.progress.clone().wait_for(|progress| progress.finished).await;
    }
}

/// Kills the command when the owner's future is dropped.
#[derive(Debug)]
pub(super) struct KillOnDrop(Option<Arc<Supervised>>);

impl KillOnDrop {
    pub(super) fn new(supervised: Arc<Supervised>) -> Self {
        KillOnDrop(Some(supervised))
    }

    /// Lets the command's processes go on.
    pub(super) fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(supervised) = &self.0 {
            supervised.kill();
        }
    }
}

/// Reads what the supervisor reports until it is gone, and reaps it.
async fn follow(mut child: Child, mut reports: tokio::net::UnixStream, progress: watch::Sender<Progress>) {
    let mut done = false;
    let mut report = [0; REPORT_BYTES];
    while reports.read_exact(&mut report).await.is_ok() {
        let [tag, value] = decode(report);
        match tag {
            LEADER => progress.send_modify(|progress| progress.leader = Some(value)),
            STARTED => progress.send_modify(|progress| progress.started = Some(Ok(()))),
            FAILED => {
                done = true;
                progress.send_modify(|progress| progress.started = Some(Err(value)));
            }
            STATUS => progress.send_modify(|progress| progress.status = Some(value)),
            DONE => done = true,
            _ => {}
        }
    }
    let leader = progress.borrow().leader;
    if let (false, Some(leader)) = (done, leader) {
        tracing::warn!(leader, "the supervisor of a command was killed");
        // It fails only when the runtime shuts down.
        let _ = tokio::task::spawn_blocking(move || descendants::kill_session(leader)).await;
    }
    if let Err(error) = child.wait().await {
        tracing::warn!(%error, "failed to reap a supervisor");
    }
    progress.send_modify(|progress| progress.finished = true);
}

fn decode(report: [u8; REPORT_BYTES]) -> [i32; 2] {
    let [a, b, c, d, e, f, g, h] = report;
    [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_is_an_exit_or_a_signal() {
        assert_eq!(end_of(3 << 8), End::Exited(3));
        assert_eq!(end_of(libc::SIGTERM), End::Signaled(Signal::TERM));
        assert_eq!(end_of(libc::SIGSEGV | 0x80), End::Signaled(Signal::new(libc::SIGSEGV).unwrap()));
    }
}
