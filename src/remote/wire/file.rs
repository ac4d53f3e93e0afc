//! Files, directories, archives and batches.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Result;
use crate::files::{DirEntry, EntryName, FileKind, Metadata, WriteMethod, Written};
use crate::remote::error::WireError;

/// Any bytes, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::remote) struct Bytes64(pub(in crate::remote) Vec<u8>);

impl Serialize for Bytes64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes64).map_err(serde::de::Error::custom)
    }
}

/// A kind of file; one that this build does not know is unknown.
fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<FileKind, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or(FileKind::Unknown))
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct PathQuery {
    pub(in crate::remote) path: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ReadQuery {
    pub(in crate::remote) path: String,
    #[serde(default)]
    pub(in crate::remote) offset: u64,
    pub(in crate::remote) length: Option<u64>,
    pub(in crate::remote) max_size: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct WriteQuery {
    pub(in crate::remote) path: String,
    pub(in crate::remote) mode: Option<u32>,
    pub(in crate::remote) parents: Option<bool>,
    /// How many bytes follow, where that is known.
    pub(in crate::remote) length: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct RemoveQuery {
    pub(in crate::remote) path: String,
    /// Whether what is below goes too.
    #[serde(default)]
    pub(in crate::remote) all: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct MetadataQuery {
    pub(in crate::remote) path: String,
    /// Whether a link in the last component is followed.
    #[serde(default)]
    pub(in crate::remote) follow: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ListQuery {
    pub(in crate::remote) path: String,
    pub(in crate::remote) after: Option<Bytes64>,
    pub(in crate::remote) limit: Option<u64>,
}

/// The last frame of a listing.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ListEnd {
    pub(in crate::remote) more: bool,
}

/// Two names, for rename and copy.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct CopyRequest {
    pub(in crate::remote) from: String,
    pub(in crate::remote) to: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct ModeRequest {
    pub(in crate::remote) path: String,
    pub(in crate::remote) mode: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct PackRequest {
    pub(in crate::remote) path: String,
    #[serde(default)]
    pub(in crate::remote) exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::remote) max_bytes: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct UnpackQuery {
    pub(in crate::remote) path: String,
    pub(in crate::remote) max_bytes: Option<u64>,
    /// None is any.
    pub(in crate::remote) max_entries: Option<u64>,
    pub(in crate::remote) mode_mask: Option<u32>,
}

/// [`Metadata`] as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct WireMetadata {
    #[serde(deserialize_with = "kind")]
    kind: FileKind,
    size: u64,
    mode: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    /// Seconds since 1970, rounded down, and nanoseconds on top.
    modified: (i64, u32),
}

impl From<Metadata> for WireMetadata {
    fn from(metadata: Metadata) -> Self {
        let modified = match metadata.modified.duration_since(UNIX_EPOCH) {
            Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos()),
            Err(error) => {
                let before = error.duration();
                let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
                match before.subsec_nanos() {
                    0 => (-seconds, 0),
                    nanos => (-seconds - 1, 1_000_000_000 - nanos),
                }
            }
        };
        let Metadata { kind, size, mode, uid, gid, .. } = metadata;
        WireMetadata { kind, size, mode, uid, gid, modified }
    }
}

impl From<WireMetadata> for Metadata {
    fn from(wire: WireMetadata) -> Self {
        let (seconds, nanos) = wire.modified;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        let modified: Option<SystemTime> =
            base.and_then(|base| base.checked_add(Duration::from_nanos(u64::from(nanos))));
        let mut metadata = Metadata::new(wire.kind, wire.size, wire.mode, modified.unwrap_or(UNIX_EPOCH));
        (metadata.uid, metadata.gid) = (wire.uid, wire.gid);
        metadata
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct WireLink {
    pub(in crate::remote) target: Bytes64,
}

/// [`Written`] as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct WireWritten {
    bytes: u64,
    method: WriteMethod,
}

impl From<Written> for WireWritten {
    fn from(written: Written) -> Self {
        WireWritten { bytes: written.bytes, method: written.method }
    }
}

impl From<WireWritten> for Written {
    fn from(wire: WireWritten) -> Self {
        Written::new(wire.bytes, wire.method)
    }
}

/// An entry of a directory: its name as text, or its raw bytes when they are not UTF-8.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct WireEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Bytes64>,
    #[serde(deserialize_with = "kind")]
    kind: FileKind,
}

impl From<&DirEntry> for WireEntry {
    fn from(entry: &DirEntry) -> Self {
        let name = entry.name.as_str().map(str::to_owned);
        let raw = name.is_none().then(|| Bytes64(entry.name.as_bytes().to_vec()));
        WireEntry { name, raw, kind: entry.kind }
    }
}

impl WireEntry {
    /// The entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPath`](crate::Error::InvalidPath) for a name that no directory holds.
    pub(in crate::remote) fn entry(self) -> Result<DirEntry> {
        let name = match (self.name, self.raw) {
            (Some(name), _) => name.into_bytes(),
            (None, raw) => raw.map(|raw| raw.0).unwrap_or_default(),
        };
        Ok(DirEntry::new(EntryName::new(name)?, self.kind))
    }
}

/// Operations that are done one after the other in one round trip. The content of the writes
/// follows, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct BatchHead {
    pub(in crate::remote) operations: Vec<BatchOperation>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::remote) enum BatchOperation {
    Metadata {
        path: String,
        #[serde(default)]
        follow: bool,
    },
    Read {
        path: String,
        max_size: u64,
    },
    Write {
        path: String,
        mode: u32,
        parents: bool,
        length: u64,
    },
}

/// What came of one operation. The content of a file that was read follows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::remote) enum BatchOutcome {
    Metadata(WireMetadata),
    Read { length: u64 },
    Written(WireWritten),
    Error(Box<WireError>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_survives_the_wire() {
        for (seconds, nanos) in [(0i64, 0u32), (1, 5), (-1, 0), (-2, 999_999_999), (1 << 40, 1)] {
            let wire = WireMetadata {
                kind: FileKind::File,
                size: 1,
                mode: 0o644,
                uid: Some(1),
                gid: None,
                modified: (seconds, nanos),
            };
            let back = WireMetadata::from(Metadata::from(wire));
            assert_eq!(back.modified, (seconds, nanos));
        }
    }

    #[test]
    fn impossible_metadata_does_not_panic() {
        for modified in [(i64::MIN, u32::MAX), (i64::MAX, u32::MAX)] {
            let kind = FileKind::File;
            let wire = WireMetadata { kind, size: 0, mode: u32::MAX, uid: None, gid: None, modified };
            assert_eq!(Metadata::from(wire).mode, 0o7777);
        }
    }

    #[test]
    fn names_come_out_as_they_went_in_and_impossible_ones_are_refused() {
        for name in [&b"plain"[..], b"caf\xc3\xa9", b"\xff\x01"] {
            let entry = DirEntry::new(EntryName::new(name).unwrap(), FileKind::File);
            let json = serde_json::to_string(&WireEntry::from(&entry)).unwrap();
            assert_eq!(serde_json::from_str::<WireEntry>(&json).unwrap().entry().unwrap(), entry);
        }
        for json in [
            r#"{"name":"../x","kind":"file"}"#,
            r#"{"name":"","kind":"file"}"#,
            r#"{"raw":"Li4=","kind":"file"}"#,
            r#"{"kind":"file"}"#,
        ] {
            assert!(serde_json::from_str::<WireEntry>(json).unwrap().entry().is_err(), "{json}");
        }
        let new = r#"{"name":"a","kind":"portal","colour":3}"#;
        assert_eq!(serde_json::from_str::<WireEntry>(new).unwrap().entry().unwrap().kind, FileKind::Unknown);
    }
}
