//! A workspace that is a directory on this machine.

mod children;
mod clock;
mod descendants;
mod driver;
mod exec;
mod forget;
mod leader;
mod pidfd;
mod processes;
mod pump;
mod registry;
mod spawn;
mod start;
mod stdout;
mod supervised;
mod supervisor;
mod terminal;
mod user;

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod test_support;
