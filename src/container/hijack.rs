//! Starts an exec with a terminal, over a connection of its own.
//!
//! The stream of a terminal is raw bytes, in which the engine library looks for frame headers
//! all the same and loses what resembles one; so this one request is made here.

use std::pin::Pin;

use bollard::exec::ResizeExecOptions;
use bollard::models::ExecConfig;
use bytes::Bytes;
use futures::Stream;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::io::ReaderStream;

use super::engine::{CALL_TIMEOUT, Engine, SLOW_CALL_TIMEOUT};
use super::raw_exec::{RawExec, RawStreams};
use crate::command::TtySize;
use crate::error::{BoxError, Error, Result};
use crate::output::OutputChunk;

/// A key that no input holds: with the engine's own default two control characters would detach.
const DETACH_KEYS: &str = "ctrl-^,ctrl-],ctrl-^,ctrl-],ctrl-^,ctrl-],ctrl-^,ctrl-]";

/// A connection to an engine.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Starts `exec` in `container` with a terminal of this size.
pub(crate) async fn start_tty(
    engine: &Engine,
    container: &str,
    exec: RawExec,
    size: TtySize,
) -> Result<RawStreams> {
    let console = vec![usize::from(size.rows), usize::from(size.cols)];
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(true),
        console_size: Some(console),
        detach_keys: Some(DETACH_KEYS.to_owned()),
        env: Some(exec.env),
        cmd: Some(exec.args),
        user: Some(exec.user),
        working_dir: Some(exec.dir),
        ..Default::default()
    };
    let create = engine.docker().create_exec(container, config);
    let id = engine.call("create an exec", SLOW_CALL_TIMEOUT, create).await?.id;
    let upgrade = tokio::time::timeout(SLOW_CALL_TIMEOUT, upgrade(engine, &id, size)).await;
    let (output, input) = upgrade.map_err(|_| Error::Timeout {
        operation: "the engine call to start an exec".to_owned(),
        after: SLOW_CALL_TIMEOUT,
    })??;
    Ok(RawStreams { id, output, input })
}

type Output = Pin<Box<dyn Stream<Item = Result<OutputChunk>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// Makes the start request and takes the connection over.
async fn upgrade(engine: &Engine, id: &str, size: TtySize) -> Result<(Output, Input)> {
    let lost =
        |source: BoxError| Error::NoEngine { address: engine.address().to_owned(), source: Some(source) };
    let connection = connect(engine.address()).await.map_err(|error| lost(error.into()))?;
    let (mut sender, driver) =
        http1::handshake(TokioIo::new(connection)).await.map_err(|error| lost(error.into()))?;
    // Lives as long as the connection: it ends when both halves below are dropped.
    tokio::spawn(async move { drop(driver.with_upgrades().await) });
    let body = format!(r#"{{"Detach":false,"Tty":true,"ConsoleSize":[{},{}]}}"#, size.rows, size.cols);
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("/exec/{id}/start"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "tcp")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| lost(error.into()))?;
    let response = sender.send_request(request).await.map_err(|error| lost(error.into()))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status().as_u16();
        let text = response.into_body().collect().await.map_err(|error| lost(error.into()))?.to_bytes();
        return Err(Error::Engine {
            operation: "start an exec".to_owned(),
            status: Some(status),
            message: message(&text),
        });
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(|error| lost(error.into()))?;
    let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
    let address = engine.address().to_owned();
    let output = futures::StreamExt::map(ReaderStream::with_capacity(reader, 32 * 1024), move |read| {
        read.map(OutputChunk::Stdout)
            .map_err(|error| Error::NoEngine { address: address.clone(), source: Some(error.into()) })
    });
    Ok((Box::pin(output), Box::pin(writer)))
}

/// Connects to an engine at an address that it was reached at before.
async fn connect(address: &str) -> std::io::Result<Box<dyn Connection>> {
    if let Some(path) = address.strip_prefix("unix://") {
        return Ok(Box::new(UnixStream::connect(path).await?));
    }
    let host = address.strip_prefix("tcp://").or_else(|| address.strip_prefix("http://"));
    let host = host.map(|host| host.trim_end_matches('/')).ok_or_else(|| {
        std::io::Error::new(std::io::ErrorKind::Unsupported, "a terminal takes a unix or tcp connection")
    })?;
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// The engine's words in an error body.
fn message(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    let text = json.as_ref().and_then(|json| json.get("message")).and_then(serde_json::Value::as_str);
    text.map_or_else(|| String::from_utf8_lossy(body).trim().to_owned(), str::to_owned)
}

impl Engine {
    /// Sets the size of the terminal of an exec.
    pub(crate) async fn resize_exec(&self, id: &str, size: TtySize) -> Result<()> {
        let options = ResizeExecOptions { height: size.rows, width: size.cols };
        self.call("resize a terminal", CALL_TIMEOUT, self.docker().resize_exec(id, options)).await
    }
}
