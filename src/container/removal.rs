//! Removes what a workspace made in an engine, also when nobody waits for it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bollard::models::{ContainerSummary, Volume};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptions,
};

use super::cleanup;
use super::engine::{CALL_TIMEOUT, Engine, SLOW_CALL_TIMEOUT};
use super::labels;
use crate::error::{Error, Result};

/// How long a removal may make no progress beside an engine that answers.
const REMOVAL: Duration = Duration::from_secs(5);

/// The first and the last delay between two looks at what is still there.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LAST_DELAY: Duration = Duration::from_millis(500);

/// When to look for what a call made whose answer was lost: engines finish a create that they
/// have begun, though nobody waits for it.
const RECONCILE: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
    Duration::from_millis(3200),
    Duration::from_millis(6400),
];

/// Removes every container and volume that carries a workspace's id, and returns once the engine
/// no longer lists any.
///
/// Labels rather than names decide, so that this also finds what a lost call made.
pub(crate) async fn remove_workspace(engine: &Engine, workspace_id: &str) -> Result<()> {
    let filter = format!("{}={workspace_id}", labels::WORKSPACE);
    // A large layer takes the engine long; what counts is that something goes.
    let mut progress = Instant::now();
    let mut left = usize::MAX;
    let mut delay = FIRST_DELAY;
    let mut refused = None;
    loop {
        let containers = containers(engine, &filter).await?;
        let volumes = volumes(engine, &filter).await?;
        let found = containers.len() + volumes.len();
        if found == 0 {
            return Ok(());
        }
        if found < left {
            (left, progress) = (found, Instant::now());
        }
        if progress.elapsed() > REMOVAL {
            return Err(refused.unwrap_or_else(|| Error::Timeout {
                operation: format!("the removal of workspace {workspace_id}"),
                after: REMOVAL,
            }));
        }
        refused = None;
        for id in containers.iter().filter_map(|container| container.id.as_deref()) {
            refused = remove_container(engine, id).await.err().or(refused);
        }
        for volume in &volumes {
            // A volume is in use for as long as its container is being removed.
            refused = remove_volume(engine, &volume.name).await.err().or(refused);
        }
        // What was removed without an error needs no pause before it is verified.
        if refused.is_some() {
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(LAST_DELAY);
        }
    }
}

/// All containers with a label, those that do not run included.
pub(crate) async fn containers(engine: &Engine, label: &str) -> Result<Vec<ContainerSummary>> {
    let filters: HashMap<&str, Vec<&str>> = [("label", vec![label])].into();
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    engine.call("list containers", CALL_TIMEOUT, engine.docker().list_containers(Some(options))).await
}

/// All volumes with a label.
pub(crate) async fn volumes(engine: &Engine, label: &str) -> Result<Vec<Volume>> {
    let filters: HashMap<&str, Vec<&str>> = [("label", vec![label])].into();
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let listed =
        engine.call("list volumes", CALL_TIMEOUT, engine.docker().list_volumes(Some(options))).await?;
    Ok(listed.volumes.unwrap_or_default())
}

/// Kills and removes a container with its anonymous volumes. One that is gone, or is being
/// removed by another call, is no error.
pub(crate) async fn remove_container(engine: &Engine, id: &str) -> Result<()> {
    // Under cgroup v1 a frozen process does not die of SIGKILL, and the engine waits for it while
    // it holds the container's lock. A container that is not paused refuses this at once.
    let _not_paused =
        engine.call("resume the container", REMOVAL, engine.docker().unpause_container(id)).await;
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    let call = engine.docker().remove_container(id, Some(options));
    match engine.call("remove the container", SLOW_CALL_TIMEOUT, call).await {
        Err(Error::Engine { status: Some(404), .. }) => Ok(()),
        Err(Error::Engine { status: Some(409), message, .. }) if message.contains("in progress") => {
            // The answer came at once; the other call needs its time.
            tokio::time::sleep(FIRST_DELAY).await;
            Ok(())
        }
        other => other,
    }
}

/// Removes a volume; one that is gone is no error.
pub(crate) async fn remove_volume(engine: &Engine, name: &str) -> Result<()> {
    let call = engine.docker().remove_volume(name, None::<RemoveVolumeOptions>);
    match engine.call("remove the volume", SLOW_CALL_TIMEOUT, call).await {
        Err(Error::Engine { status: Some(404), .. }) => Ok(()),
        other => other,
    }
}

/// Removes a workspace in the background: until it is done once or, for a call whose answer was
/// lost, for as long as its effect may still come.
pub(crate) fn remove_in_background(engine: &Engine, workspace_id: String, answer_lost: bool) {
    let address = engine.address().to_owned();
    cleanup::spawn(async move {
        for delay in RECONCILE {
            tokio::time::sleep(delay).await;
            // The connections of the other runtime may have ended with it.
            let removed = match Engine::connect_to(&address).await {
                Ok(engine) => remove_workspace(&engine, &workspace_id).await,
                Err(error) => Err(error),
            };
            match removed {
                Ok(()) if !answer_lost => return,
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(workspace = workspace_id, %error, "a workspace could not be removed");
                }
            }
        }
    });
}
