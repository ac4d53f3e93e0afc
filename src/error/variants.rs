//! The error of every workspace operation.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::kinds::{GoneReason, ImageErrorKind, SpawnErrorKind};

/// The result of a workspace operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error beneath an [`Error`], of whatever library it came from.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a workspace operation failed.
///
/// A command that ran and failed is not an error: it is an [`Output`](crate::Output). A command
/// that never started is [`Error::Spawn`]; a workspace that is no longer there is
/// [`Error::Gone`]. The three are never mixed up.
///
/// The text of each is a lowercase fragment that fits after "failed to read: " and does not
/// repeat [`source`](StdError::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name leads out of the workspace: absolute, climbing with `..`, or through a link.
    /// Nothing outside was touched.
    #[error("`{path}` leads outside of the workspace")]
    OutsideWorkspace {
        /// The name as it was given.
        path: String,
    },

    /// The name is malformed in another way. See [`WorkspacePath`](crate::WorkspacePath).
    #[error("`{}` is not a workspace name: {reason}", path.escape_debug())]
    InvalidPath {
        /// The name as it was given.
        path: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },

    /// Nothing has that name.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The name.
        path: String,
    },

    /// Something already has that name.
    #[error("`{path}` already exists")]
    AlreadyExists {
        /// The name.
        path: String,
    },

    /// A directory is there, and the operation wants something else.
    #[error("`{path}` is a directory")]
    IsADirectory {
        /// The name.
        path: String,
    },

    /// A directory is wanted, and the name or a component of it is something else.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// The name.
        path: String,
    },

    /// A regular file is wanted, and there is a FIFO, a device or a socket.
    #[error("`{path}` is a {kind}, not a regular file")]
    NotAFile {
        /// The name.
        path: String,
        /// What is there.
        kind: crate::files::FileKind,
    },

    /// A symbolic link is wanted, and there is something else.
    #[error("`{path}` is not a symbolic link")]
    NotALink {
        /// The name.
        path: String,
    },

    /// The directory still holds something.
    #[error("the directory `{path}` is not empty")]
    DirectoryNotEmpty {
        /// The name.
        path: String,
    },

    /// More than 40 links had to be followed, or they form a loop.
    #[error("`{path}` leads through too many symbolic links")]
    TooManyLinks {
        /// The name.
        path: String,
    },

    /// The workspace's user may not do that.
    #[error("permission denied for `{path}`")]
    PermissionDenied {
        /// The name.
        path: String,
    },

    /// The file system is mounted read-only.
    #[error("`{path}` is on a read-only file system")]
    ReadOnly {
        /// The name.
        path: String,
    },

    /// The two names are on different file systems, so that one cannot be renamed to the other.
    #[error("`{path}` cannot be renamed across file systems; copy and remove it instead")]
    CrossesDevices {
        /// The name.
        path: String,
    },

    /// No space or no quota is left where the file would be. What was there before is unchanged
    /// unless [`WriteMethod::InPlace`](crate::WriteMethod::InPlace) was the only way.
    #[error("no space is left for `{path}`")]
    StorageFull {
        /// The name.
        path: String,
    },

    /// This machine's temporary directory, in which a file or tree is kept on its way from or to a
    /// container, would be left with less than 1 GiB, and less than a tenth of its space.
    #[error(
        "too little space is left in `{dir}` for a file or tree on its way: make room, bound it with `max_bytes`, \
         or set TMPDIR to another directory"
    )]
    SpoolFull {
        /// The temporary directory of this machine.
        dir: String,
    },

    /// The file is larger than the caller's limit, or grew past it while it was read.
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The name.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },

    /// The file or tree changed while it was read, so that what was read is not a state it had.
    #[error("`{path}` changed while it was read; read it again")]
    Changed {
        /// The name.
        path: String,
    },

    /// An archive was refused or is broken. Nothing of the named entry was written; entries
    /// before it may have been.
    #[error("archive entry `{entry}`: {reason}")]
    Archive {
        /// The entry's name, escaped where it is not UTF-8; empty when the archive as a whole
        /// is broken.
        entry: String,
        /// What is wrong.
        reason: String,
    },

    /// The arguments contradict each other or name nothing; nothing was started.
    #[error("{reason}")]
    InvalidArgument {
        /// What is wrong and how to put it right.
        reason: String,
    },

    /// The command never started. What it would have done has not happened.
    #[error("`{program}` could not be started: {kind}")]
    Spawn {
        /// `argv[0]` as it was given.
        program: String,
        /// Why not.
        kind: SpawnErrorKind,
        /// The system's or the engine's own words.
        #[source]
        source: Option<BoxError>,
    },

    /// This workspace cannot do that at all. Nothing was done.
    #[error("{operation} is not supported by this {backend} workspace: {reason}")]
    Unsupported {
        /// What was asked for.
        operation: String,
        /// The kind of workspace.
        backend: crate::Kind,
        /// Why not, and what would help.
        reason: String,
    },

    /// A limit was asked for that cannot be enforced here, so the workspace was not made.
    #[error("the {limit} limit cannot be enforced here: {reason}")]
    Limit {
        /// Which limit.
        limit: String,
        /// Why not, and what would help.
        reason: String,
    },

    /// The workspace is no longer there or no longer answers. A command that was running is not
    /// known to have finished.
    #[error("the workspace is gone: {why}")]
    Gone {
        /// What became of it.
        why: GoneReason,
    },

    /// The workspace was closed before or during this call.
    #[error("the workspace is closed")]
    Closed,

    /// The caller's cancellation token ended the operation, and everything it had started.
    #[error("the operation was cancelled")]
    Cancelled,

    /// The operation took longer than its own bound. For a command that is not an error but
    /// [`End::TimedOut`](crate::End::TimedOut).
    #[error("{operation} did not finish within {}", humantime::format_duration(*after))]
    Timeout {
        /// What was being done.
        operation: String,
        /// The bound.
        after: Duration,
    },

    /// The process has already exited.
    #[error("the process has already exited")]
    ProcessDone,

    /// The engine cannot be reached, so that no workspace could be opened. An open workspace whose
    /// engine is lost is [`Error::Gone`].
    #[error("no container engine answers at `{address}`")]
    NoEngine {
        /// Where it was looked for.
        address: String,
        /// What the connection said.
        #[source]
        source: Option<BoxError>,
    },

    /// The engine refused a call or answered something unexpected.
    #[error("the engine failed to {operation}{}: {message}", status.map(|s| format!(" (status {s})")).unwrap_or_default())]
    Engine {
        /// What it was asked to do.
        operation: String,
        /// The HTTP status, when there was an answer.
        status: Option<u16>,
        /// The engine's own words.
        message: String,
    },

    /// An image is missing, cannot be pulled or built, or is not the one that was required.
    #[error("image `{reference}`: {kind}")]
    Image {
        /// The reference as it was given.
        reference: String,
        /// What is wrong.
        kind: ImageErrorKind,
    },

    /// There is no such container.
    #[error("there is no container `{container}`")]
    NoContainer {
        /// The name or id as it was given.
        container: String,
    },

    /// Anything else the system reported.
    #[error("failed to {operation} `{path}`")]
    Io {
        /// What was being done.
        operation: Cow<'static, str>,
        /// The name, or what stands for it.
        path: String,
        /// The system's words.
        #[source]
        source: io::Error,
    },
}
