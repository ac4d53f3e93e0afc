//! Servers that do not keep to the protocol: the client believes nothing of it, and says so.

use std::convert::Infallible;
use std::time::Duration;

use agentworkspace::remote::{BatchItem, RemoteWorkspace};
use agentworkspace::{Command, Error, ListOptions, OpenOptions, Workspace, WorkspaceExt as _};
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::DuplexStream;

use crate::place::name;

type Body = UnsyncBoxBody<Bytes, Infallible>;

const WELCOME: &str = r#"{"generation":9,"session":"s","descriptor":{"kind":"local","ref":"","root":"/w"},
    "capabilities":{"start":true},"env":[["A","1"]],"new_field":{}}"#;

const METADATA: &str = r#"{"kind":"file","size":4,"mode":420,"modified":[0,0]}"#;

/// A frame of the protocol.
fn frame(kind: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut frame = vec![kind];
    frame.extend_from_slice(&u32::try_from(payload.len()).expect("a length").to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A server that answers a session with `welcome`, keeps that open, and everything else with
/// `answer` and `trailer`.
fn hostile(welcome: &'static str, answer: Vec<u8>, trailer: Option<&'static str>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move {
            let body: Body = if request.uri().path() == "/v1/session" {
                let first = futures::stream::iter([Ok(Frame::data(frame(1, welcome).into()))]);
                StreamBody::new(first.chain(futures::stream::pending())).boxed_unsync()
            } else {
                let mut frames = vec![Ok(Frame::data(Bytes::from(answer)))];
                if let Some(trailer) = trailer {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("agentworkspace-end", trailer.parse().expect("a value"));
                    frames.push(Ok(Frame::trailers(trailers)));
                }
                StreamBody::new(futures::stream::iter(frames)).boxed_unsync()
            };
            let response = Response::builder().header("agentworkspace-metadata", METADATA).body(body);
            Ok::<_, Infallible>(response.expect("a response"))
        }
    });
    tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(theirs), service));
    ours
}

async fn client(answer: impl Into<Vec<u8>>, trailer: Option<&'static str>) -> RemoteWorkspace {
    RemoteWorkspace::connect(hostile(WELCOME, answer.into(), trailer), "hostile").await.expect("a welcome")
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("in time")
}

fn assert_gone<T: std::fmt::Debug>(result: Result<T, Error>, what: &str) {
    assert!(matches!(result, Err(Error::Gone { .. })), "{what}: {result:?}");
}

#[tokio::test]
async fn a_welcome_that_makes_no_sense_is_refused() {
    for welcome in [
        "",
        "null",
        r#"{"generation":0,"session":"s","descriptor":{"kind":"local","ref":"","root":"/w"}}"#,
        r#"{"generation":1,"session":"s\n","descriptor":{"kind":"local","ref":"","root":"/w"}}"#,
        r#"{"generation":1,"session":"s","descriptor":{"kind":"local","ref":"","root":"w"}}"#,
    ] {
        let connected = within(RemoteWorkspace::connect(hostile(welcome, Vec::new(), None), "hostile")).await;
        assert_gone(connected, welcome);
    }
}

