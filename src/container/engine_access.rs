//! The contract of a workspace, kept by the engine's own calls.

use std::sync::Arc;

use async_trait::async_trait;

use super::close::Closing;
use super::shared::Shared;
use super::{exec, files, process};
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::descriptor::{Descriptor, Details, Kind};
use crate::environment::Environment;
use crate::error::Result;
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;
use crate::workspace::{Starter, Workspace};

/// A container by nothing but the engine's calls.
#[derive(Debug)]
pub(crate) struct EngineAccess {
    shared: Arc<Shared>,
    closing: Closing,
    reference: String,
    details: Details,
}

impl EngineAccess {
    /// `reference` is the digest of what the container was made from.
    pub(crate) fn new(shared: Arc<Shared>, closing: Closing, reference: String, details: Details) -> Self {
        EngineAccess { shared, closing, reference, details }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

#[async_trait]
impl Workspace for EngineAccess {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new(Kind::Container, self.reference.clone(), self.shared.root.clone())
    }

    fn details(&self) -> Details {
        self.details.clone()
    }

    fn capabilities(&self) -> Capabilities {
        // A shell in the container sends the signals and says how a command ended.
        let shell = self.shared().shell.is_some();
        Capabilities {
            start: shell,
            tty: shell,
            user: true,
            kill: shell,
            kill_is_complete: false,
            exact_signals: false,
            // A script enters the directory step by step. The engine takes a path, whose directories must
            // not be swapped until it has used it.
            command_dir_beside_processes: shell,
            // Engines close the output of an exec whose own process has exited.
            leftover_output: false,
            ..files::capabilities(self.shared())
        }
    }

    fn env(&self) -> Environment {
        self.shared().env.clone()
    }

    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
        files::open(self.shared(), path, options).await
    }

    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        files::metadata(self.shared(), path).await
    }

    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        files::symlink_metadata(self.shared(), path).await
    }

    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
        files::read_link(self.shared(), path).await
    }

    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
        files::read_dir(self.shared(), path, options).await
    }

    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written> {
        files::write(self.shared(), path, content, options).await
    }

    async fn remove(&self, path: &WorkspacePath) -> Result<()> {
        files::remove(self.shared(), path).await
    }

    async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
        files::remove_all(self.shared(), path).await
    }

    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        files::rename(self.shared(), from, to).await
    }

    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
        files::create_dir_all(self.shared(), path).await
    }

    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
        files::set_mode(self.shared(), path, mode).await
    }

    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
        files::copy(self.shared(), from, to).await
    }

    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport> {
        files::put_archive(self.shared(), dir, tar, options).await
    }

    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader> {
        files::get_archive(self.shared(), path, options).await
    }

    async fn exec(&self, command: Command) -> Result<Output> {
        exec::exec(self.shared(), command).await
    }

    fn as_starter(&self) -> Option<&dyn Starter> {
        self.shared().shell.is_some().then_some(self as &dyn Starter)
    }

    async fn close(&self) -> Result<()> {
        self.closing.close().await
    }
}

#[async_trait]
impl Starter for EngineAccess {
    async fn start(&self, command: Command) -> Result<Process> {
        process::start(self.shared(), command).await
    }
}
