//! The first exchange with a helper.

use std::time::Duration;

use bollard::query_parameters::AttachContainerOptionsBuilder;

use super::stream::HelperStream;
use crate::container::engine::{Engine, SLOW_CALL_TIMEOUT};
use crate::error::{Error, GoneReason, Result};
use crate::helper::Setup;
use crate::remote::{ConnectOptions, RemoteWorkspace};

/// How long a helper that was started may take to open its workspace.
const CONNECT: Duration = Duration::from_secs(15);

/// Attaches to the first process of a container, which need not have been started.
///
/// The engine closes the process's input when the stream is dropped.
pub(crate) async fn attach(engine: &Engine, container: &str) -> Result<HelperStream> {
    let options =
        AttachContainerOptionsBuilder::default().stream(true).stdin(true).stdout(true).stderr(true).build();
    let call = engine.docker().attach_container(container, Some(options));
    let attached = engine.call("attach to the container", SLOW_CALL_TIMEOUT, call).await?;
    Ok(HelperStream::new(attached.output, attached.input))
}

/// Has the helper at the other end of `stream` open its workspace, which is called `reference`.
///
/// # Errors
///
/// [`Error::Gone`] when there is no helper that answers; what opening the workspace reports.
pub(crate) async fn connect(
    mut stream: HelperStream,
    setup: &Setup,
    reference: &str,
) -> Result<RemoteWorkspace> {
    let complaint = stream.complaint();
    let connecting = async {
        setup.send(&mut stream).await?;
        // A container that is paused answers nothing for as long as it is.
        let options = ConnectOptions::new(reference).keep_alive(false);
        RemoteWorkspace::connect(stream, options).await
    };
    let connected = match tokio::time::timeout(CONNECT, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(Error::Timeout { operation: "opening the helper".to_owned(), after: CONNECT }),
    };
    connected.map_err(|error| match (error, complaint.text()) {
        (Error::Gone { .. } | Error::Io { .. }, Some(words)) => {
            Error::Gone { why: GoneReason::Other { detail: format!("its helper ended: {words}") } }
        }
        (error, _) => error,
    })
}
