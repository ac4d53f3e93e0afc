//! Processes that run for longer than one call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::Request;
use tokio::sync::{mpsc, watch};

use super::respond::{Answer, body, done, json, stream};
use super::session::{Registered, Session, lock};
use crate::error::{Error, Result};
use crate::output::{End, OutputReceiver, output_channel};
use crate::process::{CLOSE_GRACE, Process, ProcessStdin, ProcessStdout};
use crate::remote::frame::{END, FrameSender, HEAD};
use crate::remote::incoming::Incoming;
use crate::remote::limits::FRAME_QUEUE;
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::{CommandHead, Ended, ProcessId, ResizeRequest, SignalRequest, Started};
use crate::signal::Signal;
use crate::workspace;

/// How long a process whose session ended is awaited after SIGKILL.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A process and the ends of its pipes, each until a request takes it.
#[derive(Debug)]
pub(super) struct Entry {
    process: Process,
    pub(super) stdin: Mutex<Option<ProcessStdin>>,
    pub(super) stdout: Mutex<Option<ProcessStdout>>,
    pub(super) stderr: Mutex<Option<OutputReceiver>>,
    /// Counts what was taken.
    pub(super) taken: watch::Sender<()>,
    /// Whether standard input has been passed on to its end.
    pub(super) fed: Arc<watch::Sender<bool>>,
}

impl Entry {
    fn new(mut process: Process, stderr: Option<OutputReceiver>) -> Self {
        Entry {
            stdin: Mutex::new(process.take_stdin()),
            stdout: Mutex::new(process.take_stdout()),
            stderr: Mutex::new(stderr),
            process,
            taken: watch::Sender::new(()),
            fed: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Whether the output can still be had from here only.
    fn holds_output(&self) -> bool {
        lock(&self.stdout).is_some() || lock(&self.stderr).is_some()
    }

    async fn output_taken(&self) {
        let mut taken = self.taken.subscribe();
        while self.holds_output() {
            if taken.changed().await.is_err() {
                return;
            }
        }
    }
}

/// The response tells the process's number, and how it ends. It stays open until then, and when it
/// is reset the process is ended.
pub(super) async fn start(session: Arc<Session>, request: Request<Incoming>) -> Answer {
    let head: CommandHead = body(request).await?;
    let (call, wants_stderr) = (session.register_call(head.call)?, head.stream);
    let mut command = head.into_command()?.cancel(call.token.clone());
    let mut stderr = None;
    if wants_stderr {
        let (sink, receiver) = output_channel();
        command = command.stream(sink);
        stderr = Some(receiver);
    }
    let process = session.run(workspace::start(&*session.workspace, command)).await?;
    let registered = session.add_process(Entry::new(process, stderr));
    let (sender, receiver) = mpsc::channel(FRAME_QUEUE);
    let watched = session.clone();
    let watching = session.spawn(async move {
        let sender = FrameSender(sender);
        sender.json(HEAD, &Started { process: registered.id }).await;
        watch(&watched, &registered, &sender).await;
        // Output outlives its process until it is read.
        tokio::select! {
            () = registered.entry.output_taken() => {}
            () = watched.ended().cancelled() => {}
        }
        drop(call);
    });
    Ok(stream(Outgoing::queue(receiver).holding(watching)))
}

/// Tells how the process ends, and what keeps it from being told.
async fn watch(session: &Session, registered: &Registered, sender: &FrameSender) {
    let process = &registered.entry.process;
    loop {
        let result = tokio::select! {
            biased;
            result = process.wait() => result,
            () = session.ended().cancelled() => return sender.json(END, &Ended::process(kill(process).await)).await,
        };
        match result {
            Ok(end) => return sender.json(END, &Ended::process(end)).await,
            Err(error) => {
                sender.error(&error).await;
                // A paused workspace may come back.
                if error.is_gone() || !matches!(error, Error::Gone { .. }) {
                    return;
                }
            }
        }
    }
}

/// Ends a process whose session is over while its workspace is not.
async fn kill(process: &Process) -> End {
    let _ = process.signal(Signal::KILL).await;
    match tokio::time::timeout(KILL_PATIENCE, process.wait()).await {
        Ok(Ok(end)) => end,
        // It is not known to have ended otherwise.
        _ => End::Signaled(Signal::KILL),
    }
}

pub(super) async fn signal(session: &Session, request: SignalRequest) -> Answer {
    session.process(request.process)?.process.signal(request.signal).await?;
    done()
}

pub(super) async fn resize(session: &Session, request: ResizeRequest) -> Answer {
    session.process(request.process)?.process.resize(request.size).await?;
    done()
}

/// What the client wrote before it closed may still be on its way, so that is awaited first.
pub(super) async fn close(session: &Session, request: ProcessId) -> Answer {
    let entry = session.process(request.process)?;
    let mut fed = entry.fed.subscribe();
    let _ = tokio::time::timeout(CLOSE_GRACE, fed.wait_for(|fed| *fed)).await;
    let end: Result<End> = session.run(entry.process.close()).await;
    json(&Ended::process(end?))
}