#[tokio::test]
async fn a_newer_server_is_understood() {
    let workspace = client(r#"{"kind":"file","size":4,"mode":420,"modified":[0,0],"new":1}"#, None).await;
    assert_eq!(workspace.descriptor().root, "/w");
    assert_eq!(within(workspace.metadata(&name("f"))).await.expect("metadata").size, 4);
}

#[tokio::test]
async fn a_file_that_does_not_arrive_whole_is_an_error() {
    let whole = client("abcd", Some("{}")).await;
    assert_eq!(within(whole.read(&name("f"), 10)).await.expect("a file"), b"abcd");
    assert_gone(within(client("ab", None).await.read(&name("f"), 10)).await, "a file without its end");
    assert_gone(within(client("ab", Some("x")).await.read(&name("f"), 10)).await, "an end that is none");
    let failed = client("ab", Some(r#"{"error":{"code":"changed","text":"t","path":"f"}}"#)).await;
    assert!(matches!(within(failed.read(&name("f"), 10)).await, Err(Error::Changed { .. })));
    let long = client("abcdef", Some("{}")).await;
    assert!(matches!(within(long.read(&name("f"), 5)).await, Err(Error::TooLarge { .. })));
    let long = client("abcdef", Some("{}")).await;
    let reader = within(long.open(&name("f"), OpenOptions::default().length(3))).await.expect("a file");
    assert_gone(within(reader.read_all()).await, "more than was asked for");
}

#[tokio::test]
async fn entries_that_no_directory_holds_are_refused() {
    let end = frame(4, r#"{"more":false}"#);
    for entries in [
        r#"[{"name":"../../etc/passwd","kind":"file"}]"#,
        r#"[{"name":"b","kind":"file"},{"name":"a","kind":"file"}]"#,
        r#"[{"name":"a","kind":"file"},{"name":"a","kind":"file"}]"#,
        r#"[{"name":"a","kind":"file"},{"name":"b","kind":"file"},{"name":"c","kind":"file"}]"#,
        r#"[{"kind":"file"}]"#,
        r#"{"name":"a"}"#,
    ] {
        let workspace = client([frame(6, entries), end.clone()].concat(), None).await;
        let listed = within(workspace.read_dir(&name("."), ListOptions::default().limit(2))).await;
        assert_gone(listed, entries);
    }
    let endless = client(frame(4, r#"{"more":true}"#), None).await;
    assert_gone(within(endless.read_dir_all(&name("."))).await, "pages without entries");
}

#[tokio::test]
async fn output_that_contradicts_itself_is_refused() {
    let end = |text: &str| frame(4, text);
    let ended = r#"{"end":{"exited":0},"duration":{"secs":0,"nanos":0}}"#;
    let cases = [
        ("nothing", Vec::new()),
        ("no end", frame(2, "out")),
        ("half a frame", frame(2, "out")[..6].to_vec()),
        ("an end that is none", end("{}")),
        ("more than was to be kept", [frame(2, "123456789"), end(ended)].concat()),
        (
            "a head beyond the output",
            [frame(2, "12"), end(r#"{"end":{"exited":0},"stdout":{"head":3,"dropped":1}}"#)].concat(),
        ),
        ("a frame that is too long", [vec![2], 65537u32.to_be_bytes().to_vec(), vec![0; 65537]].concat()),
        ("a document that is too long", [vec![4], u32::MAX.to_be_bytes().to_vec()].concat()),
        ("another exchange's frame", frame(6, "[]")),
    ];
    for (what, answer) in cases {
        let workspace = client(answer, None).await;
        assert_gone(within(workspace.exec(Command::new("true").output_limit(8))).await, what);
        assert_gone(within(workspace.metadata(&name("."))).await, "and so is every later call");
    }
    let unknown = [frame(99, "new"), frame(2, "12"), frame(2, ""), end(ended)].concat();
    let output = within(client(unknown, None).await.exec(Command::new("true"))).await.expect("an output");
    assert_eq!(&*output.stdout, b"12", "frames of a type that is not known are skipped");
}

#[tokio::test]
async fn a_batch_gives_what_was_asked_for() {
    let items = || vec![BatchItem::Read(name("f"), 3)];
    for (what, answer) in [
        (
            "more than was asked for",
            [frame(7, r#"{"read":{"length":4}}"#), frame(8, "1234"), frame(4, "{}")].concat(),
        ),
        (
            "more than was announced",
            [frame(7, r#"{"read":{"length":3}}"#), frame(8, "1234"), frame(4, "{}")].concat(),
        ),
        ("too few", frame(4, "{}")),
        ("too many", [frame(7, r#"{"read":{"length":0}}"#), frame(7, r#"{"read":{"length":0}}"#)].concat()),
    ] {
        assert_gone(within(client(answer, None).await.batch(items())).await, what);
    }
}

#[tokio::test]
async fn whoever_does_not_speak_the_protocol_is_given_up() {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    tokio::spawn(async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut theirs, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        std::future::pending::<()>().await;
    });
    assert_gone(within(RemoteWorkspace::connect(ours, "hostile")).await, "another protocol");
}
