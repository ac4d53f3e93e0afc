//! The fixture of `RemoteWorkspace`: a server over a local directory, reached in several ways.

use std::sync::Arc;

use agentworkspace::Workspace;
use agentworkspace::conformance::{Fixture, Site};
use agentworkspace::remote::{ConnectOptions, FreshSource, RemoteWorkspace, Server};
use async_trait::async_trait;

use crate::local::LocalFixture;
use crate::trickle::Trickle;

/// How a client reaches the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Through memory.
    Memory,
    /// Through memory in small pieces of many sizes, with windows of a few bytes.
    Tiny,
}

/// Directories of this machine, each behind a server of its own.
#[derive(Debug)]
pub(crate) struct RemoteFixture {
    way: Way,
    local: LocalFixture,
}

impl RemoteFixture {
    pub(crate) fn new(way: Way) -> Self {
        RemoteFixture { way, local: LocalFixture }
    }

    async fn reach(&self, server: Server) -> RemoteWorkspace {
        let connected = match self.way {
            Way::Memory => {
                let (ours, theirs) = tokio::io::duplex(256 << 10);
                tokio::spawn(async move { server.serve(theirs).await });
                RemoteWorkspace::connect(ours, "memory").await
            }
            Way::Tiny => {
                let (ours, theirs) = tokio::io::duplex(4096);
                let server = server.window(1000);
                tokio::spawn(async move { server.serve(Trickle::new(theirs)).await });
                RemoteWorkspace::connect(Trickle::new(ours), ConnectOptions::new("memory").window(1000)).await
            }
        };
        connected.expect("a connection")
    }
}

#[async_trait]
impl Fixture for RemoteFixture {
    async fn open(&self) -> Site {
        let Site { workspace, outside, key, .. } = self.local.open().await;
        let server = Server::new(FreshSource::new(move || {
            let workspace: Arc<dyn Workspace> = workspace.clone();
            async move { Ok(workspace) }
        }));
        Site::new(Arc::new(self.reach(server).await), outside, key)
    }

    async fn release(&self, site: Site, spent: bool) {
        self.local.release(site, spent).await;
    }

    fn ids(&self) -> (u32, u32) {
        self.local.ids()
    }

    async fn plant(&self, site: &Site, path: &str, data: &[u8]) {
        self.local.plant(site, path, data).await;
    }

    async fn snapshot(&self, site: &Site, path: &str) -> String {
        self.local.snapshot(site, path).await
    }

    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool {
        self.local.give_away(site, path, uid).await
    }

    async fn alive(&self, site: &Site, marker: &str) -> usize {
        self.local.alive(site, marker).await
    }

    fn big_file(&self) -> u64 {
        match self.way {
            Way::Memory => 256 << 20,
            Way::Tiny => 8 << 20,
        }
    }
}
