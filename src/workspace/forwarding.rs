//! Shared and boxed workspaces are workspaces. Under the lint no method can be forgotten.

use std::sync::Arc;

use async_trait::async_trait;

use super::contract::{Starter, Workspace};
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

macro_rules! forward_workspace {
    ($pointer:ty) => {
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<W: Workspace + ?Sized> Workspace for $pointer {
            fn descriptor(&self) -> Descriptor {
                (**self).descriptor()
            }
            fn details(&self) -> Details {
                (**self).details()
            }
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
            fn env(&self) -> Environment {
                (**self).env()
            }
            async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
                (**self).open(path, options).await
            }
            async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
                (**self).metadata(path).await
            }
            async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
                (**self).symlink_metadata(path).await
            }
            async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
                (**self).read_link(path).await
            }
            async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
                (**self).read_dir(path, options).await
            }
            async fn write(
                &self,
                path: &WorkspacePath,
                content: Content,
                options: WriteOptions,
            ) -> Result<Written> {
                (**self).write(path, content, options).await
            }
            async fn remove(&self, path: &WorkspacePath) -> Result<()> {
                (**self).remove(path).await
            }
            async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
                (**self).remove_all(path).await
            }
            async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
                (**self).rename(from, to).await
            }
            async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
                (**self).create_dir_all(path).await
            }
            async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
                (**self).set_mode(path, mode).await
            }
            async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
                (**self).copy(from, to).await
            }
            async fn put_archive(
                &self,
                dir: &WorkspacePath,
                tar: Content,
                options: UnpackOptions,
            ) -> Result<ArchiveReport> {
                (**self).put_archive(dir, tar, options).await
            }
            async fn get_archive(
                &self,
                path: &WorkspacePath,
                options: ArchiveOptions,
            ) -> Result<ArchiveReader> {
                (**self).get_archive(path, options).await
            }
            async fn exec(&self, command: Command) -> Result<Output> {
                (**self).exec(command).await
            }
            fn as_starter(&self) -> Option<&dyn Starter> {
                (**self).as_starter()
            }
            async fn close(&self) -> Result<()> {
                (**self).close().await
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<W: Starter + ?Sized> Starter for $pointer {
            async fn start(&self, command: Command) -> Result<Process> {
                (**self).start(command).await
            }
        }
    };
}

forward_workspace!(Arc<W>);
forward_workspace!(Box<W>);
