//! A process that runs for longer than one call.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use sync_wrapper::SyncWrapper;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::command::TtySize;
use crate::error::Result;
use crate::output::End;
use crate::signal::Signal;

/// How long each polite step of ending a process may take: after its input is closed, and after
/// SIGTERM.
pub const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// A process started in a workspace, with pipes to it.
///
/// Its methods may be used at the same time: one task writes to standard input, another reads
/// standard output, a third waits.
///
/// It lives no longer than its owner. [`close`](Self::close), the caller's cancellation token,
/// the command's timeouts and the workspace's `close` end it and everything it started; when it
/// exits by itself, what it left running goes with it; dropping it sends SIGKILL to all of it.
pub struct Process {
    stdin: Option<ProcessStdin>,
    stdin_state: Arc<Mutex<StdinState>>,
    stdout: Option<ProcessStdout>,
    control: Arc<dyn ProcessControl>,
}

/// How a backend lets go of, signals and waits for one process. Implemented by backends; callers
/// use [`Process`].
#[async_trait]
pub trait ProcessControl: fmt::Debug + Send + Sync + 'static {
    /// See [`Process::wait`].
    async fn wait(&self) -> Result<End>;
    /// See [`Process::signal`].
    async fn signal(&self, signal: Signal) -> Result<()>;
    /// See [`Process::resize`].
    async fn resize(&self, size: TtySize) -> Result<()>;
    /// Ends the process, whose input is closed already: waits [`CLOSE_GRACE`] for it to exit,
    /// sends SIGTERM to everything it started, waits as long again, sends SIGKILL, and returns
    /// once it has exited. The sequence goes on when the future is dropped.
    async fn close(&self) -> Result<End>;
    /// Begins to end it with SIGKILL, without waiting; also outside of a runtime. Called when the
    /// [`Process`] is dropped; does nothing after exit.
    fn abandon(&self);
}

impl Process {
    /// A process with these pipes. For backends. Dropping `stdin` must be end of file for the
    /// process.
    pub fn new(
        stdin: impl AsyncWrite + Send + 'static,
        stdout: impl AsyncRead + Send + 'static,
        control: Arc<dyn ProcessControl>,
    ) -> Self {
        let state = Arc::new(Mutex::new(StdinState { writer: Some(Box::pin(stdin)), waker: None }));
        Process {
            stdin: Some(ProcessStdin(state.clone())),
            stdin_state: state,
            stdout: Some(ProcessStdout(SyncWrapper::new(Box::pin(stdout)))),
            control,
        }
    }

    /// Puts another control in the place of its own.
    #[cfg(feature = "helper")]
    pub(crate) fn wrap(&mut self, wrap: impl FnOnce(Arc<dyn ProcessControl>) -> Arc<dyn ProcessControl>) {
        self.control = wrap(self.control.clone());
    }

    /// Its standard input; `None` once taken.
    pub fn stdin(&mut self) -> Option<&mut ProcessStdin> {
        self.stdin.as_mut()
    }

    /// Takes standard input out, to use it from another task.
    pub fn take_stdin(&mut self) -> Option<ProcessStdin> {
        self.stdin.take()
    }

    /// Its standard output; `None` once taken. It ends when the process and everything it
    /// started have closed it.
    pub fn stdout(&mut self) -> Option<&mut ProcessStdout> {
        self.stdout.as_mut()
    }

    /// Takes standard output out, to use it from another task.
    pub fn take_stdout(&mut self) -> Option<ProcessStdout> {
        self.stdout.take()
    }

    /// Waits for the process to exit. Standard error has then been passed on, except what arrives
    /// more than 2 s later. Any number of callers get the same answer.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`](crate::Error::Gone) when the workspace died under it, or is paused from
    /// outside for more than 5 s; a call after it was resumed waits on. That it exited with
    /// a status other than 0, or was ended, is not an error.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future only stops waiting.
    pub async fn wait(&self) -> Result<End> {
        self.control.wait().await
    }

    /// Sends `signal` to the process and to everything it started.
    ///
    /// # Errors
    ///
    /// [`Error::ProcessDone`](crate::Error::ProcessDone) once it has exited.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the signal may or may not have been sent.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.control.signal(signal).await
    }

    /// Sets the size of its terminal.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) when it was started without one,
    /// [`Error::ProcessDone`](crate::Error::ProcessDone) once it has exited.
    pub async fn resize(&self, size: TtySize) -> Result<()> {
        self.control.resize(size).await
    }

    /// Ends it politely, with everything it started: closes standard input, also when it was
    /// taken, waits [`CLOSE_GRACE`] for the exit, sends SIGTERM, waits as long again, sends
    /// SIGKILL. Returns once it has exited. Calling it again returns the same.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops waiting; the steps go on.
    pub async fn close(&self) -> Result<End> {
        self.stdin_state.lock().unwrap_or_else(PoisonError::into_inner).close();
        self.control.close().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.control.abandon();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("control", &self.control).finish_non_exhaustive()
    }
}

/// The standard input of a [`Process`].
///
/// Shutting it down or dropping it is end of file for the process. After
/// [`Process::close`] a write is [`io::ErrorKind::BrokenPipe`].
pub struct ProcessStdin(Arc<Mutex<StdinState>>);

/// The pipe, shared so that [`Process::close`] can close one that was taken.
struct StdinState {
    writer: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Who waits for the writer, to be told when it is closed under them.
    waker: Option<Waker>,
}

impl StdinState {
    fn close(&mut self) {
        self.writer = None;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl ProcessStdin {
    /// Polls the writer; broken once it is closed.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut (dyn AsyncWrite + Send)>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = state.writer.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let polled = poll(writer.as_mut(), cx);
        state.waker = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}

impl AsyncWrite for ProcessStdin {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, |writer, cx| writer.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |writer, cx| writer.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll(cx, |writer, cx| writer.poll_shutdown(cx)))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for ProcessStdin {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).close();
    }
}

impl fmt::Debug for ProcessStdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessStdin(..)")
    }
}

/// The standard output of a [`Process`].
pub struct ProcessStdout(SyncWrapper<Pin<Box<dyn AsyncRead + Send>>>);

impl AsyncRead for ProcessStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.get_mut().as_mut().poll_read(cx, buf)
    }
}

impl fmt::Debug for ProcessStdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessStdout(..)")
    }
}

/// What callers share between tasks, at compile time.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Process>();
    shared::<ProcessStdin>();
    shared::<crate::Command>();
    shared::<crate::FileReader>();
};

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[derive(Debug)]
    struct Ended;

    #[async_trait]
    impl ProcessControl for Ended {
        async fn wait(&self) -> Result<End> {
            Ok(End::Exited(0))
        }
        async fn signal(&self, _: Signal) -> Result<()> {
            Ok(())
        }
        async fn resize(&self, _: TtySize) -> Result<()> {
            Ok(())
        }
        async fn close(&self) -> Result<End> {
            Ok(End::Exited(0))
        }
        fn abandon(&self) {}
    }

    #[tokio::test]
    async fn closing_breaks_a_write_that_waits() {
        let (ours, _theirs) = tokio::io::duplex(1);
        let mut process = Process::new(ours, tokio::io::empty(), Arc::new(Ended));
        let mut stdin = process.take_stdin().unwrap();
        let writer = tokio::spawn(async move { stdin.write_all(b"too much").await });
        // Lets the writer fill the pipe and wait.
        tokio::task::yield_now().await;
        process.close().await.unwrap();
        assert_eq!(writer.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
