//! `prune`: removes what dead processes left.

use agentworkspace::container::{Engine, PruneOptions, prune as prune_engine};
use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::status::{self, Status};

/// Remove the containers and volumes whose owner is dead.
///
/// What belongs to a process that lives, or of another machine, stays.
#[derive(Args)]
pub(crate) struct PruneArgs {
    /// Also remove what was made to be kept.
    #[arg(long)]
    kept: bool,
    /// Also remove the unused volumes that hold the helper's program.
    #[arg(long)]
    helpers: bool,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was done, as JSON.
#[derive(Serialize)]
struct Pruned {
    containers: Vec<String>,
    volumes: Vec<String>,
    /// How many stay.
    left: usize,
    failed: Vec<Failed>,
    dry_run: bool,
}

/// What could not be removed.
#[derive(Serialize)]
struct Failed {
    name: String,
    reason: String,
}

/// Does it. The status is 1 when something could not be removed.
pub(crate) async fn prune(args: PruneArgs, context: &Context) -> anyhow::Result<Status> {
    let options = PruneOptions::default().kept(args.kept).helpers(args.helpers).dry_run(args.dry_run);
    let pruning = async { Ok(prune_engine(&Engine::connect().await?, options).await?) };
    let report = context.interrupts.until(pruning).await?;
    let failed = report.failed.into_iter().map(|(name, reason)| Failed { name, reason }).collect();
    let pruned = Pruned {
        containers: report.containers,
        volumes: report.volumes,
        left: report.left,
        failed,
        dry_run: args.dry_run,
    };
    let status = if pruned.failed.is_empty() { status::OK } else { status::FAILED };
    for Failed { name, reason } in &pruned.failed {
        context.printer.error(format_args!("failed to remove `{name}`: {reason}"));
    }
    if args.json {
        context.printer.json(&pruned)?;
        return Ok(status);
    }
    for name in &pruned.containers {
        context.printer.line(format_args!("container {name}"))?;
    }
    for name in &pruned.volumes {
        context.printer.line(format_args!("volume {name}"))?;
    }
    Ok(status)
}
