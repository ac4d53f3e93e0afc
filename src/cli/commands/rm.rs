//! `rm`: removes names.

use agentworkspace::{Target, WorkspacePath};
use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};

/// Remove files, links or directories of a workspace.
#[derive(Args)]
pub(crate) struct RmArgs {
    /// The workspace.
    target: Target,
    /// What to remove; a link is removed, not what it leads to.
    #[arg(required = true)]
    names: Vec<WorkspacePath>,
    /// Remove directories with all below them.
    #[arg(short, long)]
    recursive: bool,
    /// Do not mind names that stand for nothing.
    #[arg(short, long)]
    force: bool,
}

/// Does it.
pub(crate) async fn rm(args: RmArgs, context: &Context) -> anyhow::Result<Status> {
    let RmArgs { target, names, recursive, force } = args;
    with_target(context, &target, async |workspace| {
        for name in &names {
            let removed = match recursive {
                true => workspace.remove_all(name).await,
                false => workspace.remove(name).await,
            };
            match removed {
                Err(error) if force && error.is_not_found() => {}
                removed => removed.with_context(|| format!("failed to remove `{name}` in {target}"))?,
            }
        }
        Ok(status::OK)
    })
    .await
}
