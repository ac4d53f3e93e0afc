//! What can go wrong, told apart.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// Why a command never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// No such program, neither by its path nor in the command's `PATH`; or its interpreter is
    /// missing.
    NotFound,
    /// It is there and is not an executable file, or not for this machine.
    NotExecutable,
    /// The command's directory is missing, is not a directory or may not be entered.
    BadDirectory,
    /// The user is not known in the workspace or may not be switched to.
    UnknownUser,
    /// Arguments and environment are larger than the system takes.
    ArgumentsTooLong,
    /// No process, memory or file descriptor was left for it.
    NoResources,
    /// Another reason; see the source.
    Other,
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpawnErrorKind::NotFound => "no such program",
            SpawnErrorKind::NotExecutable => "it is not executable",
            SpawnErrorKind::BadDirectory => "its working directory cannot be entered",
            SpawnErrorKind::UnknownUser => "its user is unknown or not allowed",
            SpawnErrorKind::ArgumentsTooLong => "its arguments and environment are too long",
            SpawnErrorKind::NoResources => "no process, memory or file descriptor is left for it",
            SpawnErrorKind::Other => "the system refused",
        })
    }
}

/// What became of a workspace that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
#[non_exhaustive]
pub enum GoneReason {
    /// The container's first process ended by itself or was stopped.
    ContainerExited {
        /// Its exit status as the engine reports it.
        exit_code: Option<i64>,
    },
    /// The container was killed from outside.
    ContainerKilled,
    /// The container's first process was ended for using too much memory.
    OutOfMemory,
    /// The container is paused and was not resumed in time.
    ContainerPaused,
    /// The container was removed.
    ContainerRemoved,
    /// The container was restarted since the workspace was opened; what ran in it has ended.
    ContainerRestarted,
    /// The engine stopped answering, or was restarted.
    EngineUnreachable {
        /// What was seen.
        detail: String,
    },
    /// The root directory is no longer there.
    RootRemoved,
    /// The process that looked after the command was killed.
    SupervisorKilled,
    /// Something else; the text says what.
    Other {
        /// What was seen.
        detail: String,
    },
}

impl fmt::Display for GoneReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoneReason::ContainerExited { exit_code: Some(code) } => {
                write!(f, "its container exited with status {code}")
            }
            GoneReason::ContainerExited { exit_code: None } => f.write_str("its container exited"),
            GoneReason::ContainerKilled => f.write_str("its container was killed"),
            GoneReason::OutOfMemory => f.write_str("its container ran out of memory"),
            GoneReason::ContainerPaused => f.write_str("its container is paused"),
            GoneReason::ContainerRemoved => f.write_str("its container was removed"),
            GoneReason::ContainerRestarted => f.write_str("its container was restarted"),
            GoneReason::EngineUnreachable { detail } => {
                write!(f, "the engine does not answer ({detail})")
            }
            GoneReason::RootRemoved => f.write_str("its root directory is no longer there"),
            GoneReason::SupervisorKilled => {
                f.write_str("the process that looked after the command was killed")
            }
            GoneReason::Other { detail } => f.write_str(detail),
        }
    }
}

/// What is wrong with an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum ImageErrorKind {
    /// The reference is malformed.
    InvalidReference {
        /// What is wrong with it.
        detail: String,
    },
    /// It is not on the engine, and the pull policy does not allow a pull.
    NotPresent,
    /// The registry does not know it, or wants credentials for it.
    NotFound {
        /// The engine's or the registry's own words.
        detail: String,
    },
    /// The pull failed, after the stated number of tries.
    PullFailed {
        /// How often it was tried.
        attempts: u32,
        /// The engine's or the registry's own words.
        detail: String,
    },
    /// The build failed.
    BuildFailed {
        /// The builder's own words.
        detail: String,
    },
    /// Another image than the one that was required.
    WrongDigest {
        /// The digest that was required.
        required: String,
        /// The digest that was found.
        found: String,
    },
    /// It is for another platform than the one that was asked for.
    WrongPlatform {
        /// The platform that was asked for.
        required: String,
        /// The platform that was found.
        found: String,
    },
}

