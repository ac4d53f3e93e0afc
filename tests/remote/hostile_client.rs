//! Clients that do not keep to the protocol: nothing comes of it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};

use agentworkspace::remote::Server;

use crate::place::{Place, alive, eventually, marker, serve};

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// A connection by hand.
struct Raw {
    sender: SendRequest<Body>,
    session: String,
    /// Keeps the session open.
    _welcome: Option<Response<hyper::body::Incoming>>,
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Frames one after the other.
fn frames(frames: Vec<Frame<Bytes>>) -> Body {
    StreamBody::new(futures::stream::iter(frames.into_iter().map(Ok))).boxed_unsync()
}

impl Raw {
    async fn connect(server: &Server) -> Raw {
        let (sender, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(serve(server))).await.expect("a connection");
        tokio::spawn(connection);
        Raw { sender, session: String::new(), _welcome: None }
    }

    async fn open(server: &Server) -> Raw {
        let mut raw = Raw::connect(server).await;
        let mut response = raw.send("POST", "/v1/session", whole(r#"{"generation":1}"#)).await;
        assert_eq!(response.status(), StatusCode::OK);
        let mut text = Vec::new();
        while !text.ends_with(b"}") {
            let frame = response.body_mut().frame().await.expect("a frame").expect("a frame");
            text.extend_from_slice(&frame.into_data().expect("data"));
        }
        let welcome: serde_json::Value = serde_json::from_slice(&text[5..]).expect("a welcome");
        raw.session = welcome["session"].as_str().expect("an id").to_owned();
        raw._welcome = Some(response);
        raw
    }

    async fn send(&mut self, method: &str, path: &str, body: Body) -> Response<hyper::body::Incoming> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://x{path}"))
            .header("agentworkspace-session", &self.session)
            .body(body)
            .expect("a request");
        self.sender.ready().await.expect("a connection");
        self.sender.send_request(request).await.expect("a response")
    }

    /// The status and the code of the error.
    async fn refused(&mut self, method: &str, path: &str, body: Body) -> (u16, String) {
        let response = self.send(method, path, body).await;
        let status = response.status().as_u16();
        let text = response.into_body().collect().await.expect("a body").to_bytes();
        let error: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        (status, error["code"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn a_file_that_does_not_arrive_whole_is_not_written() {
    let place = Place::new();
    std::fs::write(place.path().join("f"), "old").expect("a file");
    let mut raw = Raw::open(&place.server()).await;
    let data = || Frame::data(Bytes::from_static(b"half"));
    let cut = frames(vec![data()]);
    assert_eq!(raw.refused("PUT", "/v1/file?path=f", cut).await.1, "io");
    let failed: HeaderMap = [("agentworkspace-end", r#"{"error":{"code":"cancelled","text":"t"}}"#)]
        .into_iter()
        .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
        .collect::<HeaderMap>();
    let failed = frames(vec![data(), Frame::trailers(failed)]);
    assert_eq!(raw.refused("PUT", "/v1/file?path=f", failed).await.1, "cancelled");
    let long = frames(vec![data()]);
    assert_eq!(raw.refused("PUT", "/v1/file?path=f&length=3", long).await.1, "io");
    assert_eq!(std::fs::read(place.path().join("f")).expect("the file"), b"old");
    // Its length says that this one is whole.
    assert_eq!(raw.refused("PUT", "/v1/file?path=f", whole("new")).await.0, 200);
    assert_eq!(std::fs::read(place.path().join("f")).expect("the file"), b"new");
}

#[tokio::test]
async fn malformed_requests_are_refused_and_the_session_goes_on() {
    let place = Place::new();
    let mut raw = Raw::open(&place.server()).await;
    let huge = || whole(vec![b' '; (4 << 20) + 1]);
    let lying = |length: u32| {
        let mut head = length.to_be_bytes().to_vec();
        head.extend_from_slice(b"{}");
        whole(head)
    };
    for (method, path, body) in [
        ("GET", "/v1/nothing", whole("")),
        ("PATCH", "/v1/file?path=f", whole("")),
        ("GET", "/v1/file", whole("")),
        ("GET", "/v1/file?path=f&offset=-1", whole("")),
        ("GET", "/v1/file?path=", whole("")),
        ("GET", "/v1/dir?path=.&after=Li4%3D", whole("")),
        ("POST", "/v1/rename", whole("{")),
        ("POST", "/v1/rename", huge()),
        ("POST", "/v1/exec", whole("")),
        ("POST", "/v1/exec", lying(2)),
        ("POST", "/v1/exec", lying(u32::MAX)),
        ("POST", "/v1/exec", lying(1000)),
        ("POST", "/v1/start", whole(r#"{"call":1,"args":[]}"#)),
        ("POST", "/v1/batch", lying(2)),
        ("POST", "/v1/process/signal", whole(r#"{"process":1,"signal":99}"#)),
    ] {
        let (status, code) = raw.refused(method, path, body).await;
        assert!(
            matches!(code.as_str(), "invalid_argument" | "invalid_path" | "io"),
            "{method} {path}: {status} {code}"
        );
        assert_ne!(status, 200, "{method} {path}");
    }
    for path in ["/v1/file?path=..%2Fx", "/v1/file?path=%2Fetc%2Fpasswd"] {
        assert_eq!(raw.refused("GET", path, whole("")).await, (403, "outside_workspace".to_owned()));
    }
    assert_eq!(raw.refused("GET", "/v1/process/stdout?process=7", whole("")).await.1, "process_done");
    assert_eq!(raw.refused("GET", "/v1/metadata?path=.", whole("")).await.0, 200);
}

#[tokio::test]
async fn a_session_belongs_to_who_knows_it() {
    let place = Place::new();
    let server = place.server();
    let mut raw = Raw::connect(&server).await;
    for session in ["", "0", "00000000000000000000000000000000"] {
        raw.session = session.to_owned();
        assert_eq!(raw.refused("GET", "/v1/metadata?path=.", whole("")).await, (410, "closed".to_owned()));
    }
    assert_eq!(raw.refused("POST", "/v1/session", whole(r#"{"generation":0}"#)).await.1, "invalid_argument");
}

#[tokio::test]
async fn letting_go_of_a_session_ends_what_it_started() {
    let place = Place::new();
    let mut raw = Raw::open(&place.server()).await;
    let marker = marker();
    let head = format!(r#"{{"call":1,"args":["/bin/sh","-c","sleep {marker}; :"],"unknown":true}}"#);
    let started = raw.send("POST", "/v1/start", whole(head)).await;
    assert_eq!(started.status(), StatusCode::OK);
    eventually(Duration::from_secs(10), || alive(&marker) > 0).await;
    // The connection stays; the answer that stands for the session does not.
    raw._welcome = None;
    eventually(Duration::from_secs(5), || alive(&marker) == 0).await;
    assert_eq!(raw.refused("GET", "/v1/metadata?path=.", Empty::new().boxed_unsync()).await.1, "closed");
}
