//! How a client presents itself.

use std::fmt;

use hyper::header::HeaderValue;

use crate::error::{Error, Result};
use crate::remote::windows::Windows;

/// What a client calls a server, and how it presents itself there.
#[derive(Clone)]
pub struct ConnectOptions {
    pub(super) reference: String,
    pub(super) token: Option<HeaderValue>,
    /// What comes before the paths of the protocol.
    pub(super) base: String,
    pub(super) windows: Windows,
    pub(super) keep_alive: bool,
}

impl ConnectOptions {
    /// A server that [`descriptor`](crate::Workspace::descriptor) calls `reference`.
    pub fn new(reference: impl Into<String>) -> Self {
        ConnectOptions {
            reference: reference.into(),
            token: None,
            base: String::new(),
            windows: Windows::default(),
            keep_alive: true,
        }
    }

    /// The path at which the server's router is.
    #[cfg(feature = "remote")]
    #[must_use]
    pub(in crate::remote) fn base(self, path: &str) -> Self {
        ConnectOptions { base: path.trim_end_matches('/').to_owned(), ..self }
    }

    /// Presents this token.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for one that holds anything but printable ASCII.
    pub fn token(self, token: &str) -> Result<Self> {
        let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) else {
            let reason = "a token consists of printable ASCII characters".to_owned();
            return Err(Error::InvalidArgument { reason });
        };
        value.set_sensitive(true);
        Ok(ConnectOptions { token: Some(value), ..self })
    }

    /// Lets the server send `bytes` of each exchange ahead, 1 to 2 MiB. More is faster over long
    /// distances, and takes more memory when what was sent is not read. Default: 256 KiB.
    #[must_use]
    pub fn window(self, bytes: u32) -> Self {
        ConnectOptions { windows: Windows::new(bytes), ..self }
    }

    /// Sets whether a server that does not answer for 15 s is given up. Default: true.
    #[must_use]
    pub fn keep_alive(self, keep_alive: bool) -> Self {
        ConnectOptions { keep_alive, ..self }
    }
}

impl From<&str> for ConnectOptions {
    fn from(reference: &str) -> Self {
        ConnectOptions::new(reference)
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions").field("reference", &self.reference).finish_non_exhaustive()
    }
}
