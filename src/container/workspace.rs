//! The handle of an open container workspace.

use std::sync::Arc;

use super::shared::Shared;

/// A workspace in a container; clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct ContainerWorkspace {
    shared: Arc<Shared>,
}

impl ContainerWorkspace {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        ContainerWorkspace { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
