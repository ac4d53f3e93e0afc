//! What the JSON documents and queries of the protocol hold.
//!
//! Fields are only ever added, each with a default; whoever reads skips what it does not know.

mod command;
mod file;
mod session;
#[cfg(test)]
mod snapshot_tests;

pub(super) use command::{CallId, CommandHead, Ended, ProcessId, ResizeRequest, SignalRequest, Started};
pub(super) use file::{
    BatchHead, BatchOperation, BatchOutcome, Bytes64, CopyRequest, ListEnd, ListQuery, MetadataQuery,
    ModeRequest, PackRequest, PathQuery, ReadQuery, RemoveQuery, UnpackQuery, WireEntry, WireLink,
    WireMetadata, WireWritten, WriteQuery,
};
pub(super) use session::{Hello, Welcome};
