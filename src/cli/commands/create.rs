//! `create`: a container that stays.

use std::path::PathBuf;

use agentworkspace::{Descriptor, Details, Workspace as _};
use anyhow::Context as _;
use clap::{ArgGroup, Args};
use serde::Serialize;

use super::container_args::ContainerArgs;
use super::outcome::Durations;
use crate::cli::context::Context;
use crate::cli::open::{image_of, make_container};
use crate::cli::parse;
use crate::cli::status::{self, Status};

/// Make a container that stays until `close` removes it, and print its id.
#[derive(Args)]
#[command(group = ArgGroup::new("source").args(["image", "build"]).required(true))]
pub(crate) struct CreateArgs {
    /// Make it of this image.
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// Build the image from this directory, which holds a Dockerfile.
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// The container's name [default: one that is made up].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Set an environment variable; NAME alone takes its value from here. It is part of the
    /// container's configuration: for secrets use the --env of `exec`.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Run commands as this user: a name, uid or uid:gid.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    container: ContainerArgs,
}

/// What was made, as JSON.
#[derive(Serialize)]
struct Created {
    id: String,
    descriptor: Descriptor,
    durations_ms: Durations,
    details: Details,
}

/// Does it.
pub(crate) async fn create(args: CreateArgs, context: &Context) -> anyhow::Result<Status> {
    let CreateArgs { image, build, name, env, user, json, container } = args;
    let env = parse::environment(&env, |name| std::env::var(name))?;
    let mut durations_ms = Durations::default();
    let image = image_of(context, image, build, &mut durations_ms).await?;
    let mut options = container.options(image, env, user).keep(true);
    options.name = name;
    let what = format!("failed to make a container of {}", options.image);
    let workspace = make_container(context, options).await.context(what)?;
    durations_ms.made(workspace.timings());
    let created = Created {
        id: workspace.container_id().to_owned(),
        descriptor: workspace.descriptor(),
        durations_ms,
        details: workspace.details(),
    };
    workspace.close().await?;
    for warning in &created.details.warnings {
        context.printer.warning(warning);
    }
    match json {
        true => context.printer.json(&created)?,
        false => context.printer.line(&created.id)?,
    }
    Ok(status::OK)
}
