//! Errors on the wire: every variant comes out as it went in.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::MAX_ERROR_TEXT;
use crate::error::{BoxError, Error, GoneReason, ImageErrorKind, SpawnErrorKind};
use crate::files::FileKind;

/// An [`Error`] as JSON.
///
/// The texts of sources are kept, their types are not. A code that this build does not know comes
/// out as [`Error::Io`] with the text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WireError {
    /// What [`Error::code`] says.
    code: String,
    /// What the error displays as.
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Another text of the variant: its reason, message or detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What it is about when that is no path: an operation, entry, program, address, reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<WireSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<crate::Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    file: Option<FileKind>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    spawn: Option<SpawnErrorKind>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    gone: Option<GoneReason>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    image: Option<ImageErrorKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Duration>,
}

/// The error beneath an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WireSource {
    text: String,
    /// The number of a system's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
}

/// A value that a newer peer may send in a form that this build does not know.
fn lenient<'de, D: serde::Deserializer<'de>, T: serde::de::DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// `text`, cut where it is too long.
fn cut(text: impl Into<String>) -> String {
    let mut text = text.into();
    text.truncate(text.floor_char_boundary(MAX_ERROR_TEXT));
    text
}

fn boxed(source: &BoxError) -> WireSource {
    let mut text = source.to_string();
    let mut cause = source.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    WireSource { text: cut(text), errno: None }
}

impl From<&Error> for WireError {
    fn from(error: &Error) -> WireError {
        let mut wire = WireError {
            code: error.code().to_owned(),
            text: cut(error.to_string()),
            path: error.path().map(cut),
            reason: None,
            subject: None,
            source: None,
            number: None,
            backend: None,
            file: None,
            spawn: None,
            gone: None,
            image: None,
            after: None,
        };
        match error {
            Error::InvalidPath { reason, .. } => wire.reason = Some(cut(&**reason)),
            Error::NotAFile { kind, .. } => wire.file = Some(*kind),
            Error::SpoolFull { dir } => wire.subject = Some(cut(dir)),
            Error::TooLarge { limit, .. } => wire.number = Some(*limit),
            Error::Archive { entry, reason } => {
                (wire.subject, wire.reason) = (Some(cut(entry)), Some(cut(reason)));
            }
            Error::InvalidArgument { reason } => wire.reason = Some(cut(reason)),
            Error::Spawn { program, kind, source } => {
                (wire.subject, wire.spawn) = (Some(cut(program)), Some(*kind));
                wire.source = source.as_ref().map(boxed);
            }
            Error::Unsupported { operation, backend, reason } => {
                (wire.subject, wire.reason) = (Some(cut(operation)), Some(cut(reason)));
                wire.backend = Some(*backend);
            }
            Error::Limit { limit, reason } => {
                (wire.subject, wire.reason) = (Some(cut(limit)), Some(cut(reason)));
            }
            Error::Gone { why } => wire.gone = Some(why.clone()),
            Error::Timeout { operation, after } => {
                (wire.subject, wire.after) = (Some(cut(operation)), Some(*after));
            }
            Error::NoEngine { address, source } => {
                wire.subject = Some(cut(address));
                wire.source = source.as_ref().map(boxed);
            }
            Error::Engine { operation, status, message } => {
                (wire.subject, wire.reason) = (Some(cut(operation)), Some(cut(message)));
                wire.number = status.map(u64::from);
            }
            Error::Image { reference, kind } => {
                (wire.subject, wire.image) = (Some(cut(reference)), Some(kind.clone()));
            }
            Error::NoContainer { container } => wire.subject = Some(cut(container)),
            Error::Io { operation, source, .. } => {
                wire.subject = Some(cut(&**operation));
                let errno = source.raw_os_error();
                wire.source = Some(WireSource { text: cut(source.to_string()), errno });
            }
            _ => {}
        }
        wire
    }
}

