//! Commands that run to their end.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use tokio::sync::mpsc;

use super::respond::{Answer, reader, stream};
use super::session::Session;
use crate::command::Command;
use crate::error::Result;
use crate::files::Content;
use crate::output::{Output, OutputChunk, OutputReceiver, output_channel};
use crate::remote::frame::{END, FrameSender, STDERR, STDOUT};
use crate::remote::incoming::{BodyReader, Incoming};
use crate::remote::limits::{FRAME_QUEUE, MAX_JSON_BYTES};
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::{CommandHead, Ended};

/// The request is the length of the head (4 bytes, big endian), the head, and standard input to
/// the end of the body.
pub(super) async fn exec(session: Arc<Session>, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let mut body = reader(&parts.headers, body);
    let head: CommandHead = read_head(&mut body).await?;
    let (call, stdin, streams) = (session.register_call(head.call)?, head.stdin, head.stream);
    let mut command = head.into_command()?.cancel(call.token.clone());
    if stdin {
        command = command.stdin(Content::reader(body));
    }
    let (sender, receiver) = mpsc::channel(FRAME_QUEUE);
    let sender = FrameSender(sender);
    let ran = session.clone();
    let running = session.spawn(async move {
        let result = match streams {
            true => run_streaming(&ran, command, &sender).await,
            false => ran.run(ran.workspace.exec(command)).await,
        };
        drop(call);
        match result {
            Ok(output) => send(output, &sender).await,
            Err(error) => sender.error(&error).await,
        }
    });
    Ok(stream(Outgoing::queue(receiver).holding(running)))
}

/// The JSON document at the start of a body.
pub(super) async fn read_head<T: serde::de::DeserializeOwned>(body: &mut BodyReader) -> Result<T> {
    let length = body.exactly(4).await?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if length > MAX_JSON_BYTES {
        return Err(body.broken(format!("a head of {length} bytes, more than {MAX_JSON_BYTES}")));
    }
    let head = body.exactly(length).await?;
    serde_json::from_slice(&head).map_err(|error| body.broken(format!("its head: {error}")))
}

async fn run_streaming(session: &Session, command: Command, sender: &FrameSender) -> Result<Output> {
    let (sink, receiver) = output_channel();
    let run = session.run(session.workspace.exec(command.stream(sink)));
    let (result, ()) = tokio::join!(run, forward(receiver, sender));
    result
}

async fn forward(mut receiver: OutputReceiver, sender: &FrameSender) {
    while let Some(chunk) = receiver.recv().await {
        match chunk {
            OutputChunk::Stdout(bytes) => sender.data(STDOUT, bytes).await,
            OutputChunk::Stderr(bytes) => sender.data(STDERR, bytes).await,
        }
    }
}

async fn send(output: Output, sender: &FrameSender) {
    let ended = Ended::command(&output);
    sender.data(STDOUT, Bytes::from(output.stdout.into_bytes())).await;
    sender.data(STDERR, Bytes::from(output.stderr.into_bytes())).await;
    sender.json(END, &ended).await;
}
