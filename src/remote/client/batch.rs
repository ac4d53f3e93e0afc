//! Several operations in one round trip.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;

use super::connection::{Call, Connection};
use super::files::told;
use super::workspace::RemoteWorkspace;
use crate::error::{Error, Result};
use crate::files::{Content, Metadata, WriteOptions, Written};
use crate::path::WorkspacePath;
use crate::remote::frame::{DATA, END, ERROR, FrameReader, RESULT};
use crate::remote::limits::{MAX_BATCH, MAX_BATCH_BYTES, MAX_JSON_BYTES};
use crate::remote::wire::{BatchHead, BatchOperation, BatchOutcome};

/// One operation of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BatchItem {
    /// [`metadata`](crate::Workspace::metadata).
    Metadata(WorkspacePath),
    /// [`symlink_metadata`](crate::Workspace::symlink_metadata).
    SymlinkMetadata(WorkspacePath),
    /// [`read`](crate::WorkspaceExt::read) of at most this many bytes.
    Read(WorkspacePath, u64),
    /// [`write`](crate::Workspace::write).
    Write(WorkspacePath, Bytes, WriteOptions),
}

/// What came of one operation of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BatchResult {
    /// Of [`BatchItem::Metadata`] and [`BatchItem::SymlinkMetadata`].
    Metadata(Metadata),
    /// Of [`BatchItem::Read`].
    Read(Bytes),
    /// Of [`BatchItem::Write`].
    Written(Written),
}

impl RemoteWorkspace {
    /// Does up to 1000 operations one after the other in one round trip, with at most 16 MiB of
    /// content written and as much read. One that fails does not keep the next from being done.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for more than that, with nothing done. For each operation its
    /// own error; [`Error::TooLarge`] also for a file that would make more than 16 MiB in all.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the operation that is being done, as for a single one; those after
    /// it are not done.
    pub async fn batch(&self, items: Vec<BatchItem>) -> Result<Vec<Result<BatchResult>>> {
        let (operations, content, limits) = split(items)?;
        let count = operations.len();
        let head = serde_json::to_vec(&BatchHead { operations }).unwrap_or_default();
        if head.len() > MAX_JSON_BYTES {
            let reason = format!("the names in a batch take {MAX_JSON_BYTES} bytes at most");
            return Err(Error::InvalidArgument { reason });
        }
        let _permit = self.connection.lasting(1).await?;
        let call = Call::new(Method::POST, "/v1/batch").content(Content::from(content), "a batch").head(head);
        let reply = self.connection.send(call).await?;
        let _abort = reply.abort;
        results(&self.connection, FrameReader::new(reply.body), count, &limits).await
    }
}

/// Operations for the wire, the content that follows them, and how much each may give.
fn split(items: Vec<BatchItem>) -> Result<(Vec<BatchOperation>, Vec<u8>, Vec<u64>)> {
    let written = |item: &BatchItem| match item {
        BatchItem::Write(_, data, _) => data.len() as u64,
        _ => 0,
    };
    if items.len() > MAX_BATCH || items.iter().map(written).sum::<u64>() > MAX_BATCH_BYTES {
        return Err(Error::InvalidArgument {
            reason: format!("a batch holds {MAX_BATCH} operations and {MAX_BATCH_BYTES} bytes at most"),
        });
    }
    let (mut operations, mut content, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        let mut limit = 0;
        operations.push(match item {
            BatchItem::Metadata(path) => BatchOperation::Metadata { path: path.to_string(), follow: true },
            BatchItem::SymlinkMetadata(path) => {
                BatchOperation::Metadata { path: path.to_string(), follow: false }
            }
            BatchItem::Read(path, max_size) => {
                limit = max_size.min(MAX_BATCH_BYTES);
                BatchOperation::Read { path: path.to_string(), max_size }
            }
            BatchItem::Write(path, data, options) => {
                content.extend_from_slice(&data);
                let WriteOptions { mode, parents } = options;
                BatchOperation::Write { path: path.to_string(), mode, parents, length: data.len() as u64 }
            }
        });
        limits.push(limit);
    }
    Ok((operations, content, limits))
}

async fn results(
    connection: &Arc<Connection>,
    mut frames: FrameReader,
    count: usize,
    limits: &[u64],
) -> Result<Vec<Result<BatchResult>>> {
    let mut results = Vec::with_capacity(count);
    loop {
        let frame = frames.next().await?;
        match frame.kind {
            RESULT if results.len() < count => {
                let Ok(outcome) = frame.parse() else { return Err(frames.broken("an outcome that is none")) };
                results.push(match outcome {
                    BatchOutcome::Metadata(metadata) => Ok(BatchResult::Metadata(metadata.into())),
                    BatchOutcome::Written(written) => Ok(BatchResult::Written(written.into())),
                    BatchOutcome::Error(error) => Err(connection.told(error.into_error())),
                    BatchOutcome::Read { length } if length <= limits[results.len()] => {
                        Ok(BatchResult::Read(content(&mut frames, length as usize).await?))
                    }
                    BatchOutcome::Read { .. } => {
                        return Err(frames.broken("more of a file than was asked for"));
                    }
                });
            }
            END if results.len() == count => return Ok(results),
            ERROR => return Err(told(connection, &mut frames, &frame)),
            _ => return Err(frames.broken("an unexpected frame")),
        }
    }
}

/// The content of one file.
async fn content(frames: &mut FrameReader, length: usize) -> Result<Bytes> {
    let mut data = Vec::new();
    while data.len() < length {
        let frame = frames.next().await?;
        let piece = if frame.kind == DATA { frame.into_bytes() } else { Bytes::new() };
        if piece.is_empty() || data.len() + piece.len() > length {
            return Err(frames.broken("another content than was announced"));
        }
        data.extend_from_slice(&piece);
    }
    Ok(data.into())
}
