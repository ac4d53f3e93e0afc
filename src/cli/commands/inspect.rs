//! `inspect`: what a workspace is.

use agentworkspace::{Capabilities, Descriptor, Details, Target};
use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};

/// Show what a workspace is, as JSON.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// The workspace.
    target: Target,
    /// Print JSON on one line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// All that a workspace says of itself. Of its environment only the names are shown.
#[derive(Serialize)]
struct Inspection {
    descriptor: Descriptor,
    details: Details,
    capabilities: Capabilities,
    env: Vec<String>,
}

/// Does it.
pub(crate) async fn inspect(args: InspectArgs, context: &Context) -> anyhow::Result<Status> {
    let inspection = with_target(context, &args.target, async |workspace| {
        Ok(Inspection {
            descriptor: workspace.descriptor(),
            details: workspace.details(),
            capabilities: workspace.capabilities(),
            env: workspace.env().iter().map(|(name, _)| name.to_owned()).collect(),
        })
    })
    .await?;
    match args.json {
        true => context.printer.line(serde_json::to_string(&inspection)?)?,
        false => context.printer.line(serde_json::to_string_pretty(&inspection)?)?,
    }
    Ok(status::OK)
}
