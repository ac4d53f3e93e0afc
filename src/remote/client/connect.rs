//! The first exchange over a byte stream.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use hyper::header::HeaderValue;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::connection::{Call, Connection, Life, describe};
use super::options::ConnectOptions;
use super::workspace::RemoteWorkspace;
use crate::descriptor::{Descriptor, Kind};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::remote::executor::Tasks;
use crate::remote::frame::{FrameReader, HEAD};
use crate::remote::limits::{
    GENERATION, MAX_HEADER_BYTES, MAX_STREAMS, MAX_VARIABLES, OLDEST_GENERATION, PING_INTERVAL, PING_TIMEOUT,
    SEND_BUFFER_BYTES,
};
use crate::remote::windows::Windows;
use crate::remote::wire::{Hello, Welcome};

impl RemoteWorkspace {
    /// Opens a session over `stream`, at whose other end is a [`Server`](crate::remote::Server).
    ///
    /// The connection lives in the runtime that this is called in.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] when the stream breaks off or whoever is there does not speak the protocol;
    /// what opening the workspace reports; [`Error::InvalidArgument`] for an empty reference.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the stream, and with it what the server opened meanwhile.
    pub async fn connect(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        options: impl Into<ConnectOptions>,
    ) -> Result<RemoteWorkspace> {
        let ConnectOptions { reference, token, base, windows, keep_alive } = options.into();
        let pings = keep_alive.then_some(PING_INTERVAL);
        if reference.is_empty() {
            return Err(Error::InvalidArgument {
                reason: "a remote workspace needs a name for its server".into(),
            });
        }
        let shutdown = CancellationToken::new();
        let guard = shutdown.clone().drop_guard();
        let connection = Arc::new(handshake(stream, token, base, windows, pings, shutdown).await?);
        let reply = connection.send(Call::json("/v1/session", &Hello { generation: GENERATION })).await?;
        let mut session = FrameReader::new(reply.body);
        let frame = session.next().await?;
        let welcome: Option<Welcome> = (frame.kind == HEAD).then(|| frame.parse().ok()).flatten();
        let Some(welcome) = welcome else { return Err(session.broken("no welcome")) };
        let id = HeaderValue::from_str(&welcome.session).ok();
        let usable = welcome.generation >= OLDEST_GENERATION
            && welcome.descriptor.root.starts_with('/')
            && welcome.env.len() <= MAX_VARIABLES;
        let (Some(id), true) = (id, usable) else {
            return Err(session.broken(format!("a welcome of generation {}", welcome.generation)));
        };
        connection.set_session(id);
        let watched = connection.clone();
        tokio::spawn(async move {
            // Nothing comes here but the end.
            tokio::select! {
                _ = session.next() => watched.life.lose("the server ended the session"),
                () = watched.life.shutdown.cancelled() => {}
            }
        });
        guard.disarm();
        let descriptor = Descriptor::new(Kind::Remote, reference, welcome.descriptor.root);
        let env = Environment::from_iter(welcome.env);
        Ok(RemoteWorkspace::new(connection, descriptor, welcome.details, welcome.capabilities, env))
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    token: Option<HeaderValue>,
    base: String,
    windows: Windows,
    pings: Option<Duration>,
    shutdown: CancellationToken,
) -> Result<Connection> {
    let tasks = Tasks::new();
    let begun = http2::Builder::new(tasks.executor())
        .timer(TokioTimer::new())
        .initial_stream_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_reset_streams(MAX_STREAMS as usize)
        .keep_alive_interval(pings)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, driver) = begun.map_err(|error| Error::Gone {
        why: crate::GoneReason::Disconnected { detail: error.to_string() },
    })?;
    let life = Arc::new(Life::new(shutdown.clone()));
    let connection = Connection::new(sender, token, base, life.clone());
    tokio::spawn(async move {
        tokio::select! {
            result = driver => {
                let why = match result {
                    Ok(()) => "the server closed it".to_owned(),
                    Err(error) => describe(&error),
                };
                life.lose(why);
            }
            () = shutdown.cancelled() => {}
        }
        tasks.end().await;
    });
    Ok(connection)
}
