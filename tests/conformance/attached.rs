//! The fixture of `ContainerWorkspace::attach`: containers that testcontainers made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agentworkspace::conformance::{Fixture, Site};
use agentworkspace::container::{AttachOptions, ContainerWorkspace};
use async_trait::async_trait;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};

use crate::container::{OUTSIDE, Recipe, engine, give_away, plant, prepare, script, snapshot};
use crate::docker;

/// The workspace root in every container.
const ROOT: &str = "/attached";

/// Containers of somebody else, used by one trial after the other.
#[derive(Clone, Debug)]
pub(crate) struct AttachedFixture {
    recipe: Recipe,
    idle: Arc<Mutex<Vec<ContainerAsync<GenericImage>>>>,
    used: Arc<Mutex<HashMap<String, ContainerAsync<GenericImage>>>>,
}

impl AttachedFixture {
    pub(crate) fn new(recipe: Recipe) -> Self {
        AttachedFixture { recipe, idle: Arc::default(), used: Arc::default() }
    }

    /// Removes the containers.
    pub(crate) async fn end(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for container in idle {
            if let Err(error) = container.rm().await {
                eprintln!("removing a container: {error}");
            }
        }
    }

    async fn container(&self) -> ContainerAsync<GenericImage> {
        engine().await;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(container) = idle {
            return container;
        }
        let (name, tag) = self.recipe.image.split_once(':').expect("an image with a tag");
        let image = GenericImage::new(name, tag).with_cmd(["sleep", "2000000000"]).with_network("none");
        let container = image.start().await.expect("a container");
        script(&self.recipe, container.id(), "0:0", &format!("mkdir {ROOT}"), b"").await;
        container
    }
}

#[async_trait]
impl Fixture for AttachedFixture {
    async fn open(&self) -> Site {
        let container = self.container().await;
        let id = container.id().to_owned();
        prepare(&self.recipe, &id, ROOT).await;
        let options = AttachOptions::default().root(ROOT);
        let attached = ContainerWorkspace::attach(&engine().await, &id, options).await;
        let workspace = attached.unwrap_or_else(|error| panic!("attaching: {error}"));
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), container);
        Site::new(Arc::new(workspace), OUTSIDE, id)
    }

    async fn release(&self, site: Site, _: bool) {
        let closed = site.workspace.close().await;
        let container = self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&site.key);
        let state = docker::must(&["inspect", "-f", "{{.State.Status}} {{.RestartCount}}", &site.key], b"").await;
        assert_eq!(state.trim(), "running 0", "closing leaves the container as it was");
        closed.expect("the workspace closes");
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(container);
    }

    fn ids(&self) -> (u32, u32) {
        self.recipe.ids()
    }

    async fn plant(&self, site: &Site, path: &str, data: &[u8]) {
        plant(&self.recipe, &site.key, path, data).await;
    }

    async fn snapshot(&self, site: &Site, path: &str) -> String {
        snapshot(&self.recipe, &site.key, path).await
    }

    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool {
        give_away(&self.recipe, &site.key, path, uid).await
    }

    async fn alive(&self, site: &Site, marker: &str) -> usize {
        docker::alive(&site.key, marker).await
    }

    fn big_file(&self) -> u64 {
        96 << 20
    }

    fn concurrent_execs(&self) -> usize {
        self.recipe.concurrent_execs
    }
}
