//! `diff`: what changed in a container.

use std::sync::Arc;

use agentworkspace::container::{AttachOptions, Change, ChangeKind, ChangeScope, ContainerWorkspace, Engine};
use agentworkspace::{Error, Kind, Target};
use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::failure::NotOpened;
use crate::cli::session::with_workspace;
use crate::cli::status::{self, Status};
use crate::cli::stdio;

/// List what was added (A), modified (M) and deleted (D) in a container since it was made.
///
/// What is on a volume, a bind mount or a tmpfs is not part of it.
#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The workspace.
    target: Target,
    /// Show the whole container rather than what is below the workspace's root.
    #[arg(long)]
    whole: bool,
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Does it.
pub(crate) async fn diff(args: DiffArgs, context: &Context) -> anyhow::Result<Status> {
    let DiffArgs { target, whole, json } = args;
    let Target::Container(name) = &target else { return Err(unsupported(&target).into()) };
    let scope = if whole { ChangeScope::Whole } else { ChangeScope::Root };
    let attaching = async {
        let engine = Engine::connect().await?;
        Ok(Arc::new(ContainerWorkspace::attach(&engine, name, AttachOptions::default()).await?))
    };
    let opened = context.interrupts.until(attaching).await;
    let workspace = opened.with_context(|| NotOpened(target.to_string()))?;
    with_workspace(context, workspace.clone(), async |_| {
        let changes = workspace.changes(scope).await;
        let changes = changes.with_context(|| format!("failed to list the changes in {target}"))?;
        if json {
            context.printer.json(&changes)?;
        } else {
            stdio::write_out(lines(&changes).as_bytes()).await?;
        }
        Ok(status::OK)
    })
    .await
}

fn unsupported(target: &Target) -> Error {
    let (backend, reason) = match target {
        Target::Local(_) => (Kind::Local, "a directory has no image to compare it with"),
        _ => (Kind::Container, "a container that is fresh has no changes; name one that runs"),
    };
    Error::Unsupported { operation: "listing changes".to_owned(), backend, reason: reason.to_owned() }
}

fn lines(changes: &[Change]) -> String {
    let line = |change: &Change| {
        let letter = match change.kind {
            ChangeKind::Added => 'A',
            ChangeKind::Deleted => 'D',
            _ => 'M',
        };
        format!("{letter} {}\n", change.path)
    };
    changes.iter().map(line).collect()
}
