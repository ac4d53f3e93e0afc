//! `doctor`: what works here, and how to mend what does not.

mod check;
mod command;
mod engine;
mod limits;
mod machine;

pub(crate) use command::{DoctorArgs, doctor};
