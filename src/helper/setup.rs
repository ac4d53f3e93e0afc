//! What a helper is told before it serves: one document ahead of the protocol.
//!
//! It comes over the stream and not as arguments, because every process of a container can read
//! the arguments of every other.

use serde::{Deserialize, Serialize};
#[cfg(feature = "helper-program")]
use tokio::io::{AsyncRead, AsyncReadExt as _};
#[cfg(feature = "helper")]
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::environment::Environment;
use crate::error::{Error, Result};

/// Where programs are looked for when nothing else says it, as engines have it.
#[cfg(feature = "helper-program")]
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// As much as an environment of the size that Linux takes may need.
const MAX_BYTES: usize = 8 << 20;

/// What a helper serves.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The absolute path of the workspace root.
    pub(crate) root: String,
    /// Whether the root is made when it is missing.
    #[serde(default)]
    pub(crate) make_root: bool,
    /// Whether the helper's own environment is left out, and a `PATH` put in its place.
    #[serde(default)]
    pub(crate) clear_env: bool,
    /// Variables over that.
    #[serde(default)]
    pub(crate) variables: Variables,
}

/// Names and values; `Debug` output shows neither.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Variables(Vec<(String, String)>);

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

impl Setup {
    /// Serves `root` with these variables over the helper's own.
    #[cfg(feature = "helper")]
    pub(crate) fn new(root: &str, over: &Environment) -> Setup {
        let variables = over.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Setup { root: root.to_owned(), make_root: false, clear_env: false, variables: Variables(variables) }
    }

    /// The environment of commands, when the helper's own is `inherited`.
    #[cfg(feature = "helper-program")]
    pub(crate) fn environment(&self, inherited: Environment) -> Environment {
        let base = match self.clear_env {
            true => [("PATH", DEFAULT_PATH)].into_iter().collect(),
            false => inherited,
        };
        base.merged(&self.variables.0.iter().cloned().collect())
    }

    /// Sends it: its length in four bytes, big-endian, and the JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the stream breaks off; [`Error::InvalidArgument`] for an environment of more
    /// than 8 MiB.
    #[cfg(feature = "helper")]
    pub(crate) async fn send(&self, stream: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        let failed = |error: std::io::Error| Error::from_io("set up", "the helper", error);
        let json = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX_BYTES);
        let Some(length) = length else {
            return Err(Error::InvalidArgument { reason: "the environment is larger than 8 MiB".to_owned() });
        };
        stream.write_all(&length.to_be_bytes()).await.map_err(failed)?;
        stream.write_all(&json).await.map_err(failed)?;
        stream.flush().await.map_err(failed)
    }

    /// Receives it; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the stream breaks off or holds something else.
    #[cfg(feature = "helper-program")]
    pub(crate) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Setup>> {
        let failed = |error: std::io::Error| Error::from_io("be set up from", "standard input", error);
        let mut length = [0; 4];
        match stream.read_exact(&mut length).await {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_BYTES {
            return Err(failed(std::io::Error::other(format!("{length} bytes of set-up are too many"))));
        }
        let mut json = vec![0; length];
        stream.read_exact(&mut json).await.map_err(failed)?;
        serde_json::from_slice(&json).map(Some).map_err(|error| failed(error.into()))
    }
}

#[cfg(all(test, feature = "helper", feature = "helper-program"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_set_up_comes_out_as_it_went_in() {
        let over: Environment = [("TOKEN", "hunter2")].into_iter().collect();
        let sent = Setup { make_root: true, ..Setup::new("/work", &over) };
        let (mut ours, mut theirs) = tokio::io::duplex(16);
        let (sending, received) = tokio::join!(
            async {
                sent.send(&mut ours).await?;
                drop(ours);
                Ok::<_, Error>(())
            },
            async { (Setup::receive(&mut theirs).await, Setup::receive(&mut theirs).await) }
        );
        sending.unwrap();
        let received = (received.0.unwrap().unwrap(), received.1.unwrap());
        assert_eq!(received, (sent, None));
        assert!(!format!("{:?}", received.0).contains("hunter2"));
        let inherited: Environment = [("A", "b")].into_iter().collect();
        assert_eq!(received.0.environment(inherited.clone()).get("A"), Some("b"));
        let cleared = Setup { clear_env: true, ..received.0 }.environment(inherited);
        assert_eq!((cleared.get("A"), cleared.get("PATH")), (None, Some(DEFAULT_PATH)));
        assert_eq!(cleared.get("TOKEN"), Some("hunter2"));
    }

    #[tokio::test]
    async fn what_is_no_set_up_is_refused_before_it_takes_memory() {
        for bytes in
            [&b"PRI * HTTP/2.0\r\n\r\n"[..], &[0xff; 8], &[0, 0, 0, 3, b'{', b'}', b'}'], &[0, 0, 0, 9, b'{']]
        {
            let received = Setup::receive(&mut &bytes[..]).await;
            assert!(matches!(received, Err(Error::Io { .. })), "{bytes:?}: {received:?}");
        }
    }
}
