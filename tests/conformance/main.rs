//! Runs the conformance suite over every backend: a trial is `<target>::<area>::<behaviour>`.
//!
//! A trial that measures memory, and every trial of another user, runs in a process of its own:
//! this program again, with the trial's name and [`again::CHILD`] set.

mod again;
mod attached;
mod container;
mod docker;
mod engine_fixture;
mod leftovers;
mod local;
mod panics;
mod recipe;
mod remote;
mod targets;
mod trickle;

use std::process::ExitCode;
use std::sync::Arc;

use agentworkspace::conformance::{Case, Mode, cases};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use targets::Target;

fn main() -> ExitCode {
    // Modes must be what was asked for whatever the umask is, so it is a hostile one.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    panics::remember();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(4);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let targets = targets::all();
    let trials = targets.iter().flat_map(|target| trials(target, &runtime)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    runtime.block_on(async {
        for target in &targets {
            target.end().await;
        }
    });
    let left = leftovers::find();
    for line in &left {
        eprintln!("left behind: {line}");
    }
    if conclusion.has_failed() || !left.is_empty() { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// Every case over one target.
fn trials(target: &Target, runtime: &Arc<Runtime>) -> Vec<Trial> {
    let trial = |case: &'static Case| {
        let name = format!("{}::{}::{}", target.name, case.area, case.name);
        let (target, runtime) = (target.clone(), runtime.clone());
        Trial::test(name.clone(), move || run(&target, case, &name, &runtime))
    };
    cases().iter().map(trial).collect()
}

/// Runs a case, and over an engine once more if it fails: an engine on a busy machine refuses calls
/// that it takes the next moment. Both failures are reported, and so is a second try that passes.
fn run(target: &Target, case: &Case, name: &str, runtime: &Runtime) -> Result<(), Failed> {
    let first = once(target, case, name, runtime);
    // What leads outside once has led outside, whatever comes of a second try.
    if first.is_ok() || case.area == "races" || !target.is_engine() || again::is_child() {
        return first;
    }
    let second = once(target, case, name, runtime);
    if second.is_ok() {
        eprintln!("{name}: passed on the second try\n");
    }
    second
}

fn once(target: &Target, case: &Case, name: &str, runtime: &Runtime) -> Result<(), Failed> {
    let apart = target.user.is_some() || case.mode == Mode::Alone;
    let result = if apart && !again::is_child() {
        again::run(name, target.user)
    } else {
        panics::forget();
        runtime.block_on(case.check(target.fixture.clone())).map_err(panics::explain)
    };
    // At once, because the whole run takes minutes and its own report comes at the end.
    result.map_err(|text| {
        eprintln!("{name}: {text}\n");
        Failed::from(text)
    })
}
