//! `run`: a command in a fresh workspace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use agentworkspace::local::LocalWorkspace;
use agentworkspace::{Command, Environment, Workspace};
use anyhow::Context as _;
use clap::Args;

use super::container_args::ContainerArgs;
use super::exec::{finish, run_command};
use super::exec_args::CommandArgs;
use super::outcome::Outcome;
use crate::cli::context::Context;
use crate::cli::failure::NotOpened;
use crate::cli::json::{Failure, millis};
use crate::cli::open::{image_of, make_container};
use crate::cli::parse::{CollectSpec, CopySpec};
use crate::cli::session::with_workspace;
use crate::cli::status::{self, Status};
use crate::cli::transfer;

/// Run a command in a fresh workspace and remove that afterwards.
///
/// Without --image, --build or --local it runs in a fresh temporary directory of this machine,
/// which is not isolated. --copy and --collect split at the last `:`. A name that ends in `/` is
/// the directory to copy into, and `.` is the workspace's root.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Use a fresh container of this image.
    #[arg(long, value_name = "REF", group = "source")]
    image: Option<String>,
    /// Use a fresh container of an image that is built from this directory, which holds a Dockerfile.
    #[arg(long, value_name = "DIR", group = "source")]
    build: Option<PathBuf>,
    /// Use this directory of this machine, which is left as it is then.
    #[arg(long, value_name = "DIR", conflicts_with = "source")]
    local: Option<PathBuf>,
    /// Before the command, copy a file or directory of this machine into the workspace.
    #[arg(long = "copy", value_name = "SRC[:NAME]", value_parser = CopySpec::parse)]
    copies: Vec<CopySpec>,
    /// After the command, copy a file or directory of the workspace to this machine.
    #[arg(long = "collect", value_name = "NAME[:DEST]", value_parser = CollectSpec::parse)]
    collections: Vec<CollectSpec>,
    /// Do not remove the container, and give it this name.
    #[arg(long, value_name = "NAME", requires = "source")]
    keep: Option<String>,
    /// Print one JSON object instead of the command's output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    command: CommandArgs,
    #[command(flatten)]
    container: ContainerArgs,
}

/// Does it.
pub(crate) async fn run(args: RunArgs, context: &Context) -> anyhow::Result<Status> {
    let RunArgs { image, build, local, copies, collections, keep, json, mut command, container } = args;
    let env = command.environment()?;
    let user = command.user.take();
    let mut outcome = Outcome::new();
    let done = async {
        let (workspace, command) = match (&image, &build) {
            (None, None) => (open_local(context, local, env)?, command.command(Environment::empty(), user)),
            _ => {
                let image = image_of(context, image, build, &mut outcome.durations_ms).await?;
                let mut options = container.options(image, Environment::empty(), user);
                options.keep = keep.is_some();
                options.name = keep;
                let what = format!("failed to make a container of {}", options.image);
                let workspace = make_container(context, options).await.context(what)?;
                outcome.durations_ms.made(workspace.timings());
                let workspace: Arc<dyn Workspace> = Arc::new(workspace);
                // A kept container would hold its own variables for everybody to read.
                (workspace, command.command(env, None))
            }
        };
        outcome.opened(&*workspace);
        with_workspace(context, workspace, async |workspace| {
            let worked = work(context, &*workspace, &copies, command, &collections, &mut outcome).await;
            outcome.worked();
            worked
        })
        .await
    }
    .await;
    finish(context, json, outcome, done)
}

fn open_local(
    context: &Context,
    dir: Option<PathBuf>,
    env: Environment,
) -> anyhow::Result<Arc<dyn Workspace>> {
    let env = Environment::from_host_basics().merged(&env);
    Ok(Arc::new(match dir {
        Some(dir) => {
            LocalWorkspace::open(&dir, env).with_context(|| NotOpened(format!("local:{}", dir.display())))?
        }
        None => {
            context.printer.note(
                "this runs in a fresh temporary directory of this machine, which is not isolated; \
                 --image uses a container",
            );
            LocalWorkspace::temporary(env)?
        }
    }))
}

async fn work(
    context: &Context,
    workspace: &dyn Workspace,
    copies: &[CopySpec],
    command: Command,
    collections: &[CollectSpec],
    outcome: &mut Outcome,
) -> anyhow::Result<Status> {
    if !copies.is_empty() {
        let started = Instant::now();
        for copy in copies {
            transfer::put(context, workspace, &copy.source, copy.place.as_ref()).await?;
        }
        outcome.durations_ms.copy = Some(millis(started.elapsed()));
    }
    let status =
        run_command(context, workspace, command, outcome).await.context("failed to run the command")?;
    if collections.is_empty() {
        return Ok(status);
    }
    let started = Instant::now();
    let collected = collect(context, workspace, collections).await;
    outcome.durations_ms.collect = Some(millis(started.elapsed()));
    match collected {
        Ok(()) => Ok(status),
        // The command's own failure tells more than what it therefore did not make.
        Err(failure) if status != status::OK => {
            context.printer.failure(&failure);
            outcome.error = Some(Failure::new(&failure));
            Ok(status)
        }
        Err(failure) => Err(failure),
    }
}

/// Collects everything that can be, and then fails if something could not.
async fn collect(
    context: &Context,
    workspace: &dyn Workspace,
    collections: &[CollectSpec],
) -> anyhow::Result<()> {
    let mut first_failure = None;
    for CollectSpec { name, dest } in collections {
        let own = PathBuf::from(name.file_name().unwrap_or("."));
        let dest = dest.as_ref().unwrap_or(&own);
        if let Err(failure) = transfer::get(context, workspace, name, dest).await {
            match first_failure {
                None => first_failure = Some(failure),
                Some(_) => context.printer.failure(&failure),
            }
        }
    }
    first_failure.map_or(Ok(()), Err)
}
