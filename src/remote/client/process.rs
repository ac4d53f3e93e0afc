//! Processes that run for longer than one call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use hyper::Method;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{Call, Connection};
use super::exec::{cancel_when, head};
use super::files::{Stream, told};
use crate::command::{Command, TtySize};
use crate::deadline::cancelled;
use crate::error::{Error, Result};
use crate::files::Content;
use crate::output::{End, OutputChunk, OutputSink};
use crate::process::{CLOSE_GRACE, Process, ProcessControl};
use crate::remote::error::WireError;
use crate::remote::frame::{END, ERROR, FrameReader, HEAD};
use crate::remote::limits::MAX_FRAME_BYTES;
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::{Ended, ProcessId, ResizeRequest, SignalRequest, Started};
use crate::signal::Signal;

/// How many exchanges a process takes: its life and its three pipes.
const EXCHANGES: u32 = 4;

/// What is known of a process.
#[derive(Clone, Debug, Default)]
struct State {
    ended: Option<std::result::Result<End, WireError>>,
    /// Why it could not be waited for, with the number of such errors so far.
    failed: (u64, Option<WireError>),
}

pub(super) async fn start(connection: &Arc<Connection>, mut command: Command) -> Result<Process> {
    let token = command.cancel.take();
    let permit = tokio::select! {
        permit = connection.lasting(EXCHANGES) => permit?,
        () = cancelled(token.as_ref()) => return Err(Error::Cancelled),
    };
    let call = connection.next_call();
    let head = head(call, &command)?;
    let sink = command.stream.take();
    let request = Call::new(Method::POST, "/v1/start").body(Outgoing::whole(head));
    let reply = tokio::select! {
        reply = connection.send(request) => reply?,
        () = cancelled(token.as_ref()) => return Err(Error::Cancelled),
    };
    let mut frames = FrameReader::new(reply.body);
    let frame = frames.next().await?;
    let Some(Started { process }) = (frame.kind == HEAD).then(|| frame.parse().ok()).flatten() else {
        return Err(frames.broken("a process without a number"));
    };
    // Asked for at once: output outlives the process only until these answers end.
    let id = ProcessId { process };
    let stdout = connection.send(Call::query(Method::GET, "/v1/process/stdout", &id)?);
    let stderr = async {
        match sink {
            Some(sink) => {
                let reply = connection.send(Call::query(Method::GET, "/v1/process/stderr", &id)?).await?;
                Ok(Some((Stream::new(connection, reply, None), sink)))
            }
            None => Ok(None),
        }
    };
    let (stdout, stderr) = futures::try_join!(stdout, stderr)?;
    let stdout = Stream::new(connection, stdout, None);
    let (stdin, pipe) = stdin(connection, &id)?;

    let abandoned = CancellationToken::new();
    let (sender, state) = watch::channel(State::default());
    let control = RemoteProcess {
        connection: connection.clone(),
        process,
        state,
        abandoned: abandoned.clone(),
        _abandon: abandoned.clone().drop_guard(),
    };
    let owner = connection.clone();
    connection.tasks.spawn(async move {
        let life = async {
            let passing = async {
                if let Some((stderr, sink)) = stderr {
                    pass_on(stderr, sink).await;
                }
            };
            follow(&owner, frames, passing, &sender).await;
        };
        tokio::select! {
            () = life => {}
            // Letting go of the answer ends the process.
            () = abandoned.cancelled() => {}
            never = cancel_when(&owner, token, call) => match never {},
        }
        drop(permit);
    });
    connection.tasks.spawn(stdin);
    Ok(Process::new(pipe, stdout, Arc::new(control)))
}

/// A pipe, and what sends to the server what is written to it.
fn stdin(
    connection: &Arc<Connection>,
    id: &ProcessId,
) -> Result<(impl Future<Output = ()> + Send + use<>, DuplexStream)> {
    let (reader, writer) = tokio::io::duplex(MAX_FRAME_BYTES);
    let call =
        Call::query(Method::PUT, "/v1/process/stdin", id)?.content(Content::reader(reader), "standard input");
    let connection = connection.clone();
    let sending = async move {
        // When the server has no use for it, the reader is dropped, and a write is broken.
        let _ = connection.send(call).await;
    };
    Ok((sending, writer))
}

