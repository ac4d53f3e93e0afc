//! What differs between a container and its image.

use serde::{Deserialize, Serialize};

use super::check::is_within;
use super::engine::SLOW_CALL_TIMEOUT;
use super::pause;
use super::workspace::ContainerWorkspace;
use crate::error::Result;

/// One difference between a container's file system and its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The absolute path in the container.
    pub path: String,
}

/// What happened to a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is not in the image.
    Added,
    /// Its content, its mode or owner, or something in it changed.
    Modified,
    /// It is in the image and no longer there.
    Deleted,
}

/// Which changes are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeScope {
    /// Those below the workspace root.
    #[default]
    Root,
    /// Those anywhere in the container's own layer.
    Whole,
}

impl ContainerWorkspace {
    /// What differs from the image, sorted by path, without what the workspace itself put there.
    ///
    /// It is what the engine sees in the container's own layer: what is on a volume, a bind mount
    /// or a tmpfs is not in it, and so nothing below the root of a read-only container.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`](crate::Error::Closed), [`Error::Gone`](crate::Error::Gone),
    /// [`Error::Engine`](crate::Error::Engine).
    pub async fn changes(&self, scope: ChangeScope) -> Result<Vec<Change>> {
        let shared = self.shared();
        let docker = shared.engine.docker();
        let call =
            shared.engine.call("list the changes", SLOW_CALL_TIMEOUT, docker.container_changes(&shared.id));
        let listed = shared.guard(call).await?.unwrap_or_default();
        let is_wanted = |path: &str| match scope {
            ChangeScope::Whole => true,
            ChangeScope::Root => path != shared.root && is_within(path, &shared.root),
        };
        let mut changes: Vec<Change> = listed
            .into_iter()
            .map(|change| Change { kind: kind(change.kind as i64), path: change.path })
            .filter(|change| !is_within(&change.path, pause::DIRECTORY) && is_wanted(&change.path))
            .collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }
}

/// The engine's number of a kind.
fn kind(number: i64) -> ChangeKind {
    match number {
        1 => ChangeKind::Added,
        2 => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    }
}
