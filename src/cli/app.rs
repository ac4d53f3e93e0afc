//! From the arguments to an exit status.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use super::commands::Subcommand;
use super::context::Context;
use super::failure::{Interrupted, StdoutClosed};
use super::logging;
use super::printer::{Printer, Verbosity};
use super::signals::Interrupts;
use super::status::{self, Status};

/// How long blocking work that nothing waits for may delay the exit.
const SHUTDOWN: Duration = Duration::from_millis(100);

/// A place for an AI agent to act: a file tree, processes, a working directory and an environment,
/// on this machine or in a container.
///
/// A TARGET is `local:DIR`, `image:REF` (a fresh container, removed afterwards) or
/// `container:NAME_OR_ID` (a running one, left as it was).
#[derive(Parser)]
#[command(name = "agentworkspace", version, after_help = status::HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Say nothing but errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say what is done; twice for the log of every operation. AGENTWORKSPACE_LOG says it in detail.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    #[command(subcommand)]
    subcommand: Subcommand,
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let verbosity = match (cli.quiet, cli.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, _) => Verbosity::Verbose,
    };
    let printer = Printer::new(verbosity, cli.subcommand.json());
    if let Err(reason) = logging::install(verbosity, cli.verbose) {
        printer.warning(reason);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.error(format_args!("failed to start: {error}"));
            return ExitCode::from(status::WORKSPACE);
        }
    };
    // What panicked has said so already, and its workspace was closed on the way here.
    let status = catch_unwind(AssertUnwindSafe(|| runtime.block_on(dispatch(cli.subcommand, printer))))
        .unwrap_or(status::WORKSPACE);
    // Standard input may be waited for by a thread that nothing can end.
    runtime.shutdown_timeout(SHUTDOWN);
    ExitCode::from(status)
}

async fn dispatch(subcommand: Subcommand, printer: Printer) -> Status {
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            printer.error(format_args!("failed to watch for signals: {error}"));
            return status::WORKSPACE;
        }
    };
    let of_failure =
        if subcommand.runs_a_command() { status::of_command_failure } else { status::of_failure };
    match subcommand.run(&Context { printer, interrupts }).await {
        Ok(status) => status,
        Err(failure) => {
            let silent = failure.is::<Interrupted>() || failure.is::<StdoutClosed>();
            if silent {
                printer.detail(&failure);
            } else {
                printer.failure(&failure);
            }
            of_failure(&failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
