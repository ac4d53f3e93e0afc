//! What a person writes after an option, as values.

mod duration;
mod endpoint;
mod env;
mod mode;
mod mount;
mod network;
mod pair;
mod size;

pub(crate) use duration::timeout;
pub(crate) use endpoint::Endpoint;
pub(crate) use env::environment;
pub(crate) use mode::mode;
pub(crate) use mount::mount;
pub(crate) use network::network;
pub(crate) use pair::{CollectSpec, CopySpec, Place};
pub(crate) use size::size;
