//! Reaching a server by its address.

use std::io;
use std::time::Duration;

use hyper::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::client::{ConnectOptions, RemoteWorkspace};
use super::tls::ClientTls;
use crate::error::{Error, GoneReason, Result};

/// How long a connection may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How a client reaches a server and presents itself there.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DialOptions {
    token: Option<Secret>,
    tls: Option<ClientTls>,
    plain_text: bool,
    window: Option<u32>,
}

#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl DialOptions {
    /// Presents this token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        DialOptions { token: Some(Secret(token.into())), ..self }
    }

    /// Whom to trust at an `https:` address. Default: [`ClientTls::system`].
    #[must_use]
    pub fn tls(self, tls: ClientTls) -> Self {
        DialOptions { tls: Some(tls), ..self }
    }

    /// Sends a token also to an `http:` address of another machine, where whoever is in between
    /// can read it.
    #[must_use]
    pub fn allow_plain_text(self) -> Self {
        DialOptions { plain_text: true, ..self }
    }

    /// As [`ConnectOptions::window`].
    #[must_use]
    pub fn window(self, bytes: u32) -> Self {
        DialOptions { window: Some(bytes), ..self }
    }
}

impl RemoteWorkspace {
    /// Opens a session at `http://HOST[:PORT][/PATH]`, `https://HOST[:PORT][/PATH]` or
    /// `unix:SOCKET`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another address, a token that the server does not accept,
    /// and a token that would go in plain text to another machine; [`Error::Gone`] when nobody
    /// answers; and those of [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](Self::connect).
    pub async fn dial(address: &str, options: DialOptions) -> Result<RemoteWorkspace> {
        if let Some(path) = address.strip_prefix("unix:") {
            let stream = reach(address, UnixStream::connect(path)).await?;
            return RemoteWorkspace::connect(stream, presented(address, &options)?).await;
        }
        let invalid = |reason: String| Err(Error::InvalidArgument { reason });
        let Ok(uri) = address.parse::<Uri>() else { return invalid(format!("`{address}` is not a URL")) };
        let (host, default_port) = match (uri.host(), uri.scheme_str()) {
            (Some(host), Some("http")) => (host, 80),
            (Some(host), Some("https")) => (host, 443),
            _ => return invalid(format!("`{address}` is not a server: use `http:`, `https:` or `unix:`")),
        };
        // An IPv6 address is in brackets there, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(default_port);
        let authority = uri.authority().map_or(host.as_str(), |authority| authority.as_str());
        let presented = presented(authority, &options)?.base(uri.path());
        let tls = match uri.scheme_str() {
            Some("https") => Some(options.tls.map_or_else(ClientTls::system, Ok)?),
            _ => None,
        };
        let connecting = async {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            // Small frames are what somebody waits for.
            stream.set_nodelay(true)?;
            if tls.is_none()
                && options.token.is_some()
                && !options.plain_text
                && !stream.peer_addr()?.ip().is_loopback()
            {
                return Ok(None);
            }
            let stream: Box<dyn Stream> = match &tls {
                None => Box::new(stream),
                Some(ClientTls(config)) => {
                    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                    Box::new(TlsConnector::from(config.clone()).connect(name, stream).await?)
                }
            };
            Ok(Some(stream))
        };
        match reach(address, connecting).await? {
            Some(stream) => RemoteWorkspace::connect(stream, presented).await,
            None => invalid(format!(
                "the token would go to `{address}` in plain text: use `https:`, or allow that explicitly"
            )),
        }
    }
}

/// A byte stream of any kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

fn presented(reference: &str, options: &DialOptions) -> Result<ConnectOptions> {
    let mut presented = ConnectOptions::new(reference);
    if let Some(bytes) = options.window {
        presented = presented.window(bytes);
    }
    match &options.token {
        Some(Secret(token)) => presented.token(token),
        None => Ok(presented),
    }
}

async fn reach<T>(address: &str, connecting: impl Future<Output = io::Result<T>>) -> Result<T> {
    let detail = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) => format!("`{address}`: {error}"),
        Err(_) => format!("`{address}` does not answer within {CONNECT_TIMEOUT:?}"),
    };
    Err(Error::Gone { why: GoneReason::Disconnected { detail } })
}
