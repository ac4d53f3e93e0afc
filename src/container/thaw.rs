//! Containers that a workspace has left paused, because its process was killed.

use std::time::{Duration, Instant};

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};

use super::attach::inspect;
use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::labels::{Marks, Owner};
use super::monitor::PAUSE_GRACE;
use crate::error::Result;

/// How often a paused container is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Resumes a kept container of ours whose maker is dead, if it stays paused; any other is as it was.
///
/// An engine does not tell who paused a container. Another workspace that uses this one does it for
/// moments, so it is given some time; if it takes longer, it finds out by the end of its own pause.
pub(super) async fn thaw(
    engine: &Engine,
    mut inspected: ContainerInspectResponse,
) -> Result<ContainerInspectResponse> {
    let labels = inspected.config.as_ref().and_then(|config| config.labels.as_ref());
    let is_left = labels
        .and_then(Marks::from_labels)
        .is_some_and(|marks| marks.kept && marks.owner.is_dead(&Owner::current()) == Some(true));
    let id = inspected.id.clone().unwrap_or_default();
    let deadline = Instant::now() + PAUSE_GRACE;
    while is_left && is_paused(&inspected) {
        if Instant::now() >= deadline {
            tracing::warn!(container = %id, "resuming a kept container that was left paused");
            let call = engine.docker().unpause_container(&id);
            engine.call("resume the container", SLOW_CALL_TIMEOUT, call).await?;
            return inspect(engine, &id).await;
        }
        tokio::time::sleep(LOOK).await;
        inspected = inspect(engine, &id).await?;
    }
    Ok(inspected)
}

fn is_paused(inspected: &ContainerInspectResponse) -> bool {
    inspected.state.as_ref().and_then(|state| state.status) == Some(Status::PAUSED)
}
