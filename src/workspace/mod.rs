//! What a workspace is: the contract, conveniences over it, and its smart pointers.

mod contract;
mod extension;
mod forwarding;

pub use contract::{Starter, Workspace, start};
pub use extension::WorkspaceExt;
