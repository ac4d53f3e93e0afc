//! The client: a workspace that a server has.

mod batch;
mod connect;
mod connection;
mod exec;
mod files;
mod options;
mod process;
mod workspace;

pub use batch::{BatchItem, BatchResult};
pub use options::ConnectOptions;
pub use workspace::RemoteWorkspace;
