//! Reaching into a container through a helper that serves it over one attached stream.
//!
//! The helper is the container's first process. The stream is its standard input, which the engine
//! closes when whoever attached to it has let go or died; then the helper ends, and with it the container.

mod access;
mod connect;
mod explain;
mod liveness;
mod process;
mod program;
mod reader;
mod stream;
mod volume;

pub(crate) use access::HelperAccess;
pub(crate) use connect::{attach, connect};
pub(crate) use program::{Program, find};
pub(crate) use volume::Volume;
