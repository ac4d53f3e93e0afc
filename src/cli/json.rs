//! Results as JSON: shapes that several subcommands share.

use std::time::{Duration, SystemTime};

use agentworkspace::Captured;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::failure::{Interrupted, Usage, text, workspace_error};

/// Bytes as JSON: a string when they are UTF-8, otherwise `{"base64": "..."}`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    /// They are UTF-8.
    Text(String),
    /// They are not.
    Base64 {
        /// The bytes in base64, with padding.
        base64: String,
    },
}

impl Bytes {
    /// These bytes.
    pub(crate) fn new(bytes: Vec<u8>) -> Bytes {
        match String::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text),
            Err(error) => Bytes::Base64 { base64: STANDARD.encode(error.as_bytes()) },
        }
    }
}

/// One output stream of a command, and what is missing in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) bytes: Bytes,
    /// How many bytes are missing.
    pub(crate) dropped: u64,
    /// Where in `bytes` they are missing.
    pub(crate) dropped_at: Option<u64>,
}

impl Stream {
    /// What was kept of a stream. Parts of a character at the cut are dropped too, so that text
    /// stays text.
    pub(crate) fn new(captured: Captured) -> Stream {
        let dropped = captured.dropped();
        if dropped == 0 {
            return Stream { bytes: Bytes::new(captured.into_bytes()), dropped, dropped_at: None };
        }
        let head = whole_end(captured.head());
        let tail = whole_start(captured.tail());
        let trimmed = captured.len() - head.len() - tail.len();
        let at = head.len() as u64;
        let bytes = Bytes::new([head, tail].concat());
        Stream { bytes, dropped: dropped + trimmed as u64, dropped_at: Some(at) }
    }
}

/// `bytes` without a character at the end that is not all there.
fn whole_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// `bytes` without the rest of a character at the start: at most three continuation bytes.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[rest..]
}

/// Why something failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    /// A stable name: that of the library's error, `usage`, `interrupted` or `other`.
    pub(crate) code: &'static str,
    /// For a person.
    pub(crate) message: String,
}

impl Failure {
    /// What `failure` says.
    pub(crate) fn new(failure: &anyhow::Error) -> Failure {
        let code = if failure.downcast_ref::<Interrupted>().is_some() {
            "interrupted"
        } else if failure.downcast_ref::<Usage>().is_some() {
            "usage"
        } else {
            workspace_error(failure).map_or("other", |error| error.code())
        };
        Failure { code, message: text(failure) }
    }
}

/// Milliseconds, to the microsecond.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

/// A time as RFC 3339 in UTC.
pub(crate) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_or_base64() {
        let json = |bytes: &[u8]| serde_json::to_string(&Bytes::new(bytes.to_vec())).unwrap();
        assert_eq!(json("ä\0\n".as_bytes()), r#""ä\u0000\n""#);
        assert_eq!(json(b"\xff\x00"), r#"{"base64":"/wA="}"#);
    }

    #[test]
    fn a_cut_through_a_character_stays_text() {
        let text = "aäöz".as_bytes();
        let stream = Stream::new(Captured::cut(text[..2].to_vec(), &text[4..], 2));
        assert_eq!(stream.bytes, Bytes::Text("az".to_owned()));
        assert_eq!((stream.dropped, stream.dropped_at), (4, Some(1)));
    }

    #[test]
    fn what_is_not_text_is_kept_whole_at_a_cut() {
        let stream = Stream::new(Captured::cut(b"a\xff\xfe".to_vec(), b"z", 1));
        assert_eq!(stream.bytes, Bytes::Base64 { base64: STANDARD.encode(b"a\xff\xfez") });
        assert_eq!((stream.dropped, stream.dropped_at), (1, Some(3)));
    }
}
