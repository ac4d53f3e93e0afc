//! Workspaces in containers, through the Docker Engine API.
//!
//! This module owns the container's life. It reaches into it through a helper (`helper/`) or by the engine's own
//! calls (`engine_access.rs`). No bollard type leaves it.

mod accounts;
mod attach;
mod awake;
mod build;
mod build_context;
mod changes;
mod check;
mod cleanup;
mod close;
mod contract;
mod create;
#[cfg(feature = "helper")]
mod create_with_helper;
mod end;
mod engine;
mod engine_access;
mod engine_env;
mod events;
mod exec;
mod execs;
mod facts;
mod files;
#[cfg(feature = "helper")]
mod helper;
mod hijack;
mod image;
mod kill;
mod kill_queue;
mod labels;
mod launch;
mod limits;
mod lone_start;
mod lookup;
mod monitor;
mod options;
mod own_pauses;
mod patience;
mod pause;
mod paused_state;
mod plan;
mod prepare;
mod process;
mod progress;
mod prune;
mod pull;
mod pump;
mod raw_exec;
mod removal;
mod remove;
mod shared;
mod spawn_error;
mod spec;
mod start_line;
mod supervise;
mod sweep;
mod thaw;
mod workspace;

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod exec_tests;
#[cfg(all(test, feature = "helper"))]
mod helper_tests;
#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod lone_start_tests;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod test_container;

pub use build::BuildOptions;
pub use changes::{Change, ChangeKind, ChangeScope};
pub use engine::Engine;
pub use options::{
    Access, AttachOptions, ContainerOptions, DEFAULT_PIDS_LIMIT, DEFAULT_ROOT, HostPort, Mount, MountKind,
    Network, Profile, PullPolicy,
};
pub use progress::{Progress, Stage, Timings};
pub use prune::{ListedWorkspace, PruneOptions, PruneReport, list, prune};
pub use remove::remove;
pub use workspace::ContainerWorkspace;
