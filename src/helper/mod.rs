//! The program that is put into a container and serves a directory of it over its standard input and
//! output, and how it is told what to serve.
//!
//! It needs nothing of the image: it is linked statically, reads the accounts itself and starts
//! commands without a shell.

#[cfg(feature = "helper-program")]
mod orphans;
#[cfg(feature = "helper-program")]
mod run;
#[cfg(feature = "helper-program")]
mod serve;
mod setup;
#[cfg(feature = "helper-program")]
mod stdio;

#[cfg(feature = "helper-program")]
pub use run::run;
#[cfg(feature = "helper")]
pub(crate) use setup::Setup;
