//! Commands that run to their end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use hyper::Method;
use tokio_util::sync::CancellationToken;

use super::connection::{Call, Connection};
use super::files::told;
use crate::collector::chunk;
use crate::command::Command;
use crate::deadline::cancelled;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::files::Content;
use crate::output::{Output, OutputSink};
use crate::remote::frame::{END, ERROR, FrameReader, STDERR, STDOUT};
use crate::remote::limits::MAX_JSON_BYTES;
use crate::remote::wire::{CallId, CommandHead, Ended};

/// The document of a command; one that is too large no system would start.
pub(super) fn head(call: u64, command: &Command) -> Result<Vec<u8>> {
    let head = serde_json::to_vec(&CommandHead::new(call, command)).unwrap_or_default();
    if head.len() > MAX_JSON_BYTES {
        let (program, kind) = (command.program().to_owned(), SpawnErrorKind::ArgumentsTooLong);
        return Err(Error::Spawn { program, kind, source: None });
    }
    Ok(head)
}

/// Waits for the token and then tells the server, whose answer to the call itself is what counts.
pub(super) async fn cancel_when(
    connection: &Arc<Connection>,
    token: Option<CancellationToken>,
    call: u64,
) -> Infallible {
    cancelled(token.as_ref()).await;
    // Without a connection the call itself ends.
    let _ = connection.ask::<serde_json::Value>(Call::json("/v1/cancel", &CallId { call })).await;
    std::future::pending().await
}

pub(super) async fn exec(connection: &Arc<Connection>, mut command: Command) -> Result<Output> {
    let token = command.cancel.take();
    let _permit = tokio::select! {
        permit = connection.lasting(1) => permit?,
        () = cancelled(token.as_ref()) => return Err(Error::Cancelled),
    };
    let call = connection.next_call();
    let head = head(call, &command)?;
    let (sink, limit) = (command.stream.take(), command.output_limit);
    let stdin = command.stdin.take().unwrap_or_else(Content::empty);
    let purpose = format!("the input of {}", command.program());
    let request = Call::new(Method::POST, "/v1/exec").content(stdin, purpose).head(head);
    let reply = tokio::select! {
        reply = connection.send(request) => reply?,
        // It is not known to the server by its number yet, so dropping the call ends it.
        () = cancelled(token.as_ref()) => return Err(Error::Cancelled),
    };
    let content_error = reply.content_error();
    let _abort = reply.abort;
    let frames = FrameReader::new(reply.body);
    let collecting = collect(connection, frames, sink, limit);
    tokio::select! {
        result = collecting => result.map_err(|error| content_error().unwrap_or(error)),
        never = pin!(cancel_when(connection, token, call)) => match never {},
    }
}

/// Takes the output until the end.
async fn collect(
    connection: &Connection,
    mut frames: FrameReader,
    sink: Option<OutputSink>,
    limit: u64,
) -> Result<Output> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        let frame = frames.next().await?;
        match (frame.kind, &sink) {
            // Without a reader the output is discarded and the command goes on.
            (kind @ (STDOUT | STDERR), Some(sink)) => {
                sink.send(chunk(kind == STDERR, frame.into_bytes())).await;
            }
            (kind @ (STDOUT | STDERR), None) => {
                let kept = if kind == STDERR { &mut stderr } else { &mut stdout };
                let bytes = frame.into_bytes();
                if (kept.len() + bytes.len()) as u64 > limit {
                    return Err(frames.broken("more output than was to be kept"));
                }
                kept.extend_from_slice(&bytes);
            }
            (END, _) => {
                let ended = frame.parse::<Ended>().ok();
                let output = ended.and_then(|ended| ended.into_output(stdout, stderr));
                return output.ok_or_else(|| frames.broken("an end that contradicts the output"));
            }
            (ERROR, _) => return Err(told(connection, &mut frames, &frame)),
            _ => return Err(frames.broken("an unexpected frame")),
        }
    }
}
