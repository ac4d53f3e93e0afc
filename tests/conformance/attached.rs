//! Containers that testcontainers made and `ContainerWorkspace::attach` opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agentworkspace::Workspace;
use agentworkspace::container::{AttachOptions, ContainerWorkspace};
use async_trait::async_trait;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};

use crate::docker;
use crate::engine_fixture::Supply;
use crate::recipe::{Recipe, engine};

/// The workspace root in every container.
const ROOT: &str = "/attached";

/// Containers of somebody else.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    idle: Mutex<Vec<ContainerAsync<GenericImage>>>,
    used: Mutex<HashMap<String, ContainerAsync<GenericImage>>>,
}

impl Attached {
    async fn container(&self, recipe: &Recipe) -> ContainerAsync<GenericImage> {
        engine().await;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(container) = idle {
            return container;
        }
        let (name, tag) = recipe.image.split_once(':').expect("an image with a tag");
        let image = GenericImage::new(name, tag).with_cmd(["sleep", "2000000000"]).with_network("none");
        let container = image.start().await.expect("a container");
        recipe.script(container.id(), "0:0", &format!("mkdir {ROOT}"), b"").await;
        container
    }
}

#[async_trait]
impl Supply for Attached {
    async fn take(&self, recipe: &Recipe) -> (Arc<dyn Workspace>, String) {
        let container = self.container(recipe).await;
        let id = container.id().to_owned();
        recipe.prepare(&id, ROOT).await;
        let options = AttachOptions::default().root(ROOT);
        let attached = ContainerWorkspace::attach(&engine().await, &id, options).await;
        let workspace = attached.unwrap_or_else(|error| panic!("attaching: {error}"));
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), container);
        (Arc::new(workspace), id)
    }

    async fn give_back(&self, workspace: Arc<dyn Workspace>, id: String, _: bool) {
        let closed = workspace.close().await;
        let container = self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let state = docker::must(&["inspect", "-f", "{{.State.Status}} {{.RestartCount}}", &id], b"").await;
        assert_eq!(state.trim(), "running 0", "closing leaves the container as it was");
        closed.expect("the workspace closes");
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(container);
    }

    async fn end(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for container in idle {
            if let Err(error) = container.rm().await {
                eprintln!("removing a container: {error}");
            }
        }
    }
}
