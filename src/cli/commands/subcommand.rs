//! Which subcommand runs.

use super::{
    close, completions, cp, create, diff, doctor, exec, inspect, list, ls, prune, read, rm, run, stat, write,
};
use crate::cli::context::Context;
use crate::cli::status::Status;

/// The subcommands.
#[derive(clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Run a command in a fresh workspace and remove that afterwards.
    Run(Box<run::RunArgs>),
    /// Make a container that stays until it is closed, and print its id.
    Create(Box<create::CreateArgs>),
    /// List the containers that agentworkspace made.
    List(list::ListArgs),
    /// Show what a workspace is: image, engine, limits, capabilities.
    Inspect(inspect::InspectArgs),
    /// Run a command in a workspace.
    Exec(Box<exec::ExecArgs>),
    /// Print a file of a workspace.
    Read(read::ReadArgs),
    /// Write a file of a workspace from standard input or a file.
    Write(write::WriteArgs),
    /// List a directory of a workspace.
    Ls(ls::LsArgs),
    /// Show what a name in a workspace stands for.
    Stat(stat::StatArgs),
    /// Remove files, links or directories of a workspace.
    Rm(rm::RmArgs),
    /// Copy a file or directory between this machine and a workspace.
    Cp(cp::CpArgs),
    /// List what was added (A), modified (M) and deleted (D) in a container.
    Diff(diff::DiffArgs),
    /// Remove containers that `create` or `run --keep` made.
    Close(close::CloseArgs),
    /// Remove what dead processes left in the engine.
    Prune(prune::PruneArgs),
    /// Check what works here, and say how to mend what does not.
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
}

impl Subcommand {
    /// Whether its results are JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Subcommand::Run(args) => args.json,
            Subcommand::Create(args) => args.json,
            Subcommand::List(args) => args.json,
            Subcommand::Exec(args) => args.json,
            Subcommand::Ls(args) => args.json,
            Subcommand::Stat(args) => args.json,
            Subcommand::Diff(args) => args.json,
            Subcommand::Close(args) => args.json,
            Subcommand::Prune(args) => args.json,
            Subcommand::Doctor(args) => args.json,
            Subcommand::Inspect(_) => true,
            Subcommand::Read(_)
            | Subcommand::Write(_)
            | Subcommand::Rm(_)
            | Subcommand::Cp(_)
            | Subcommand::Completions(_) => false,
        }
    }

    /// Whether its exit status is that of a command in the workspace.
    pub(crate) fn runs_a_command(&self) -> bool {
        matches!(self, Subcommand::Run(_) | Subcommand::Exec(_))
    }

    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<Status> {
        match self {
            Subcommand::Run(args) => run::run(*args, context).await,
            Subcommand::Create(args) => create::create(*args, context).await,
            Subcommand::List(args) => list::list(args, context).await,
            Subcommand::Inspect(args) => inspect::inspect(args, context).await,
            Subcommand::Exec(args) => exec::exec(*args, context).await,
            Subcommand::Read(args) => read::read(args, context).await,
            Subcommand::Write(args) => write::write(args, context).await,
            Subcommand::Ls(args) => ls::ls(args, context).await,
            Subcommand::Stat(args) => stat::stat(args, context).await,
            Subcommand::Rm(args) => rm::rm(args, context).await,
            Subcommand::Cp(args) => cp::cp(args, context).await,
            Subcommand::Diff(args) => diff::diff(args, context).await,
            Subcommand::Close(args) => close::close(args, context).await,
            Subcommand::Prune(args) => prune::prune(args, context).await,
            Subcommand::Doctor(args) => doctor::doctor(args, context).await,
            Subcommand::Completions(args) => completions::completions(args, context),
        }
    }
}
