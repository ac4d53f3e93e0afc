//! The server: workspaces for whoever speaks the protocol at the other end of a byte stream.

mod batch;
mod connection;
mod exec;
mod files;
mod process;
mod respond;
mod route;
mod session;
mod sessions;
mod source;
mod streams;

pub(super) use respond::{METADATA, SESSION};
pub use sessions::Server;
pub use source::{FreshSource, SharedSource, Source};
