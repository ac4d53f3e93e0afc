//! `list`: the containers that workspaces made.

use agentworkspace::container::{Engine, ListedWorkspace, list as list_workspaces};
use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::json;
use crate::cli::status::{self, Status};

/// List the containers that agentworkspace made.
#[derive(Args)]
pub(crate) struct ListArgs {
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A container as JSON.
#[derive(Serialize)]
struct Listed {
    /// The engine's id of it.
    id: String,
    name: String,
    workspace_id: String,
    image: String,
    /// In the engine's words.
    state: String,
    kept: bool,
    /// Null when that cannot be known from here.
    owner_alive: Option<bool>,
    created: Option<String>,
    root: String,
}

impl From<ListedWorkspace> for Listed {
    fn from(listed: ListedWorkspace) -> Listed {
        Listed {
            id: listed.container,
            name: listed.name,
            workspace_id: listed.id,
            image: listed.image,
            state: listed.state,
            kept: listed.kept,
            owner_alive: listed.owner_alive,
            created: listed.created.map(json::time),
            root: listed.root,
        }
    }
}

/// Does it.
pub(crate) async fn list(args: ListArgs, context: &Context) -> anyhow::Result<Status> {
    let listing = async { Ok(list_workspaces(&Engine::connect().await?).await?) };
    let listed: Vec<Listed> =
        context.interrupts.until(listing).await?.into_iter().map(Listed::from).collect();
    if args.json {
        context.printer.json(&listed)?;
        return Ok(status::OK);
    }
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(["ID", "NAME", "IMAGE", "STATE", "KEPT", "OWNER", "CREATED"]);
    for listed in listed {
        let owner = match listed.owner_alive {
            Some(true) => "alive",
            Some(false) => "dead",
            None => "unknown",
        };
        let kept = if listed.kept { "yes" } else { "no" };
        let id = listed.id.get(..12).unwrap_or(&listed.id);
        let created = listed.created.as_deref().unwrap_or("unknown");
        table.add_row([id, &listed.name, &listed.image, &listed.state, kept, owner, created]);
    }
    for line in table.lines() {
        context.printer.line(line.trim())?;
    }
    Ok(status::OK)
}
