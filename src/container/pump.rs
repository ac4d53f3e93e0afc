//! Carries a command's output from the engine to whoever wants it.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::watch;

use super::monitor::Monitor;
use super::start_line::{Start, StartLine};
use crate::collector::Collector;
use crate::error::Result;
use crate::output::{OutputChunk, OutputSink};

/// Where a command's output goes.
pub(crate) enum Outlet {
    /// Kept, or passed to one sink.
    Collect(Collector),
    /// Standard output to a pipe and standard error to a sink, each discarded once its reader is
    /// gone.
    Pipes { stdout: Option<DuplexStream>, stderr: Option<OutputSink> },
}

impl Outlet {
    async fn take(&mut self, chunk: OutputChunk) {
        match (self, chunk) {
            (Outlet::Collect(collector), chunk) => collector.take(chunk).await,
            (Outlet::Pipes { stdout, .. }, OutputChunk::Stdout(bytes)) => {
                if let Some(pipe) = stdout
                    && pipe.write_all(&bytes).await.is_err()
                {
                    *stdout = None;
                }
            }
            (Outlet::Pipes { stderr, .. }, chunk) => {
                if let Some(sink) = stderr
                    && !sink.send(chunk).await
                {
                    *stderr = None;
                }
            }
        }
    }
}

/// The output of one command on its way.
pub(crate) struct Pump {
    output: Pin<Box<dyn Stream<Item = Result<OutputChunk>> + Send>>,
    pub(crate) start_line: StartLine,
    pub(crate) outlet: Outlet,
    /// Set while a reader is behind, when the end of the output cannot be seen.
    pub(crate) held_up: watch::Sender<bool>,
    monitor: Monitor,
}

/// Why carrying output came to a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// The command has started.
    Started,
    /// There is no more output.
    Ended,
    /// There was none for as long as was allowed.
    Silent,
}

impl Pump {
    pub(crate) fn new(
        output: Pin<Box<dyn Stream<Item = Result<OutputChunk>> + Send>>,
        start_line: StartLine,
        outlet: Outlet,
        monitor: Monitor,
    ) -> Self {
        Pump { output, start_line, outlet, held_up: watch::Sender::new(false), monitor }
    }

    /// Carries output until the command has started; without a start it has ended.
    pub(crate) async fn until_started(&mut self) -> Result<Pumped> {
        while self.start_line.state() == &Start::Pending {
            if self.step(None).await?.is_some() {
                return Ok(Pumped::Ended);
            }
        }
        let failed = matches!(self.start_line.state(), Start::Failed(_));
        Ok(if failed { Pumped::Ended } else { Pumped::Started })
    }

    /// Carries output to its end, or until there is none for `idle`. Time that a slow reader
    /// takes does not count, nor does a pause of the workspace itself.
    pub(crate) async fn run(&mut self, idle: Option<Duration>) -> Result<Pumped> {
        loop {
            if let Some(stop) = self.step(idle).await? {
                return Ok(stop);
            }
        }
    }

    /// Carries one chunk.
    async fn step(&mut self, idle: Option<Duration>) -> Result<Option<Pumped>> {
        let awake = self.monitor.awake();
        let next = tokio::select! {
            biased;
            next = self.output.next() => next,
            () = awake.passed(idle) => return Ok(Some(Pumped::Silent)),
        };
        let Some(chunk) = next.transpose()? else { return Ok(Some(Pumped::Ended)) };
        if let Some(chunk) = self.start_line.take(chunk) {
            self.held_up.send_replace(true);
            self.outlet.take(chunk).await;
            self.held_up.send_replace(false);
        }
        Ok(None)
    }
}

/// How a command's input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// It is closed after its last byte. When its source fails it is not, since the command must not
    /// take a part for the whole before it is ended.
    AfterLast,
    /// It is closed also when its source fails: nothing else makes the command end.
    Always,
    /// A terminal's.
    Tty,
}

/// Copies `from` into a command's standard input and closes it.
///
/// An engine does not say that a command reads no more, so the copy may never end by itself: it is
/// to be dropped when the output has ended. What fails is only the source: a command that does not
/// read its input is no error.
pub(crate) async fn feed(
    mut from: impl AsyncRead + Unpin,
    mut input: Pin<Box<dyn AsyncWrite + Send>>,
    end: InputEnd,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 32 * 1024];
    let mut last = b'\n';
    loop {
        let count = match from.read(&mut buffer).await {
            Ok(count) => count,
            Err(error) => {
                if end == InputEnd::Always {
                    drop(input.shutdown().await);
                }
                return Err(error);
            }
        };
        if count == 0 {
            break;
        }
        last = buffer[count - 1];
        if input.write_all(&buffer[..count]).await.is_err() || input.flush().await.is_err() {
            return Ok(());
        }
    }
    if end == InputEnd::Tty {
        // Closing one direction ends the whole stream of a terminal, so it gets its end-of-file
        // character: once to hand over an unfinished line, and once to end.
        let end: &[u8] = if last == b'\n' { b"\x04" } else { b"\x04\x04" };
        drop(input.write_all(end).await);
        drop(input.flush().await);
        // Dropping the writer would do the same as closing it.
        std::future::pending::<()>().await;
    }
    drop(input.shutdown().await);
    Ok(())
}
