//! The workspace.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
#[cfg(feature = "helper")]
use hyper::Method;
use tokio::sync::Mutex;

#[cfg(feature = "helper")]
use super::connection::Call;
use super::connection::Connection;
use super::{exec, files, process};
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::descriptor::{Descriptor, Details};
use crate::environment::Environment;
use crate::error::Result;
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;
use crate::remote::limits::LAST_FRAMES;
use crate::workspace::{Starter, Workspace};

/// A workspace that a [`Server`](crate::remote::Server) has, over one connection.
///
/// When the connection is lost, or the server does not answer for 15 s, every call is
/// [`Error::Gone`](crate::Error::Gone), and the server ends what this client started. Then
/// [`close`](Workspace::close) reports the same, because nothing tells when that is done.
pub struct RemoteWorkspace {
    pub(super) connection: Arc<Connection>,
    descriptor: Descriptor,
    details: Details,
    capabilities: Capabilities,
    env: Environment,
    /// Whether the server has released everything, held while somebody waits for that.
    released: Mutex<bool>,
}

impl RemoteWorkspace {
    pub(super) fn new(
        connection: Arc<Connection>,
        descriptor: Descriptor,
        details: Details,
        capabilities: Capabilities,
        env: Environment,
    ) -> Self {
        let released = Mutex::new(false);
        RemoteWorkspace { connection, descriptor, details, capabilities, env, released }
    }

    /// Returns when the server has answered.
    #[cfg(feature = "helper")]
    pub(crate) async fn ping(&self) -> Result<()> {
        let answer: Result<serde_json::Value> = self.connection.ask(Call::new(Method::GET, "/v1/ping")).await;
        answer.map(drop)
    }

    /// Ends the connection for this reason: every call is [`Error::Gone`](crate::Error::Gone).
    #[cfg(feature = "helper")]
    pub(crate) fn give_up(&self, why: &str) {
        self.connection.life.lose(why);
    }
}

impl fmt::Debug for RemoteWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteWorkspace").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

impl Drop for RemoteWorkspace {
    fn drop(&mut self) {
        self.connection.life.lose("the workspace was dropped");
    }
}

#[async_trait]
impl Workspace for RemoteWorkspace {
    fn descriptor(&self) -> Descriptor {
        self.descriptor.clone()
    }

    fn details(&self) -> Details {
        self.details.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn env(&self) -> Environment {
        self.env.clone()
    }

    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
        files::open(&self.connection, path, options).await
    }

    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        files::metadata(&self.connection, path, true).await
    }

    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        files::metadata(&self.connection, path, false).await
    }

    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
        files::read_link(&self.connection, path).await
    }

    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
        files::read_dir(&self.connection, path, options).await
    }

    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written> {
        files::write(&self.connection, path, content, options).await
    }

    async fn remove(&self, path: &WorkspacePath) -> Result<()> {
        files::remove(&self.connection, path, false).await
    }

    async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
        files::remove(&self.connection, path, true).await
    }

    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        files::rename(&self.connection, from, to).await
    }

    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
        files::create_dir_all(&self.connection, path).await
    }

    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
        files::set_mode(&self.connection, path, mode).await
    }

    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
        files::copy(&self.connection, from, to).await
    }

    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport> {
        files::put_archive(&self.connection, dir, tar, options).await
    }

    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader> {
        files::get_archive(&self.connection, path, options).await
    }

    async fn exec(&self, command: Command) -> Result<Output> {
        command.check_exec()?;
        exec::exec(&self.connection, command).await
    }

    fn as_starter(&self) -> Option<&dyn Starter> {
        self.capabilities.start.then_some(self)
    }

    async fn close(&self) -> Result<()> {
        self.connection.mark_closed();
        let mut released = self.released.lock().await;
        if *released {
            return Ok(());
        }
        self.connection.close_session().await?;
        // How processes ended is on its way; a reader that stands still would hold it up for ever.
        self.connection.tasks.close();
        let _ = tokio::time::timeout(LAST_FRAMES, self.connection.tasks.wait()).await;
        self.connection.life.lose("the workspace was closed");
        *released = true;
        Ok(())
    }
}

#[async_trait]
impl Starter for RemoteWorkspace {
    async fn start(&self, command: Command) -> Result<Process> {
        command.check_start()?;
        process::start(&self.connection, command).await
    }
}
