//! Several operations in one round trip.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use tokio::sync::mpsc;

use super::exec::read_head;
use super::respond::{Answer, path, reader, stream};
use super::session::Session;
use crate::error::{Error, Result};
use crate::files::{OpenOptions, WriteOptions};
use crate::remote::error::WireError;
use crate::remote::frame::{DATA, END, FrameSender, RESULT};
use crate::remote::grant::Scopes;
use crate::remote::incoming::{BodyReader, Incoming};
use crate::remote::limits::{FRAME_QUEUE, MAX_BATCH, MAX_BATCH_BYTES};
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::{BatchHead, BatchOperation, BatchOutcome};

/// The request is a head as for a command, then the content of the writes. Operations are done one
/// after the other; one that fails does not keep the next from being done.
pub(super) async fn batch(session: Arc<Session>, scopes: Scopes, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let mut body = reader(&parts.headers, body);
    let head: BatchHead = read_head(&mut body).await?;
    check(&head)?;
    let (sender, receiver) = mpsc::channel(FRAME_QUEUE);
    let sender = FrameSender(sender);
    let owner = session.clone();
    let running = session.spawn(async move {
        let mut batch = Batch { session: &owner, scopes, body, left: MAX_BATCH_BYTES };
        for operation in head.operations {
            match batch.perform(operation).await {
                Ok((outcome, data)) => {
                    sender.json(RESULT, &outcome).await;
                    sender.data(DATA, data).await;
                }
                // Where the next content begins is not known any more.
                Err(error) => return sender.error(&error).await,
            }
        }
        sender.json(END, &serde_json::json!({})).await;
    });
    Ok(stream(Outgoing::queue(receiver).holding(running)))
}

fn check(head: &BatchHead) -> Result<()> {
    let bytes = head.operations.iter().fold(0u64, |sum, operation| match operation {
        BatchOperation::Write { length, .. } => sum.saturating_add(*length),
        _ => sum,
    });
    if head.operations.len() > MAX_BATCH || bytes > MAX_BATCH_BYTES {
        return Err(Error::InvalidArgument {
            reason: format!("a batch holds {MAX_BATCH} operations and {MAX_BATCH_BYTES} bytes at most"),
        });
    }
    Ok(())
}

struct Batch<'a> {
    session: &'a Session,
    scopes: Scopes,
    body: BodyReader,
    /// How many bytes may still be read out of files.
    left: u64,
}

impl Batch<'_> {
    async fn perform(&mut self, operation: BatchOperation) -> Result<(BatchOutcome, Bytes)> {
        let content = match &operation {
            BatchOperation::Write { length, .. } => {
                self.body.exactly(usize::try_from(*length).unwrap_or(usize::MAX)).await?
            }
            _ => Vec::new(),
        };
        Ok(match self.session.run(outcome(self.session, self.scopes, self.left, operation, content)).await {
            Ok((outcome, data)) => {
                self.left -= data.len() as u64;
                (outcome, data)
            }
            Err(error) => (BatchOutcome::Error(Box::new(WireError::from(&error))), Bytes::new()),
        })
    }
}

async fn outcome(
    session: &Session,
    scopes: Scopes,
    left: u64,
    operation: BatchOperation,
    content: Vec<u8>,
) -> Result<(BatchOutcome, Bytes)> {
    let workspace = &session.workspace;
    let only = |read, write| scopes.check(Scopes { read, write, exec: false });
    Ok(match operation {
        BatchOperation::Metadata { path: name, follow } => {
            only(true, false)?;
            let metadata = match follow {
                true => workspace.metadata(&path(&name)?).await?,
                false => workspace.symlink_metadata(&path(&name)?).await?,
            };
            (BatchOutcome::Metadata(metadata.into()), Bytes::new())
        }
        BatchOperation::Read { path: name, max_size } => {
            only(true, false)?;
            let options = OpenOptions::default().max_size(max_size.min(left));
            let data = workspace.open(&path(&name)?, options).await?.read_all().await?;
            (BatchOutcome::Read { length: data.len() as u64 }, data.into())
        }
        BatchOperation::Write { path: name, mode, parents, .. } => {
            only(false, true)?;
            let options = WriteOptions::default().mode(mode).parents(parents);
            let written = workspace.write(&path(&name)?, content.into(), options).await?;
            (BatchOutcome::Written(written.into()), Bytes::new())
        }
    })
}
