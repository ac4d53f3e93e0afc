//! `completions`: a script for a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::app::Cli;
use crate::cli::context::Context;
use crate::cli::status::{self, Status};

/// Print a completion script for a shell.
#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Does it.
pub(crate) fn completions(args: CompletionsArgs, context: &Context) -> anyhow::Result<Status> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    context.printer.bytes(&script)?;
    Ok(status::OK)
}
