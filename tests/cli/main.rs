//! The built command, over directories of this machine and over containers.

mod containers;
mod copying;
mod doctor;
mod files;
mod lifecycle;
mod readme;
mod run;
mod signals;
mod support;