/// Sends standard error to its sink until either ends. What the server sends when nobody reads any
/// more is discarded there.
async fn pass_on(mut stderr: Stream, sink: OutputSink) {
    loop {
        let mut buffer = bytes::BytesMut::with_capacity(MAX_FRAME_BYTES);
        match stderr.read_buf(&mut buffer).await {
            Ok(1..) if sink.send(OutputChunk::Stderr(buffer.freeze())).await => {}
            _ => return,
        }
    }
}

/// Takes what the server tells of a process, to its end.
async fn follow(
    connection: &Connection,
    mut frames: FrameReader,
    passing: impl Future<Output = ()>,
    sender: &watch::Sender<State>,
) {
    let mut passing = std::pin::pin!(passing);
    let mut passed = false;
    let ended = loop {
        let frame = tokio::select! {
            frame = frames.next() => frame,
            () = &mut passing, if !passed => {
                passed = true;
                continue;
            }
        };
        match frame {
            Ok(frame) if frame.kind == END => match frame.parse::<Ended>() {
                Ok(ended) => break Ok(ended.end),
                Err(error) => break Err(frames.broken(error.to_string())),
            },
            Ok(frame) if frame.kind == ERROR => {
                let error = told(connection, &mut frames, &frame);
                if error.is_gone() || !matches!(error, Error::Gone { .. }) {
                    break Err(error);
                }
                sender
                    .send_modify(|state| state.failed = (state.failed.0 + 1, Some(WireError::from(&error))));
            }
            Ok(_) => {}
            // The server has ended it with everything else.
            Err(Error::Closed) => break Ok(End::Signaled(Signal::KILL)),
            Err(error) => break Err(error),
        }
    };
    if !passed {
        let _ = tokio::time::timeout(CLOSE_GRACE, passing).await;
    }
    sender.send_modify(|state| state.ended = Some(ended.map_err(|error| WireError::from(&error))));
}

struct RemoteProcess {
    connection: Arc<Connection>,
    process: u64,
    state: watch::Receiver<State>,
    abandoned: CancellationToken,
    /// A process whose handle is gone is abandoned too.
    _abandon: DropGuard,
}

impl RemoteProcess {
    /// Its end when it is known.
    fn ended(&self) -> Option<Result<End>> {
        self.state.borrow().ended.clone().map(|ended| ended.map_err(WireError::into_error))
    }

    /// Asks the server for something, unless the process has ended.
    async fn ask(&self, path: &str, request: &(impl Serialize + Sync)) -> Result<serde_json::Value> {
        match self.ended() {
            Some(Ok(_)) => Err(Error::ProcessDone),
            Some(Err(error)) => Err(error),
            None => self.connection.ask(Call::json(path, request)).await,
        }
    }
}

#[async_trait]
impl ProcessControl for RemoteProcess {
    async fn wait(&self) -> Result<End> {
        let mut state = self.state.clone();
        let failed = state.borrow().failed.0;
        let changed = state.wait_for(|state| state.ended.is_some() || state.failed.0 > failed).await;
        match changed {
            Ok(state) => match (&state.ended, &state.failed.1) {
                (Some(ended), _) => ended.clone().map_err(WireError::into_error),
                (None, Some(error)) => Err(error.clone().into_error()),
                (None, None) => Err(self.connection.gone()),
            },
            Err(_) => Err(self.connection.gone()),
        }
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        let request = SignalRequest { process: self.process, signal };
        self.ask("/v1/process/signal", &request).await.map(drop)
    }

    async fn resize(&self, size: TtySize) -> Result<()> {
        let request = ResizeRequest { process: self.process, size };
        self.ask("/v1/process/resize", &request).await.map(drop)
    }

    async fn close(&self) -> Result<End> {
        if let Some(ended) = self.ended() {
            return ended;
        }
        let request = Call::json("/v1/process/close", &ProcessId { process: self.process });
        let connection = self.connection.clone();
        // A task, so that the steps go on when this future is dropped.
        let asking =
            self.connection.tasks.spawn(async move { connection.ask::<serde_json::Value>(request).await });
        // Only a runtime that shuts down gives a task up.
        match asking.await.unwrap_or_else(|_| Err(self.connection.gone())) {
            // Its end is told by the other exchange, the same to whoever waits.
            Ok(_) | Err(Error::ProcessDone | Error::Closed) => self.wait().await,
            Err(error) => Err(error),
        }
    }

    fn abandon(&self) {
        self.abandoned.cancel();
    }
}

impl fmt::Debug for RemoteProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteProcess").field("process", &self.process).finish_non_exhaustive()
    }
}
