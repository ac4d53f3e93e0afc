//! `list`: the containers that workspaces made.

use std::time::SystemTime;

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
    let listed = context.interrupts.until(listing).await?;
    let ages: Vec<String> = listed.iter().map(|listed| listed.created.map_or("?".to_owned(), age)).collect();
    let listed: Vec<Listed> = listed.into_iter().map(Listed::from).collect();
    if args.json {
        context.printer.json(&listed)?;
        return Ok(status::OK);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["ID", "NAME", "IMAGE", "STATE", "KEPT", "OWNER", "AGE"]);
    for (listed, age) in listed.into_iter().zip(ages) {
        let owner = match listed.owner_alive {
            // Whoever made it to stay ended long ago, and that is as it should be.
            _ if listed.kept => "-",
            Some(true) => "alive",
            Some(false) => "dead",
            None => "unknown",
        };
        let kept = if listed.kept { "yes" } else { "no" };
        let id = listed.id.get(..12).unwrap_or(&listed.id);
        let image = short(&listed.image);
        table.add_row([id, &listed.name, image, &listed.state, kept, owner, &age]);
    }
    for line in table.lines() {
        context.printer.line(line.trim())?;
    }
    Ok(status::OK)
}

/// A digest in as many digits as engines show, anything else as it is.
fn short(image: &str) -> &str {
    match image.strip_prefix("sha256:") {
        Some(digits) => digits.get(..12).unwrap_or(digits),
        None => image,
    }
}

/// How long ago that was, in the largest unit that there is one of.
fn age(created: SystemTime) -> String {
    let seconds = created.elapsed().unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_age_is_in_the_largest_unit() {
        for (seconds, shown) in [(5, "5s"), (119, "1m"), (7300, "2h"), (200_000, "2d")] {
            assert_eq!(age(SystemTime::now() - Duration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn only_digests_are_shortened() {
        assert_eq!(short("sha256:0123456789abcdef"), "0123456789ab");
        assert_eq!(short("debian:bookworm-slim"), "debian:bookworm-slim");
    }
}
