//! Where the workspaces of sessions come from.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::error::Result;
use crate::workspace::Workspace;

/// Where the workspaces of a server's sessions come from: one for each client that connects.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// A workspace for a new session.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the client goes away meanwhile, and must then leave nothing.
    async fn open(&self) -> Result<Arc<dyn Workspace>>;

    /// Lets go of the workspace of a session that has ended. As [`Workspace::close`], it may be
    /// called again after an error or after having been dropped.
    async fn release(&self, workspace: &dyn Workspace) -> Result<()>;
}

/// A workspace of its own for every session, closed when the session ends.
pub struct FreshSource(Box<Open>);

type Open = dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Workspace>>> + Send + Sync;

impl FreshSource {
    /// Workspaces that `open` makes.
    pub fn new<F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<dyn Workspace>>> + Send + 'static,
    {
        FreshSource(Box::new(move || Box::pin(open())))
    }
}

#[async_trait]
impl Source for FreshSource {
    async fn open(&self) -> Result<Arc<dyn Workspace>> {
        (self.0)().await
    }

    async fn release(&self, workspace: &dyn Workspace) -> Result<()> {
        workspace.close().await
    }
}

impl fmt::Debug for FreshSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshSource(..)")
    }
}

/// One workspace for all sessions, which see each other's files.
///
/// The end of a session ends its commands and processes, but what a command left behind goes on
/// until the workspace is closed, by whoever shares it.
#[derive(Debug)]
pub struct SharedSource(Arc<dyn Workspace>);

impl SharedSource {
    /// Shares `workspace`.
    pub fn new(workspace: Arc<dyn Workspace>) -> Self {
        SharedSource(workspace)
    }
}

#[async_trait]
impl Source for SharedSource {
    async fn open(&self) -> Result<Arc<dyn Workspace>> {
        Ok(self.0.clone())
    }

    async fn release(&self, _: &dyn Workspace) -> Result<()> {
        Ok(())
    }
}
