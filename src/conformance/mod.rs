//! The public conformance suite: what every [`Workspace`](crate::Workspace) keeps, as code.
//!
//! **It deletes data, floods output, kills processes and tries to break out of the workspace.** Run it only
//! against workspaces that were made for it. It is not covered by semantic versioning: any release may add,
//! rename or sharpen a case.
//!
//! Each behaviour is one function named after it. A backend implements [`Fixture`] and runs every
//! case of [`cases`] by [`Case::check`]. A workspace that lacks a capability is not let off: a
//! case that needs it then checks that the operation is refused as
//! [`Error::Unsupported`](crate::Error::Unsupported).

#[macro_use]
mod case;
mod fixture;
mod place;
mod tarball;

pub mod archive_in;
pub mod archive_out;
pub mod archive_refusals;
pub mod cancel;
pub mod close;
pub mod concurrency;
pub mod details;
pub mod environment;
pub mod exec;
pub mod leftovers;
pub mod limits;
pub mod links;
pub mod listing;
pub mod metadata;
pub mod names;
pub mod odd_bytes;
pub mod process;
pub mod process_end;
pub mod races;
pub mod read;
pub mod spawn_errors;
pub mod streams;
pub mod timeouts;
pub mod tree;
pub mod tty;
pub mod write;
pub mod write_failures;

pub use case::{Case, Mode, Need, cases};
pub use fixture::{Fixture, Site};
pub use place::{Place, Ran};
