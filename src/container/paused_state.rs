//! Whether a container is paused, without waiting for it.

use std::collections::HashMap;

use bollard::models::ContainerSummaryStateEnum as State;
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::engine::{CALL_TIMEOUT, Engine};
use crate::error::Result;

impl Engine {
    /// Whether this container is paused, by the engine's list.
    ///
    /// To inspect one that was paused while a process was being started waits for that process with
    /// the container's lock held, and then nobody can resume it. The list takes no lock.
    pub(crate) async fn is_paused(&self, id: &str) -> Result<bool> {
        let filters: HashMap<&str, Vec<&str>> = [("id", vec![id])].into();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let call = self.docker().list_containers(Some(options));
        let listed = self.call("list the container", CALL_TIMEOUT, call).await?;
        Ok(listed.iter().any(|container| container.state == Some(State::PAUSED)))
    }
}
