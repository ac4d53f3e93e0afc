//! What can go wrong, told apart.

mod classify;
mod convert;
mod kinds;
mod variants;

pub use kinds::{GoneReason, ImageErrorKind, SpawnErrorKind};
pub use variants::{BoxError, Error, Result};
