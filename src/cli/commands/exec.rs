//! `exec`: a command in a workspace.

use std::time::Instant;

use agentworkspace::{Target, Workspace};
use anyhow::Context as _;
use clap::Args;

use super::exec_args::CommandArgs;
use super::outcome::{Outcome, explain};
use crate::cli::context::Context;
use crate::cli::json::{Failure, millis};
use crate::cli::session::with_workspace;
use crate::cli::status::{self, Status};
use crate::cli::{open::open, stdio};

/// Run a command in a workspace.
#[derive(Args)]
pub(crate) struct ExecArgs {
    /// The workspace.
    target: Target,
    #[command(flatten)]
    command: CommandArgs,
    /// Print one JSON object instead of the command's output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Does it.
pub(crate) async fn exec(args: ExecArgs, context: &Context) -> anyhow::Result<Status> {
    let ExecArgs { target, mut command, json } = args;
    let env = command.environment()?;
    let user = command.user.take();
    let command = command.command(env, user);
    let mut outcome = Outcome::new();
    let done = async {
        let workspace = open(context, &target).await?;
        outcome.opened(&*workspace);
        with_workspace(context, workspace, async |workspace| {
            let what = || format!("failed to run a command in {target}");
            let ran = run_command(context, &*workspace, command, &mut outcome).await.with_context(what);
            outcome.worked();
            ran
        })
        .await
    }
    .await;
    finish(context, json, outcome, done)
}

/// Runs a command, live or, for JSON, collected.
pub(crate) async fn run_command(
    context: &Context,
    workspace: &dyn Workspace,
    command: agentworkspace::Command,
    outcome: &mut Outcome,
) -> anyhow::Result<Status> {
    let started = Instant::now();
    let output = match context.printer.is_json() {
        true => workspace.exec(command).await.map_err(anyhow::Error::from),
        false => stdio::exec_live(workspace, command).await,
    };
    outcome.durations_ms.exec = Some(millis(started.elapsed()));
    let output = output?;
    let status = status::of_end(output.end);
    explain(&context.printer, &output);
    outcome.ran(output);
    Ok(status)
}

/// Prints the JSON object if one was asked for, whatever came of it.
pub(crate) fn finish(
    context: &Context,
    json: bool,
    mut outcome: Outcome,
    done: anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    if json {
        outcome.closed();
        if let Err(failure) = &done {
            outcome.error = Some(Failure::new(failure));
        }
        context.printer.json(&outcome)?;
    }
    done
}
