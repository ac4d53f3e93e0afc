//! The file operations of a container workspace, by the engine's own calls.
//!
//! Where the container has a POSIX shell each operation on single files is one script in it, run as the
//! workspace's user. Trees go by the engine's archive calls, made while the container is paused; without a
//! shell single files do, too, which can do less: [`capabilities`] says what.

mod arrange;
mod capabilities;
mod change;
mod engine_files;
mod engine_walk;
mod get_archive;
mod list;
mod lookup;
mod paused;
mod put_archive;
mod read;
mod script;
mod spool;
mod status;
mod tar_emit;
mod tar_index;
#[cfg(test)]
mod tests;
mod transfer;
mod tree_plan;
mod upload_base;
mod write;

pub(crate) use capabilities::capabilities;
pub(crate) use change::{create_dir_all, remove, remove_all, rename, set_mode};
pub(crate) use engine_walk::{Last, resolve};
pub(crate) use get_archive::get_archive;
pub(crate) use list::read_dir;
pub(crate) use lookup::{metadata, read_link, symlink_metadata};
pub(crate) use paused::{Pause, starts_are_done};
pub(crate) use put_archive::put_archive;
pub(crate) use read::open;
pub(crate) use write::{copy, write};
