//! The contract of a workspace, kept by whichever way into the container was chosen.

use async_trait::async_trait;

use super::workspace::ContainerWorkspace;
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::descriptor::{Descriptor, Details};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;
use crate::workspace::{Starter, Workspace};

#[async_trait]
impl Workspace for ContainerWorkspace {
    fn descriptor(&self) -> Descriptor {
        self.access().descriptor()
    }

    fn details(&self) -> Details {
        self.access().details()
    }

    fn capabilities(&self) -> Capabilities {
        self.access().capabilities()
    }

    fn env(&self) -> Environment {
        self.access().env()
    }

    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
        self.access().open(path, options).await
    }

    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        self.access().metadata(path).await
    }

    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        self.access().symlink_metadata(path).await
    }

    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
        self.access().read_link(path).await
    }

    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
        self.access().read_dir(path, options).await
    }

    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written> {
        self.access().write(path, content, options).await
    }

    async fn remove(&self, path: &WorkspacePath) -> Result<()> {
        self.access().remove(path).await
    }

    async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
        self.access().remove_all(path).await
    }

    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        self.access().rename(from, to).await
    }

    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
        self.access().create_dir_all(path).await
    }

    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
        self.access().set_mode(path, mode).await
    }

    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
        self.access().copy(from, to).await
    }

    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport> {
        self.access().put_archive(dir, tar, options).await
    }

    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader> {
        self.access().get_archive(path, options).await
    }

    async fn exec(&self, command: Command) -> Result<Output> {
        self.access().exec(command).await
    }

    fn as_starter(&self) -> Option<&dyn Starter> {
        self.access().as_starter().map(|_| self as &dyn Starter)
    }

    async fn close(&self) -> Result<()> {
        self.access().close().await
    }
}

#[async_trait]
impl Starter for ContainerWorkspace {
    async fn start(&self, command: Command) -> Result<Process> {
        let Some(starter) = self.access().as_starter() else {
            return Err(Error::Unsupported {
                operation: "starting a process".to_owned(),
                backend: crate::Kind::Container,
                reason: "nothing in the container can end it".to_owned(),
            });
        };
        starter.start(command).await
    }
}
