//! JSON that fits into a header.

use std::fmt::Write as _;

use hyper::header::HeaderValue;
use serde::Serialize;

use super::limits::MAX_ERROR_BYTES;

/// `value` as JSON of printable ASCII; nothing when it is too large.
pub(super) fn header(value: &impl Serialize) -> Option<HeaderValue> {
    let json = serde_json::to_string(value).ok()?;
    let text = escape(&json);
    if text.len() > MAX_ERROR_BYTES {
        return None;
    }
    HeaderValue::from_str(&text).ok()
}

/// JSON with every character beyond printable ASCII as `\uXXXX`, which only strings can hold.
fn escape(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_a_header() {
        for text in ["plain", "caf\u{e9}", "\u{1f600}", "a\u{7f}\n\"\\", ""] {
            let value = header(&text).unwrap();
            assert!(value.to_str().unwrap().chars().all(|c| matches!(c, ' '..='~')));
            assert_eq!(serde_json::from_slice::<String>(value.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        assert!(header(&"x".repeat(MAX_ERROR_BYTES)).is_none());
    }
}
