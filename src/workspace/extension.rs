//! What every workspace can do because it keeps the contract.

use super::contract::Workspace;
use crate::descriptor::Kind;
use crate::error::Result;
use crate::files::{DirEntry, ListOptions, OpenOptions};
use crate::path::WorkspacePath;

/// Convenience over any [`Workspace`], `dyn` ones included.
pub trait WorkspaceExt: Workspace {
    /// The whole of a regular file of at most `max_size` bytes.
    ///
    /// # Errors
    ///
    /// Those of [`Workspace::open`]; [`Error::TooLarge`](crate::Error::TooLarge) also for a file that
    /// grows while it is read.
    ///
    /// # Cancel safety
    ///
    /// As for every operation of a [`Workspace`].
    fn read(&self, path: &WorkspacePath, max_size: u64) -> impl Future<Output = Result<Vec<u8>>> + Send {
        async move { self.open(path, OpenOptions::default().max_size(max_size)).await?.read_all().await }
    }

    /// Whether a name stands for something, following links. A name outside is an error, not
    /// `false`.
    ///
    /// # Errors
    ///
    /// Those of [`Workspace::metadata`] but [`Error::NotFound`](crate::Error::NotFound).
    ///
    /// # Cancel safety
    ///
    /// As for every operation of a [`Workspace`].
    fn exists(&self, path: &WorkspacePath) -> impl Future<Output = Result<bool>> + Send {
        async move {
            match self.metadata(path).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_not_found() => Ok(false),
                Err(error) => Err(error),
            }
        }
    }

    /// All entries of a directory, sorted, in memory, however many they are.
    ///
    /// # Errors
    ///
    /// Those of [`Workspace::read_dir`].
    ///
    /// # Cancel safety
    ///
    /// As for every operation of a [`Workspace`].
    fn read_dir_all(&self, path: &WorkspacePath) -> impl Future<Output = Result<Vec<DirEntry>>> + Send {
        async move { Ok(self.read_dir(path, ListOptions::default().limit(usize::MAX)).await?.entries) }
    }

    /// The kind of workspace.
    fn kind(&self) -> Kind {
        self.descriptor().kind
    }
}

impl<W: Workspace + ?Sized> WorkspaceExt for W {}
