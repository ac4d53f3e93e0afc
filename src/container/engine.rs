//! The connection to a container engine, and what its errors mean.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as BollardError;
use bollard::models::ContainerInspectResponse;

use crate::error::{Error, Result};

/// How long a call that the engine answers from memory may take.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a call that waits for processes, disks or networks may take.
pub(crate) const SLOW_CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Far beyond every bound on a call. The engine library's own would cut off calls that have a longer
/// one, and streams whose first byte takes its time.
const NO_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A connection to a Docker or Podman engine. Clones share it.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    docker: Docker,
    address: String,
    /// The digests of helpers that the engine is known to have.
    #[cfg(feature = "helper")]
    helpers: std::sync::Mutex<std::collections::HashSet<&'static str>>,
}

impl Engine {
    /// Connects to the engine that `DOCKER_HOST` names, or to the machine's own at
    /// `/var/run/docker.sock`, and agrees on an API version.
    ///
    /// # Errors
    ///
    /// [`Error::NoEngine`] when nothing answers there.
    pub async fn connect() -> Result<Engine> {
        let address = std::env::var("DOCKER_HOST")
            .ok()
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        Engine::connect_to(&address).await
    }

    /// Connects to the engine at `address`: `unix:///path`, `tcp://host:port` or `http://host:port`.
    ///
    /// # Errors
    ///
    /// [`Error::NoEngine`] when nothing answers there.
    pub async fn connect_to(address: &str) -> Result<Engine> {
        let unreachable = |source: BollardError| Error::NoEngine {
            address: address.to_owned(),
            source: Some(Box::new(source)),
        };
        let docker = Docker::connect_with_host(address).map_err(unreachable)?.with_timeout(NO_TIMEOUT);
        let docker = tokio::time::timeout(CALL_TIMEOUT, docker.negotiate_version())
            .await
            .map_err(|_| Error::NoEngine { address: address.to_owned(), source: None })?
            .map_err(unreachable)?;
        Ok(Engine(Arc::new(Inner {
            docker,
            address: address.to_owned(),
            #[cfg(feature = "helper")]
            helpers: std::sync::Mutex::default(),
        })))
    }

    /// Where the engine is.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// The digests of helpers that the engine is known to have.
    #[cfg(feature = "helper")]
    pub(crate) fn helpers(&self) -> std::sync::MutexGuard<'_, std::collections::HashSet<&'static str>> {
        self.0.helpers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn docker(&self) -> &Docker {
        &self.0.docker
    }

    /// Awaits an engine call for at most `bound`, and says what its error means.
    pub(crate) async fn call<T>(
        &self,
        operation: &'static str,
        bound: Duration,
        call: impl Future<Output = Result<T, BollardError>>,
    ) -> Result<T> {
        match tokio::time::timeout(bound, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.error(operation, error)),
            Err(_) => {
                Err(Error::Timeout { operation: format!("the engine call to {operation}"), after: bound })
            }
        }
    }

    /// What the engine says of a container; `None` when it has none of this name or id.
    pub(crate) async fn inspect(&self, container: &str) -> Result<Option<ContainerInspectResponse>> {
        let call = self.docker().inspect_container(container, None);
        match self.call("inspect the container", CALL_TIMEOUT, call).await {
            Ok(inspected) => Ok(Some(inspected)),
            Err(Error::Engine { status: Some(404), .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a bollard error means: an answer of the engine is [`Error::Engine`] with its status, a
    /// connection that failed is [`Error::NoEngine`].
    pub(crate) fn error(&self, operation: &'static str, error: BollardError) -> Error {
        match error {
            BollardError::DockerResponseServerError { status_code, message } => {
                Error::Engine { operation: operation.to_owned(), status: Some(status_code), message }
            }
            BollardError::DockerStreamError { error } => {
                Error::Engine { operation: operation.to_owned(), status: None, message: error }
            }
            error @ (BollardError::HyperResponseError { .. }
            | BollardError::HyperLegacyError { .. }
            | BollardError::SocketNotFoundError(_)
            | BollardError::IOError { .. }) => {
                Error::NoEngine { address: self.0.address.clone(), source: Some(Box::new(error)) }
            }
            BollardError::RequestTimeoutError => {
                Error::Timeout { operation: format!("the engine call to {operation}"), after: NO_TIMEOUT }
            }
            other => {
                Error::Engine { operation: operation.to_owned(), status: None, message: other.to_string() }
            }
        }
    }
}

/// Whether the engine itself refused a call. After any other error it may have done, or may still
/// do, what it was asked for.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Engine { status: Some(_), .. })
}

/// Where the engine of a Linux machine listens.
const DEFAULT_ADDRESS: &str = "unix:///var/run/docker.sock";

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.0.address).finish()
    }
}