impl WireError {
    /// The error.
    pub(super) fn into_error(self) -> Error {
        let wire = self;
        let path = wire.path.unwrap_or_default();
        let subject = wire.subject.unwrap_or_default();
        let reason = wire.reason.unwrap_or_default();
        let text = wire.text;
        let boxed = |source: Option<WireSource>| source.map(|source| BoxError::from(source.text));
        match wire.code.as_str() {
            "outside_workspace" => Error::OutsideWorkspace { path },
            "invalid_path" => Error::InvalidPath { path, reason: reason.into() },
            "not_found" => Error::NotFound { path },
            "already_exists" => Error::AlreadyExists { path },
            "is_a_directory" => Error::IsADirectory { path },
            "not_a_directory" => Error::NotADirectory { path },
            "not_a_file" => Error::NotAFile { path, kind: wire.file.unwrap_or(FileKind::Unknown) },
            "not_a_link" => Error::NotALink { path },
            "directory_not_empty" => Error::DirectoryNotEmpty { path },
            "too_many_links" => Error::TooManyLinks { path },
            "permission_denied" => Error::PermissionDenied { path },
            "read_only" => Error::ReadOnly { path },
            "crosses_devices" => Error::CrossesDevices { path },
            "storage_full" => Error::StorageFull { path },
            "spool_full" => Error::SpoolFull { dir: subject },
            "too_large" => Error::TooLarge { path, limit: wire.number.unwrap_or_default() },
            "changed" => Error::Changed { path },
            "archive" => Error::Archive { entry: subject, reason },
            "invalid_argument" => Error::InvalidArgument { reason },
            "spawn" => Error::Spawn {
                program: subject,
                kind: wire.spawn.unwrap_or(SpawnErrorKind::Other),
                source: boxed(wire.source),
            },
            "unsupported" => Error::Unsupported {
                operation: subject,
                backend: wire.backend.unwrap_or(crate::Kind::Remote),
                reason,
            },
            "limit" => Error::Limit { limit: subject, reason },
            "gone" => Error::Gone { why: wire.gone.unwrap_or(GoneReason::Other { detail: text }) },
            "closed" => Error::Closed,
            "cancelled" => Error::Cancelled,
            "timeout" => Error::Timeout { operation: subject, after: wire.after.unwrap_or_default() },
            "process_done" => Error::ProcessDone,
            "no_engine" => Error::NoEngine { address: subject, source: boxed(wire.source) },
            "engine" => Error::Engine {
                operation: subject,
                status: wire.number.and_then(|status| u16::try_from(status).ok()),
                message: reason,
            },
            "image" => match wire.image {
                Some(kind) => Error::Image { reference: subject, kind },
                None => unknown(subject, text),
            },
            "no_container" => Error::NoContainer { container: subject },
            "io" => {
                let source = match wire.source {
                    Some(WireSource { errno: Some(errno), .. }) => io::Error::from_raw_os_error(errno),
                    Some(WireSource { text, .. }) => io::Error::other(text),
                    None => io::Error::other(text),
                };
                Error::Io { operation: subject.into(), path, source }
            }
            _ => unknown(path, text),
        }
    }
}

