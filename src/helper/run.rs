//! The helper as a process.

use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::signal::unix::{SignalKind, signal};

use super::orphans::{self, Wake};
use super::serve::serve;

/// Runs the helper until its input ends; what it started ends with it.
pub fn run() -> ExitCode {
    // What runs beside it under the same user must not trace it or take its pipes. Where the kernel
    // cannot have that, the container is as safe as without a helper.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let (wake, wakes) = mpsc::channel();
    // The first thread is left to the orphans; everything is started from this other one.
    let serving = std::thread::spawn(move || {
        let served = run_server(wake.clone());
        // The receiver lives until this arrives.
        let _ = wake.send(Wake::End);
        served
    });
    orphans::reap(&wakes);
    match serving.join() {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("agentworkspace-helper: {error}");
            ExitCode::FAILURE
        }
        Err(_panicked) => ExitCode::FAILURE,
    }
}

fn run_server(wake: Sender<Wake>) -> crate::Result<()> {
    let failed = |error| crate::Error::from_io("start", "the helper", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let served = runtime.block_on(async {
        let mut children = signal(SignalKind::child()).map_err(failed)?;
        tokio::spawn(
            async move { while children.recv().await.is_some() && wake.send(Wake::Child).is_ok() {} },
        );
        serve().await
    });
    // A thread may block in a read of a file for ever.
    runtime.shutdown_background();
    served
}
