//! Workspaces in a directory of this machine.
//!
//! Files go through one confined directory handle, and nothing below the root is named by a path
//! of this process. Each command runs under a supervisor that outlives neither its owner nor what
//! the command started.

mod children;
mod clock;
mod descendants;
mod driver;
mod exec;
mod feed;
mod forget;
mod leader;
mod list;
mod pack;
mod patience;
mod pidfd;
mod processes;
mod pump;
mod raw_file;
mod read;
mod registry;
mod remove_all;
mod replacement;
mod root;
mod scratch_dir;
mod sorted_dir;
mod spawn;
mod start;
mod stdout;
mod stream;
mod supervised;
mod supervisor;
mod target;
mod tasks;
mod terminal;
mod tree;
mod unpack;
mod user;
mod workspace;
mod write;

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

pub use workspace::LocalWorkspace;
