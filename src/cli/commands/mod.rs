//! One file for each subcommand, and what several of them take.

mod close;
mod completions;
mod container_args;
mod cp;
mod create;
mod diff;
mod doctor;
mod exec;
mod exec_args;
mod inspect;
mod list;
mod ls;
mod outcome;
mod prune;
mod read;
mod rm;
mod run;
mod stat;
mod subcommand;
mod write;

pub(crate) use outcome::Durations;
pub(crate) use subcommand::Subcommand;
