//! The handle of an open container workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::close::Closing;
use super::engine_access::EngineAccess;
use super::progress::Timings;
use super::shared::Shared;
use crate::descriptor::Details;
use crate::workspace::Workspace;

/// A workspace in a container; clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct ContainerWorkspace {
    handle: Arc<Handle>,
}

/// What the clones share. Dropping it closes the workspace in the background.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    access: Box<dyn Workspace>,
    facts: Facts,
}

/// What does not change while a workspace is open.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The digest of what the container was made from.
    pub(crate) reference: String,
    pub(crate) details: Details,
    pub(crate) timings: Timings,
    /// Ports of the engine's host by ports of the container.
    pub(crate) ports: BTreeMap<u16, u16>,
}

/// What closing does with the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Everything with this id is removed.
    Owned { workspace_id: String },
    /// Only what runs in it is ended: the workspace made it to outlive itself.
    Kept,
    /// Only what the workspace started is ended: it belongs to somebody else.
    Attached,
}

impl ContainerWorkspace {
    /// A container by the engine's own calls.
    pub(crate) fn by_engine(shared: Arc<Shared>, ownership: Ownership, facts: Facts) -> Self {
        let closing = Closing::new(shared.clone(), ownership);
        let (reference, details) = (facts.reference.clone(), facts.details.clone());
        let access = EngineAccess::new(shared.clone(), closing, reference, details);
        ContainerWorkspace::new(shared, Box::new(access), facts)
    }

    /// A container by `access`.
    pub(crate) fn new(shared: Arc<Shared>, access: Box<dyn Workspace>, facts: Facts) -> Self {
        ContainerWorkspace { handle: Arc::new(Handle { shared, access, facts }) }
    }

    pub(super) fn access(&self) -> &dyn Workspace {
        &*self.handle.access
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.handle.facts
    }

    /// How long the parts of making its container took; zero for one that was attached to.
    pub fn timings(&self) -> Timings {
        self.facts().timings
    }

    /// The port of the engine's host that serves a TCP port of the container, on its loopback
    /// address.
    pub fn host_port(&self, container: u16) -> Option<u16> {
        self.facts().ports.get(&container).copied()
    }

    /// The engine's id of the container.
    pub fn container_id(&self) -> &str {
        &self.shared().id
    }
}
