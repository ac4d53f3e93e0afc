//! The command line: a thin layer over the library.
//!
//! Argument structs only parse; each subcommand is a function that takes what it needs; one
//! printer decides what is shown.

mod app;
mod commands;
mod context;
mod failure;
mod json;
mod logging;
mod making;
mod open;
mod parse;
mod printer;
mod progress;
mod session;
mod signals;
mod status;
mod stdio;
mod transfer;

pub(crate) use app::main;
