//! Finds the workspaces on an engine, and removes those whose owners are dead.

use std::time::SystemTime;

use bollard::models::ContainerSummary;

use super::engine::Engine;
use super::labels::{self, Marks, Owner};
use super::removal::{containers, remove_container, remove_volume, volumes};
use crate::error::{Error, Result};

/// What [`prune`] removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneOptions {
    /// Also removes what was made to outlive its workspace, once its maker is dead.
    pub kept: bool,
    /// Also removes the volumes that hold the program of a helper and are not in use. The next container
    /// that needs one takes a moment longer.
    pub helpers: bool,
    /// Only reports what would be removed.
    pub dry_run: bool,
}

impl PruneOptions {
    /// Also removes kept containers.
    #[must_use]
    pub fn kept(mut self, kept: bool) -> Self {
        self.kept = kept;
        self
    }

    /// Also removes the volumes of helpers.
    #[must_use]
    pub fn helpers(mut self, helpers: bool) -> Self {
        self.helpers = helpers;
        self
    }

    /// Only reports.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// What [`prune`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The names of the containers that were removed, or would be.
    pub containers: Vec<String>,
    /// The names of the volumes that were removed, or would be.
    pub volumes: Vec<String>,
    /// How many containers and volumes stay, because their owner lives, may live, or kept them.
    pub left: usize,
    /// What could not be removed, by name, with the engine's words.
    pub failed: Vec<(String, String)>,
}

/// A workspace that an engine knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedWorkspace {
    /// The workspace's id.
    pub id: String,
    /// The engine's id of the container.
    pub container: String,
    /// The container's name.
    pub name: String,
    /// The image reference that it was made from.
    pub image: String,
    /// The container's state in the engine's words: `running`, `exited`, ...
    pub state: String,
    /// Whether the process that made it lives; `None` when that cannot be known from here.
    pub owner_alive: Option<bool>,
    /// Whether it was made to outlive its workspace.
    pub kept: bool,
    /// When it was made.
    pub created: Option<SystemTime>,
    /// The workspace root in it.
    pub root: String,
}

/// The workspaces that an engine knows, oldest first.
///
/// # Errors
///
/// [`Error::NoEngine`](crate::Error::NoEngine), [`Error::Engine`](crate::Error::Engine).
pub async fn list(engine: &Engine) -> Result<Vec<ListedWorkspace>> {
    let here = Owner::current();
    let listed = containers(engine, labels::WORKSPACE).await?;
    let mut workspaces: Vec<_> =
        listed.into_iter().filter_map(|container| describe(container, &here)).collect();
    workspaces.sort_by_key(|workspace| workspace.created);
    Ok(workspaces)
}

fn describe(container: ContainerSummary, here: &Owner) -> Option<ListedWorkspace> {
    let marks = Marks::from_labels(container.labels.as_ref()?)?;
    Some(ListedWorkspace {
        name: name(&container),
        container: container.id.unwrap_or_default(),
        image: container.image.unwrap_or_default(),
        state: container.state.map(|state| state.to_string()).unwrap_or_default(),
        owner_alive: marks.owner.is_dead(here).map(|dead| !dead),
        id: marks.workspace_id,
        kept: marks.kept,
        created: marks.created,
        root: marks.root.unwrap_or_default(),
    })
}

fn name(container: &ContainerSummary) -> String {
    let name = container.names.iter().flatten().next().map(|name| name.trim_start_matches('/'));
    name.or(container.id.as_deref()).unwrap_or_default().to_owned()
}

/// Removes the containers and volumes of workspaces whose owner is proved to be dead: a process of
/// this machine that is no longer there, or that was there before the last boot. What belongs to
/// a process that lives, or of another machine or process namespace, stays.
///
/// What cannot be removed is in the report and does not stop the rest.
///
/// # Errors
///
/// [`Error::NoEngine`](crate::Error::NoEngine), [`Error::Engine`](crate::Error::Engine) when the
/// engine does not list them.
pub async fn prune(engine: &Engine, options: PruneOptions) -> Result<PruneReport> {
    let here = Owner::current();
    let is_due = |marks: Option<Marks>| {
        marks.is_some_and(|marks| marks.owner.is_dead(&here) == Some(true) && (options.kept || !marks.kept))
    };
    let mut report = PruneReport::default();
    for container in containers(engine, labels::WORKSPACE).await? {
        let (name, id) = (name(&container), container.id.clone().unwrap_or_default());
        if !is_due(container.labels.as_ref().and_then(Marks::from_labels)) {
            report.left += 1;
            continue;
        }
        let removed = if options.dry_run { Ok(()) } else { remove_container(engine, &id).await };
        match removed {
            Ok(()) => report.containers.push(name),
            Err(error) => report.failed.push((name, error.to_string())),
        }
    }
    for volume in volumes(engine, labels::WORKSPACE).await? {
        if !is_due(Marks::from_labels(&volume.labels)) {
            report.left += 1;
            continue;
        }
        let removed = if options.dry_run { Ok(()) } else { remove_volume(engine, &volume.name).await };
        match removed {
            Ok(()) => report.volumes.push(volume.name),
            Err(error) => report.failed.push((volume.name, error.to_string())),
        }
    }
    if options.helpers {
        for volume in volumes(engine, labels::HELPER).await? {
            let removed = if options.dry_run { Ok(()) } else { remove_volume(engine, &volume.name).await };
            match removed {
                Ok(()) => report.volumes.push(volume.name),
                // A container uses it.
                Err(Error::Engine { status: Some(409), .. }) => report.left += 1,
                Err(error) => report.failed.push((volume.name, error.to_string())),
            }
        }
    }
    Ok(report)
}
