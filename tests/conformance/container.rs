//! Containers that `ContainerWorkspace::create` made.

use std::sync::{Arc, Mutex, PoisonError};

use agentworkspace::Workspace;
use agentworkspace::container::ContainerWorkspace;
use async_trait::async_trait;

use crate::docker;
use crate::engine_fixture::Supply;
use crate::recipe::{Recipe, engine};

/// The workspaces that no trial uses, each with the id of its container. One in use is nowhere but
/// in its trial, which may drop it.
#[derive(Debug, Default)]
pub(crate) struct Created {
    idle: Mutex<Vec<(Arc<dyn Workspace>, String)>>,
}

impl Created {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<dyn Workspace>, String)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Supply for Created {
    async fn take(&self, recipe: &Recipe) -> (Arc<dyn Workspace>, String) {
        let idle = self.idle().pop();
        let (workspace, container) = match idle {
            Some(idle) => idle,
            None => {
                let made = ContainerWorkspace::create(&engine().await, recipe.options(), |_| {}).await;
                let made = made.unwrap_or_else(|error| panic!("no container of {}: {error}", recipe.image));
                let container = made.container_id().to_owned();
                (Arc::new(made) as Arc<dyn Workspace>, container)
            }
        };
        recipe.prepare(&container, &workspace.descriptor().root).await;
        (workspace, container)
    }

    async fn give_back(&self, workspace: Arc<dyn Workspace>, container: String, spent: bool) {
        if !spent {
            self.idle().push((workspace, container));
            return;
        }
        workspace.close().await.expect("the workspace closes");
        let left = docker::run(&["inspect", &container], b"").await;
        assert!(!left.status.success(), "the container is there after the close");
    }

    async fn end(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for (workspace, _) in idle {
            if let Err(error) = workspace.close().await {
                eprintln!("closing a workspace: {error}");
            }
        }
    }
}
