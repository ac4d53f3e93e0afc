//! Files and trees between this machine and a workspace.

mod get;
mod left_out;
mod put;

pub(crate) use get::{get, get_to_stdout};
pub(crate) use put::{put, put_stdin};