impl fmt::Display for ImageErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageErrorKind::InvalidReference { detail } => write!(f, "invalid reference: {detail}"),
            ImageErrorKind::NotPresent => {
                f.write_str("not on this engine, and the pull policy does not allow a pull")
            }
            ImageErrorKind::NotFound { detail } => write!(f, "not found: {detail}"),
            ImageErrorKind::PullFailed { attempts: 1, detail } => {
                write!(f, "the pull failed: {detail}")
            }
            ImageErrorKind::PullFailed { attempts, detail } => {
                write!(f, "the pull failed {attempts} times: {detail}")
            }
            ImageErrorKind::BuildFailed { detail } => write!(f, "the build failed: {detail}"),
            ImageErrorKind::WrongDigest { required, found } => {
                write!(f, "it is {found}, and {required} was required")
            }
            ImageErrorKind::WrongPlatform { required, found } => {
                write!(f, "it is for {found}, and {required} was required")
            }
        }
    }
}

impl Error {
    /// Whether the name led outside of the workspace.
    pub fn is_outside(&self) -> bool {
        matches!(self, Error::OutsideWorkspace { .. })
    }

    /// Whether nothing has that name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }

    /// Whether the workspace cannot do that at all.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::Unsupported { .. })
    }

    /// Whether the workspace itself is lost for good: gone or closed. Every later call on it fails
    /// as well. A paused container may come back, and a killed supervisor costs one command.
    pub fn is_gone(&self) -> bool {
        match self {
            Error::Gone { why } => !matches!(why, GoneReason::ContainerPaused | GoneReason::SupervisorKilled),
            Error::Closed => true,
            _ => false,
        }
    }

    /// Whether the operation, not a command, ran into its own time bound.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Timeout { .. })
    }

    /// Whether the fault lies with the surroundings (engine, image, host) rather than with what
    /// was asked for, so that the same call may well succeed in a fresh workspace.
    pub fn is_environment_fault(&self) -> bool {
        match self {
            Error::Gone { .. }
            | Error::NoEngine { .. }
            | Error::Engine { .. }
            | Error::Timeout { .. }
            | Error::Image { kind: ImageErrorKind::PullFailed { .. }, .. } => true,
            Error::Spawn { kind, .. } => *kind == SpawnErrorKind::NoResources,
            _ => false,
        }
    }

    /// The name the error is about, when it is about one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::OutsideWorkspace { path }
            | Error::InvalidPath { path, .. }
            | Error::NotFound { path }
            | Error::AlreadyExists { path }
            | Error::IsADirectory { path }
            | Error::NotADirectory { path }
            | Error::NotAFile { path, .. }
            | Error::NotALink { path }
            | Error::DirectoryNotEmpty { path }
            | Error::TooManyLinks { path }
            | Error::PermissionDenied { path }
            | Error::ReadOnly { path }
            | Error::CrossesDevices { path }
            | Error::StorageFull { path }
            | Error::TooLarge { path, .. }
            | Error::Changed { path }
            | Error::Io { path, .. } => Some(path),
            _ => None,
        }
    }

    /// A stable name of the variant in snake case, for JSON and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Error::OutsideWorkspace { .. } => "outside_workspace",
            Error::InvalidPath { .. } => "invalid_path",
            Error::NotFound { .. } => "not_found",
            Error::AlreadyExists { .. } => "already_exists",
            Error::IsADirectory { .. } => "is_a_directory",
            Error::NotADirectory { .. } => "not_a_directory",
            Error::NotAFile { .. } => "not_a_file",
            Error::NotALink { .. } => "not_a_link",
            Error::DirectoryNotEmpty { .. } => "directory_not_empty",
            Error::TooManyLinks { .. } => "too_many_links",
            Error::PermissionDenied { .. } => "permission_denied",
            Error::ReadOnly { .. } => "read_only",
            Error::CrossesDevices { .. } => "crosses_devices",
            Error::StorageFull { .. } => "storage_full",
            Error::TooLarge { .. } => "too_large",
            Error::Changed { .. } => "changed",
            Error::Archive { .. } => "archive",
            Error::InvalidArgument { .. } => "invalid_argument",
            Error::Spawn { .. } => "spawn",
            Error::Unsupported { .. } => "unsupported",
            Error::Limit { .. } => "limit",
            Error::Gone { .. } => "gone",
            Error::Closed => "closed",
            Error::Cancelled => "cancelled",
            Error::Timeout { .. } => "timeout",
            Error::ProcessDone => "process_done",
            Error::NoEngine { .. } => "no_engine",
            Error::Engine { .. } => "engine",
            Error::Image { .. } => "image",
            Error::NoContainer { .. } => "no_container",
            Error::Io { .. } => "io",
        }
    }

    /// What `source`, from an operation on `path`, means. Kinds that have a variant get it;
    /// an [`Error`] that was carried through an [`io::Error`] comes out as it went in.
    pub fn from_io(operation: impl Into<Cow<'static, str>>, path: &str, source: io::Error) -> Error {
        let path = path.to_owned();
        let operation = operation.into();
        if source.get_ref().is_some_and(|inner| inner.is::<Error>()) {
            return match source.into_inner().map(|inner| inner.downcast::<Error>()) {
                Some(Ok(error)) => *error,
                Some(Err(other)) => Error::Io { operation, path, source: io::Error::other(other) },
                None => unreachable!("the error has an inner error"),
            };
        }
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path },
            io::ErrorKind::AlreadyExists => Error::AlreadyExists { path },
            io::ErrorKind::IsADirectory => Error::IsADirectory { path },
            io::ErrorKind::NotADirectory => Error::NotADirectory { path },
            io::ErrorKind::DirectoryNotEmpty => Error::DirectoryNotEmpty { path },
            io::ErrorKind::PermissionDenied => Error::PermissionDenied { path },
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
            io::ErrorKind::CrossesDevices => Error::CrossesDevices { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::StorageFull { path },
            _ if source.raw_os_error() == Some(libc::ELOOP) => Error::TooManyLinks { path },
            _ => Error::Io { operation, path, source },
        }
    }
}

