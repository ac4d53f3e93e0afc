//! Workspaces in a directory of this machine.
//!
//! Files go through one confined directory handle, and nothing below the root is named by a path
//! of this process.

mod feed;
mod list;
mod pack;
mod read;
mod remove_all;
mod root;
mod stream;
mod tar;
mod target;
mod tasks;
mod temp;
mod tree;
mod unpack;
mod workspace;
mod write;

#[cfg(test)]
mod tests;

pub use workspace::LocalWorkspace;
