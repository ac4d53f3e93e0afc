//! `stat`: what a name stands for.

use agentworkspace::{LinkTarget, Metadata, Target, Workspace, WorkspacePath};
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::json::{self, Bytes};
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};

/// Show what a name in a workspace stands for.
#[derive(Args)]
pub(crate) struct StatArgs {
    /// The workspace.
    target: Target,
    /// The name, relative to the root.
    #[arg(default_value = ".")]
    name: WorkspacePath,
    /// Follow a link in the last component.
    #[arg(short = 'L', long)]
    follow: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Metadata as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Stat {
    kind: agentworkspace::FileKind,
    size: u64,
    /// Permission bits in octal, as `0644`.
    mode: String,
    uid: Option<u32>,
    gid: Option<u32>,
    modified: String,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Bytes>,
}

impl Stat {
    /// These, and where the link leads when it is one.
    pub(crate) fn new(metadata: Metadata, link: Option<LinkTarget>) -> Stat {
        Stat {
            kind: metadata.kind,
            size: metadata.size,
            mode: format!("{:04o}", metadata.mode),
            uid: metadata.uid,
            gid: metadata.gid,
            modified: json::time(metadata.modified),
            link: link.map(|link| Bytes::new(link.as_bytes().to_vec())),
        }
    }
}

/// What `name` is, not following a link, and where it leads when it is one.
pub(crate) async fn link_and_metadata(
    workspace: &dyn Workspace,
    name: &WorkspacePath,
) -> agentworkspace::Result<(Metadata, Option<LinkTarget>)> {
    let metadata = workspace.symlink_metadata(name).await?;
    let link = match metadata.is_symlink() {
        true => Some(workspace.read_link(name).await?),
        false => None,
    };
    Ok((metadata, link))
}

/// Does it.
pub(crate) async fn stat(args: StatArgs, context: &Context) -> anyhow::Result<Status> {
    let StatArgs { target, name, follow, json: _ } = args;
    let (metadata, link) = with_target(context, &target, async |workspace| {
        let found = match follow {
            true => workspace.metadata(&name).await.map(|metadata| (metadata, None)),
            false => link_and_metadata(&*workspace, &name).await,
        };
        found.with_context(|| format!("failed to look up `{name}` in {target}"))
    })
    .await?;
    if context.printer.is_json() {
        context.printer.json(&Stat::new(metadata, link))?;
        return Ok(status::OK);
    }
    let owner = |id: Option<u32>| id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
    let leads = link.map(|link| format!(" -> {}", link.to_string().escape_debug())).unwrap_or_default();
    context.printer.line(format_args!("name      {}{leads}", name.as_str().escape_debug()))?;
    context.printer.line(format_args!("kind      {}", metadata.kind))?;
    context.printer.line(format_args!("size      {}", metadata.size))?;
    context.printer.line(format_args!("mode      {:04o}", metadata.mode))?;
    context.printer.line(format_args!("owner     {}:{}", owner(metadata.uid), owner(metadata.gid)))?;
    context.printer.line(format_args!("modified  {}", json::time(metadata.modified)))?;
    Ok(status::OK)
}
