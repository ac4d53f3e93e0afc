//! What this generation of the protocol looks like, compared with what is on record.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::*;
use crate::command::{Command, Leftovers, TtySize};
use crate::descriptor::{Descriptor, Details, Kind};
use crate::error::Error;
use crate::files::{ArchiveReport, DirEntry, EntryName, FileKind, Metadata, WriteMethod, Written};
use crate::output::{Captured, End, Output};
use crate::remote::error::WireError;
use crate::remote::frame;
use crate::remote::limits::GENERATION;
use crate::remote::outgoing::BodyEnd;
use crate::signal::Signal;

const RECORD: &str = include_str!("generation-1.json");

/// Collects documents, each of which must read back as it was written.
struct Surface(Map<String, Value>);

impl Surface {
    fn add<T: Serialize + DeserializeOwned>(&mut self, name: &str, document: &T) {
        let value = serde_json::to_value(document).unwrap();
        let back: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap(), value, "{name}");
        self.0.insert(name.to_owned(), value);
    }

    fn query<T: Serialize + DeserializeOwned>(&mut self, name: &str, query: &T) {
        let text = serde_urlencoded::to_string(query).unwrap();
        let back: T = serde_urlencoded::from_str(&text).unwrap();
        assert_eq!(serde_urlencoded::to_string(back).unwrap(), text, "{name}");
        self.0.insert(name.to_owned(), text.into());
    }
}

fn command() -> Command {
    Command::new("tar")
        .arg("-x")
        .dir("sub")
        .env("A", "1")
        .stdin("in")
        .timeout(Duration::from_millis(1500))
        .idle_timeout(Duration::from_secs(1))
        .output_limit(100)
        .user("web")
        .kill_grace(Duration::from_secs(2))
        .leftovers(Leftovers::Kill)
        .tty(TtySize::new(24, 80))
}

fn surface() -> Value {
    let mut all = Surface(Map::new());
    all.0.insert("generation".to_owned(), GENERATION.into());
    let kinds = json!({
        "head": frame::HEAD, "stdout": frame::STDOUT, "stderr": frame::STDERR, "end": frame::END,
        "error": frame::ERROR, "entries": frame::ENTRIES, "result": frame::RESULT, "data": frame::DATA,
    });
    all.0.insert("frames".to_owned(), kinds);

    all.add("hello", &Hello { generation: GENERATION });
    let welcome = Welcome {
        generation: GENERATION,
        session: "00".to_owned(),
        descriptor: Descriptor::new(Kind::Local, "", "/work"),
        details: Details::default(),
        capabilities: crate::Capabilities::default(),
        env: vec![("A".to_owned(), "1".to_owned())],
    };
    all.add("welcome", &welcome);
    all.add("error", &WireError::from(&Error::NotFound { path: "f".to_owned() }));
    all.add("body_end", &BodyEnd { error: None });

    let path = || "a b/\u{e9}".to_owned();
    let read = ReadQuery { path: path(), offset: 1, length: Some(2), max_size: Some(3) };
    all.query("GET /v1/file", &read);
    let write = WriteQuery { path: path(), mode: Some(0o644), parents: Some(true), length: Some(3) };
    all.query("PUT /v1/file", &write);
    all.query("DELETE /v1/file", &RemoveQuery { path: path(), all: true });
    all.query("GET /v1/metadata", &MetadataQuery { path: path(), follow: true });
    all.query("GET /v1/link", &PathQuery { path: path() });
    let list = ListQuery { path: path(), after: Some(Bytes64(b"\xff".to_vec())), limit: Some(10) };
    all.query("GET /v1/dir", &list);
    let unpack =
        UnpackQuery { path: path(), max_bytes: Some(1), max_entries: Some(2), mode_mask: Some(0o777) };
    all.query("PUT /v1/archive", &unpack);
    all.query("GET /v1/process/stdout", &ProcessId { process: 1 });

    let found = Metadata::new(FileKind::File, 3, 0o644, UNIX_EPOCH + Duration::new(5, 6)).owner(1, 2);
    all.add("metadata", &WireMetadata::from(found));
    all.add("link", &WireLink { target: Bytes64(b"x".to_vec()) });
    let entry =
        |name: &[u8]| WireEntry::from(&DirEntry::new(EntryName::new(name).unwrap(), FileKind::Directory));
    all.add("entries", &vec![entry(b"a"), entry(b"\xff")]);
    all.add("list_end", &ListEnd { more: true });
    let written = || WireWritten::from(Written::new(3, WriteMethod::Atomic));
    all.add("written", &written());
    all.add("copy", &CopyRequest { from: "a".to_owned(), to: "b".to_owned() });
    all.add("mode", &ModeRequest { path: "a".to_owned(), mode: 0o600 });
    all.add(
        "pack",
        &PackRequest { path: "a".to_owned(), exclude: vec!["*.o".to_owned()], max_bytes: Some(1) },
    );
    all.add("archive_report", &ArchiveReport::new(1, 2));
    let operations = vec![
        BatchOperation::Metadata { path: "a".to_owned(), follow: true },
        BatchOperation::Read { path: "a".to_owned(), max_size: 3 },
        BatchOperation::Write { path: "a".to_owned(), mode: 0o644, parents: true, length: 3 },
    ];
    all.add("batch", &BatchHead { operations });
    let outcomes = vec![
        BatchOutcome::Metadata(WireMetadata::from(found)),
        BatchOutcome::Read { length: 3 },
        BatchOutcome::Written(written()),
        BatchOutcome::Error(Box::new(WireError::from(&Error::Closed))),
    ];
    all.add("batch_outcomes", &outcomes);

    all.add("command", &CommandHead::new(7, &command()));
    let cut = Captured::cut(b"ab".to_vec(), b"yz", 9);
    let mut output = Output::new(End::Exited(3), cut, Captured::default(), Duration::from_millis(10));
    output.output_detached = true;
    all.add("command_end", &Ended::command(&output));
    all.add("process_end", &Ended::process(End::Signaled(Signal::KILL)));
    all.add("started", &Started { process: 1 });
    all.add("cancel", &CallId { call: 7 });
    all.add("signal", &SignalRequest { process: 1, signal: Signal::TERM });
    all.add("resize", &ResizeRequest { process: 1, size: TtySize::new(24, 80) });
    Value::Object(all.0)
}

#[test]
fn this_generation_is_as_it_is_on_record() {
    let surface = surface();
    let record: Value = serde_json::from_str(RECORD).unwrap();
    assert!(
        surface == record,
        "the protocol has changed. A field may only be added, with a default, and what older peers must not \
         get needs a new generation. If that holds, this is the new generation-{GENERATION}.json:\n{surface:#}"
    );
}

#[test]
fn a_command_comes_out_as_it_went_in() {
    let head = CommandHead::new(7, &command());
    let mut back = head.into_command().unwrap();
    back.stdin = command().stdin;
    assert_eq!(format!("{back:?}"), format!("{:?}", command()));
}
