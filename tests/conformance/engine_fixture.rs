//! The fixture of every container, wherever it comes from.

use std::fmt::Debug;
use std::sync::Arc;

use agentworkspace::Workspace;
use agentworkspace::conformance::{Fixture, Site};
use async_trait::async_trait;

use crate::docker;
use crate::recipe::{OUTSIDE, Recipe};

/// Where workspaces over containers come from. A container serves one trial at a time, and the next
/// one after its root was emptied.
#[async_trait]
pub(crate) trait Supply: Debug + Send + Sync {
    /// A workspace that no other trial uses, its root empty, and the id of its container.
    async fn take(&self, recipe: &Recipe) -> (Arc<dyn Workspace>, String);

    /// Takes it back from a trial, which has closed or broken it if it is `spent`.
    async fn give_back(&self, workspace: Arc<dyn Workspace>, container: String, spent: bool);

    /// Removes what no trial will use any more.
    async fn end(&self);
}

#[derive(Clone, Debug)]
pub(crate) struct EngineFixture {
    recipe: Recipe,
    supply: Arc<dyn Supply>,
}

impl EngineFixture {
    pub(crate) fn new(recipe: Recipe, supply: Arc<dyn Supply>) -> Self {
        EngineFixture { recipe, supply }
    }
}

#[async_trait]
impl Fixture for EngineFixture {
    async fn open(&self) -> Site {
        let (workspace, container) = self.supply.take(&self.recipe).await;
        Site::new(workspace, OUTSIDE, container)
    }

    async fn release(&self, site: Site, spent: bool) {
        self.supply.give_back(site.workspace, site.key, spent).await;
    }

    fn shell(&self) -> Vec<String> {
        self.recipe.shell()
    }

    fn program(&self, name: &str) -> Vec<String> {
        self.recipe.program(name)
    }

    fn ids(&self) -> (u32, u32) {
        self.recipe.ids()
    }

    async fn plant(&self, site: &Site, path: &str, data: &[u8]) {
        self.recipe.plant(&site.key, path, data).await;
    }

    async fn snapshot(&self, site: &Site, path: &str) -> String {
        self.recipe.snapshot(&site.key, path).await
    }

    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool {
        self.recipe.give_away(&site.key, path, uid).await
    }

    async fn alive(&self, site: &Site, marker: &str) -> usize {
        docker::alive(&site.key, marker).await
    }

    fn root_on_tmpfs(&self) -> bool {
        self.recipe.root_on_tmpfs
    }

    fn big_file(&self) -> u64 {
        self.recipe.big_file
    }

    fn concurrent_execs(&self) -> usize {
        self.recipe.concurrent_execs
    }
}
