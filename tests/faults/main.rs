//! What happens to an operation when its container or engine is lost in the middle of it: the right typed error
//! within 10 s, and never something that looks like the result of a command.
//!
//! Every trial has a container of its own, made on a second engine that the test starts in namespaces of its own,
//! because the machine's engine must not be stopped.

mod engine;
mod faults;
mod full_disk;
mod operations;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use agentworkspace::container::Access;
use engine::PrivateEngine;
use faults::Fault;
use operations::Operation;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They wait most of the time.
    arguments.test_threads.get_or_insert(4);
    if arguments.list {
        return libtest_mimic::run(&arguments, trials(None)).exit_code();
    }
    let engine = match PrivateEngine::start() {
        Ok(engine) => Arc::new(engine),
        Err(error) => {
            eprintln!("error: the second engine could not be started: {error:#}");
            eprintln!("hint: run as root after `make engine images`");
            return ExitCode::FAILURE;
        }
    };
    libtest_mimic::run(&arguments, trials(Some(&engine))).exit_code()
}

/// One trial for each way into a container, fault and operation. Those that stop the engine run last and one after the other.
fn trials(engine: Option<&Arc<PrivateEngine>>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (access, way) in [(Access::Engine, "by_engine"), (Access::Helper, "by_helper")] {
        for fault in Fault::ALL {
            for operation in Operation::ALL {
                let engine = engine.cloned();
                let name = format!("{way}::{}::{}", fault.name(), operation.name());
                trials.push(Trial::test(name, move || {
                    let engine = engine.ok_or("no engine")?;
                    let checked = faults::check(&engine, access, fault, operation);
                    checked.map_err(|error| format!("{error:#}").into())
                }));
            }
        }
        for operation in full_disk::Operation::ALL {
            let engine = engine.cloned();
            trials.push(Trial::test(format!("{way}::full_disk::{}", operation.name()), move || {
                let engine = engine.ok_or("no engine")?;
                full_disk::check(&engine, access, operation).map_err(|error| format!("{error:#}").into())
            }));
        }
    }
    trials
}