impl From<Error> for io::Error {
    /// Keeps the error whole inside, and gives it the nearest [`io::ErrorKind`].
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::OutsideWorkspace { .. } | Error::PermissionDenied { .. } => {
                io::ErrorKind::PermissionDenied
            }
            Error::InvalidPath { .. } | Error::InvalidArgument { .. } | Error::Archive { .. } => {
                io::ErrorKind::InvalidInput
            }
            Error::NotFound { .. } | Error::NoContainer { .. } => io::ErrorKind::NotFound,
            Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
            Error::IsADirectory { .. } => io::ErrorKind::IsADirectory,
            Error::NotADirectory { .. } => io::ErrorKind::NotADirectory,
            Error::DirectoryNotEmpty { .. } => io::ErrorKind::DirectoryNotEmpty,
            Error::ReadOnly { .. } => io::ErrorKind::ReadOnlyFilesystem,
            Error::CrossesDevices { .. } => io::ErrorKind::CrossesDevices,
            Error::StorageFull { .. } => io::ErrorKind::StorageFull,
            Error::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Error::Unsupported { .. } => io::ErrorKind::Unsupported,
            Error::Timeout { .. } => io::ErrorKind::TimedOut,
            Error::Cancelled => io::ErrorKind::Interrupted,
            Error::Gone { .. } | Error::Closed => io::ErrorKind::BrokenPipe,
            Error::NoEngine { .. } => io::ErrorKind::NotConnected,
            Error::Io { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_a_trip_through_io_error() {
        let error = Error::TooLarge { path: "a".into(), limit: 3 };
        let back = Error::from_io("read", "b", error.into());
        assert!(matches!(back, Error::TooLarge { limit: 3, ref path } if path == "a"));
    }

    #[test]
    fn system_errors_get_their_variant() {
        let cases = [
            (libc::ENOENT, "not_found"),
            (libc::EEXIST, "already_exists"),
            (libc::EISDIR, "is_a_directory"),
            (libc::ENOTDIR, "not_a_directory"),
            (libc::ENOTEMPTY, "directory_not_empty"),
            (libc::ELOOP, "too_many_links"),
            (libc::EACCES, "permission_denied"),
            (libc::EROFS, "read_only"),
            (libc::ENOSPC, "storage_full"),
            (libc::EDQUOT, "storage_full"),
            (libc::EIO, "io"),
        ];
        for (errno, code) in cases {
            let error = Error::from_io("read", "a", io::Error::from_raw_os_error(errno));
            assert_eq!(error.code(), code);
            assert_eq!(error.path(), Some("a"));
        }
    }

    #[test]
    fn texts_do_not_repeat_their_source() {
        let source = io::Error::from_raw_os_error(libc::EIO);
        let words = source.to_string();
        let error = Error::Io { operation: "read".into(), path: "a".into(), source };
        assert!(!error.to_string().contains(&words));
        assert_eq!(error.source().unwrap().to_string(), words);
    }
}
