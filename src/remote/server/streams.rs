//! The pipes of started processes, each as the body of a request or response of its own, so that
//! one that nobody reads holds up no other.

use std::io;

use hyper::Request;
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio_util::io::StreamReader;

use super::respond::{Answer, done, reader, stream};
use super::session::{Session, lock};
use crate::error::{Error, Result};
use crate::output::OutputReceiver;
use crate::process::ProcessStdin;
use crate::remote::incoming::{BodyReader, Incoming};
use crate::remote::limits::MAX_FRAME_BYTES;
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::ProcessId;

/// Passes the body on; its end, whole or not, is end of file for the process.
pub(super) async fn stdin(session: &Session, query: ProcessId, request: Request<Incoming>) -> Answer {
    // Nothing here holds the process, which ends when its client lets go of it.
    let (pipe, fed) = {
        let entry = session.process(query.process)?;
        (lock(&entry.stdin).take().ok_or_else(taken)?, entry.fed.clone())
    };
    let (parts, body) = request.into_parts();
    let result = session.run(feed(pipe, reader(&parts.headers, body))).await;
    fed.send_replace(true);
    result?;
    done()
}

async fn feed(mut pipe: ProcessStdin, mut body: BodyReader) -> Result<()> {
    let broken = |error| Error::from_io("write to", "standard input", error);
    loop {
        let piece = body.piece(MAX_FRAME_BYTES).await?;
        if piece.is_empty() {
            return pipe.shutdown().await.map_err(broken);
        }
        pipe.write_all(&piece).await.map_err(broken)?;
        pipe.flush().await.map_err(broken)?;
    }
}

pub(super) fn stdout(session: &Session, query: ProcessId) -> Answer {
    let entry = session.process(query.process)?;
    let stdout = lock(&entry.stdout).take().ok_or_else(taken)?;
    entry.taken.send_replace(());
    Ok(stream(Outgoing::reader(stdout)))
}

pub(super) fn stderr(session: &Session, query: ProcessId) -> Answer {
    let entry = session.process(query.process)?;
    let receiver = lock(&entry.stderr).take().ok_or_else(taken)?;
    entry.taken.send_replace(());
    Ok(stream(Outgoing::reader(bytes(receiver))))
}

/// Chunks as a reader.
fn bytes(receiver: OutputReceiver) -> impl AsyncRead + Send {
    let chunks = futures::stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((Ok::<_, io::Error>(chunk.bytes().clone()), receiver))
    });
    StreamReader::new(Box::pin(chunks))
}

fn taken() -> Error {
    Error::InvalidArgument { reason: "this pipe of the process is used by another request".to_owned() }
}
