//! What callers ask of an error.

use super::{Error, GoneReason, ImageErrorKind, SpawnErrorKind};

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
            Error::SpoolFull { .. } => "spool_full",
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
}
