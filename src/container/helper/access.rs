//! The contract of a workspace, kept by a helper in the container.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio_util::task::AbortOnDropHandle;

use super::explain::{end_of, guard};
use super::liveness;
use super::process::HelperProcess;
use super::reader::ExplainedReader;
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::container::close::Closing;
use crate::container::shared::Shared;
use crate::descriptor::{Descriptor, Details, Kind};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;
use crate::remote::RemoteWorkspace;
use crate::workspace::{Starter, Workspace};

/// A container by its helper.
#[derive(Debug)]
pub(crate) struct HelperAccess {
    shared: Arc<Shared>,
    remote: Arc<RemoteWorkspace>,
    closing: Closing,
    reference: String,
    details: Details,
    /// What notices that the helper stands still.
    _watching: AbortOnDropHandle<()>,
}

impl HelperAccess {
    /// `reference` is the digest of what the container was made from.
    pub(crate) fn new(
        shared: Arc<Shared>,
        remote: RemoteWorkspace,
        closing: Closing,
        reference: String,
        details: Details,
    ) -> Self {
        let remote = Arc::new(remote);
        let watching = tokio::spawn(liveness::watch(shared.clone(), remote.clone()));
        let watching = AbortOnDropHandle::new(watching);
        HelperAccess { shared, remote, closing, reference, details, _watching: watching }
    }
}

#[async_trait]
impl Workspace for HelperAccess {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new(Kind::Container, self.reference.clone(), self.shared.root.clone())
    }

    fn details(&self) -> Details {
        self.details.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.remote.capabilities()
    }

    fn env(&self) -> Environment {
        self.shared.env.clone()
    }

    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
        let reader = guard(&self.shared, self.remote.open(path, options)).await?;
        let metadata = reader.metadata();
        // It keeps to the options by itself.
        let reader = ExplainedReader::new(self.shared.clone(), reader);
        FileReader::new(path.as_str(), metadata, OpenOptions::default(), reader)
    }

    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        guard(&self.shared, self.remote.metadata(path)).await
    }

    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        guard(&self.shared, self.remote.symlink_metadata(path)).await
    }

    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
        guard(&self.shared, self.remote.read_link(path)).await
    }

    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
        guard(&self.shared, self.remote.read_dir(path, options)).await
    }

    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written> {
        guard(&self.shared, self.remote.write(path, content, options)).await
    }

    async fn remove(&self, path: &WorkspacePath) -> Result<()> {
        guard(&self.shared, self.remote.remove(path)).await
    }

    async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
        guard(&self.shared, self.remote.remove_all(path)).await
    }

    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        guard(&self.shared, self.remote.rename(from, to)).await
    }

    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
        guard(&self.shared, self.remote.create_dir_all(path)).await
    }

    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
        guard(&self.shared, self.remote.set_mode(path, mode)).await
    }

    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
        guard(&self.shared, self.remote.copy(from, to)).await
    }

    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport> {
        guard(&self.shared, self.remote.put_archive(dir, tar, options)).await
    }

    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader> {
        let reader = guard(&self.shared, self.remote.get_archive(path, options)).await?;
        Ok(ArchiveReader::new(ExplainedReader::new(self.shared.clone(), reader)))
    }

    async fn exec(&self, command: Command) -> Result<Output> {
        let began = Instant::now();
        let output = guard(&self.shared, self.remote.exec(command)).await?;
        let end = end_of(&self.shared, output.end, began).await;
        let Output { stdout, stderr, output_detached, duration, .. } = output;
        Ok(Output { output_detached, ..Output::new(end, stdout, stderr, duration) })
    }

    fn as_starter(&self) -> Option<&dyn Starter> {
        Some(self)
    }

    async fn close(&self) -> Result<()> {
        // What runs is asked to end before its container is taken away.
        match guard(&self.shared, self.remote.close()).await {
            Ok(()) | Err(Error::Closed | Error::Gone { .. }) => {}
            Err(error) => {
                tracing::warn!(container = self.shared.id, %error, "its helper did not end politely")
            }
        }
        self.closing.close().await
    }
}

#[async_trait]
impl Starter for HelperAccess {
    async fn start(&self, command: Command) -> Result<Process> {
        let began = Instant::now();
        let Some(starter) = self.remote.as_starter() else { return Err(Error::Closed) };
        let mut process = guard(&self.shared, starter.start(command)).await?;
        process.wrap(|inner| Arc::new(HelperProcess { shared: self.shared.clone(), inner, began }));
        Ok(process)
    }
}
