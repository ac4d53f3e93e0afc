//! Workspaces in containers, through the Docker Engine API.
//!
//! This module owns the container's life and reaches into it by the engine's own calls: archive
//! put and get for files, exec for commands. No bollard type leaves it.

mod accounts;
mod attach;
mod check;
mod engine;
mod events;
mod facts;
mod labels;
mod lookup;
mod monitor;
mod options;
mod pause;
mod progress;
mod pull;
mod raw_exec;
mod shared;
mod workspace;

pub use engine::Engine;
pub use options::{
    Access, AttachOptions, ContainerOptions, HostPort, Mount, MountKind, Network, Profile, PullPolicy,
};
pub use progress::{Progress, Stage, Timings};
pub use workspace::ContainerWorkspace;