/// An error of a kind that this build does not know.
fn unknown(path: String, text: String) -> Error {
    Error::Io { operation: "use".into(), path, source: io::Error::other(text) }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn every_variant() -> Vec<Error> {
        let path = || "a/\u{e9}\n\u{7f}".to_owned();
        let source = || Some(BoxError::from("the system's words"));
        let mut all = vec![
            Error::OutsideWorkspace { path: path() },
            Error::InvalidPath { path: path(), reason: "it is empty".into() },
            Error::NotFound { path: path() },
            Error::AlreadyExists { path: path() },
            Error::IsADirectory { path: path() },
            Error::NotADirectory { path: path() },
            Error::NotAFile { path: path(), kind: FileKind::Fifo },
            Error::NotALink { path: path() },
            Error::DirectoryNotEmpty { path: path() },
            Error::TooManyLinks { path: path() },
            Error::PermissionDenied { path: path() },
            Error::ReadOnly { path: path() },
            Error::CrossesDevices { path: path() },
            Error::StorageFull { path: path() },
            Error::SpoolFull { dir: "/tmp".into() },
            Error::TooLarge { path: path(), limit: u64::MAX },
            Error::Changed { path: path() },
            Error::Archive { entry: "e".into(), reason: "r".into() },
            Error::InvalidArgument { reason: "r".into() },
            Error::Unsupported { operation: "o".into(), backend: crate::Kind::Container, reason: "r".into() },
            Error::Limit { limit: "memory".into(), reason: "r".into() },
            Error::Closed,
            Error::Cancelled,
            Error::Timeout { operation: "o".into(), after: Duration::from_millis(1500) },
            Error::ProcessDone,
            Error::NoEngine { address: "unix:/x".into(), source: source() },
            Error::Engine { operation: "o".into(), status: Some(409), message: "m".into() },
            Error::Engine { operation: "o".into(), status: None, message: "m".into() },
            Error::Image { reference: "i".into(), kind: ImageErrorKind::NotPresent },
            Error::NoContainer { container: "c".into() },
            Error::Io {
                operation: "read".into(),
                path: path(),
                source: io::Error::from_raw_os_error(libc::EBUSY),
            },
            Error::Io { operation: "read".into(), path: path(), source: io::Error::other("words") },
        ];
        for kind in [
            SpawnErrorKind::NotFound,
            SpawnErrorKind::NotExecutable,
            SpawnErrorKind::BadDirectory,
            SpawnErrorKind::UnknownUser,
            SpawnErrorKind::ArgumentsTooLong,
            SpawnErrorKind::NoResources,
            SpawnErrorKind::Other,
        ] {
            all.push(Error::Spawn { program: "p".into(), kind, source: source() });
        }
        let detail = || "d".to_owned();
        for why in [
            GoneReason::ContainerExited { exit_code: Some(3) },
            GoneReason::ContainerExited { exit_code: None },
            GoneReason::ContainerKilled,
            GoneReason::OutOfMemory,
            GoneReason::ContainerPaused,
            GoneReason::ContainerRemoved,
            GoneReason::ContainerRestarted,
            GoneReason::EngineUnreachable { detail: detail() },
            GoneReason::RootRemoved,
            GoneReason::SupervisorKilled,
            GoneReason::Disconnected { detail: detail() },
            GoneReason::Other { detail: detail() },
        ] {
            all.push(Error::Gone { why });
        }
        all
    }

    /// Fails to compile when a variant is added, so that it gets a trip of its own above.
    fn number(error: &Error) -> usize {
        match error {
            Error::OutsideWorkspace { .. } => 0,
            Error::InvalidPath { .. } => 1,
            Error::NotFound { .. } => 2,
            Error::AlreadyExists { .. } => 3,
            Error::IsADirectory { .. } => 4,
            Error::NotADirectory { .. } => 5,
            Error::NotAFile { .. } => 6,
            Error::NotALink { .. } => 7,
            Error::DirectoryNotEmpty { .. } => 8,
            Error::TooManyLinks { .. } => 9,
            Error::PermissionDenied { .. } => 10,
            Error::ReadOnly { .. } => 11,
            Error::CrossesDevices { .. } => 12,
            Error::StorageFull { .. } => 13,
            Error::TooLarge { .. } => 14,
            Error::Changed { .. } => 15,
            Error::Archive { .. } => 16,
            Error::InvalidArgument { .. } => 17,
            Error::Spawn { .. } => 18,
            Error::Unsupported { .. } => 19,
            Error::Limit { .. } => 20,
            Error::Gone { .. } => 21,
            Error::Closed => 22,
            Error::Cancelled => 23,
            Error::Timeout { .. } => 24,
            Error::ProcessDone => 25,
            Error::NoEngine { .. } => 26,
            Error::Engine { .. } => 27,
            Error::Image { .. } => 28,
            Error::NoContainer { .. } => 29,
            Error::Io { .. } => 30,
            Error::SpoolFull { .. } => 31,
        }
    }

    #[test]
    fn every_variant_survives_the_wire() {
        let mut seen = std::collections::BTreeSet::new();
        for error in every_variant() {
            seen.insert(number(&error));
            let json = serde_json::to_string(&WireError::from(&error)).unwrap();
            let back = serde_json::from_str::<WireError>(&json).unwrap().into_error();
            assert_eq!(format!("{back:?}"), format!("{error:?}"), "{json}");
            assert_eq!(back.source().map(ToString::to_string), error.source().map(ToString::to_string));
        }
        assert_eq!(seen.len(), 32, "a variant has no trip");
    }

    #[test]
    fn what_a_newer_peer_says_keeps_its_text_and_what_kind_there_is() {
        let gone = r#"{"code":"gone","text":"t","gone":{"reason":"eaten"},"new":1}"#;
        let error = serde_json::from_str::<WireError>(gone).unwrap().into_error();
        assert!(matches!(error, Error::Gone { why: GoneReason::Other { ref detail } } if detail == "t"));
        let new = r#"{"code":"new_kind","text":"what happened"}"#;
        let error = serde_json::from_str::<WireError>(new).unwrap().into_error();
        assert_eq!(error.source().unwrap().to_string(), "what happened");
    }

    #[test]
    fn a_long_text_is_cut() {
        let error = Error::InvalidArgument { reason: "\u{e9}".repeat(MAX_ERROR_TEXT) };
        let wire = WireError::from(&error);
        assert!(wire.text.len() <= MAX_ERROR_TEXT && wire.reason.unwrap().len() <= MAX_ERROR_TEXT);
    }
}
