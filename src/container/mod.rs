//! Workspaces in containers, through the Docker Engine API.
//!
//! This module owns the container's life and reaches into it by the engine's own calls: archive
//! put and get for files, exec for commands. No bollard type leaves it.

mod accounts;
mod attach;
mod cleanup;
mod end;
mod engine;
mod events;
mod exec;
mod execs;
mod facts;
mod hijack;
mod kill;
mod launch;
mod lookup;
mod monitor;
mod options;
mod plan;
mod process;
mod pump;
mod raw_exec;
mod shared;
mod spawn_error;
mod start_line;
mod supervise;
mod workspace;

#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod test_container;

pub use engine::Engine;
pub use options::{
    Access, AttachOptions, ContainerOptions, HostPort, Mount, MountKind, Network, Profile, PullPolicy,
};
pub use workspace::ContainerWorkspace;
