//! Workspaces in a directory of this machine.
//!
//! Files go through one confined directory handle, and nothing below the root is named by a path
//! of this process.

mod feed;
mod list;
mod read;
mod remove_all;
mod root;
mod target;
mod tasks;
mod temp;
mod tree;
mod workspace;
mod write;

pub use workspace::LocalWorkspace;
