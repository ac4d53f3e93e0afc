//! Errors of the system into ours and back.

use std::borrow::Cow;
use std::io;

use super::Error;

impl Error {
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
            Error::StorageFull { .. } | Error::SpoolFull { .. } => io::ErrorKind::StorageFull,
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
    use std::error::Error as _;

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
