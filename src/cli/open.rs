//! Opens the workspace that a subcommand works in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentworkspace::container::{BuildOptions, ContainerOptions, ContainerWorkspace, Engine, remove};
use agentworkspace::{Target, Workspace};
use anyhow::Context as _;

use super::commands::Durations;
use super::context::Context;
use super::failure::{Interrupted, NotOpened, Usage, text};
use super::json::millis;
use super::making::Making;

/// How long a container that is being made when a signal comes may take until it can be removed.
const FINISHING: Duration = Duration::from_secs(10);

/// Opens `target`. A fresh container shows the progress of its pull.
pub(crate) async fn open(context: &Context, target: &Target) -> anyhow::Result<Arc<dyn Workspace>> {
    let what = || NotOpened(target.to_string());
    match target {
        Target::Image(reference) => {
            let workspace =
                make_container(context, ContainerOptions::new(reference)).await.with_context(what)?;
            Ok(Arc::new(workspace))
        }
        _ => {
            let opening = async { Ok(target.open().await?) };
            context.interrupts.until(opening).await.with_context(what)
        }
    }
}

/// The image to use: the one that is named, or one that is built from a directory.
pub(crate) async fn image_of(
    context: &Context,
    image: Option<String>,
    build: Option<PathBuf>,
    durations_ms: &mut Durations,
) -> anyhow::Result<String> {
    let dir = match (image, build) {
        (Some(image), _) => return Ok(image),
        (None, Some(dir)) => dir,
        (None, None) => return Err(Usage("an image is needed: --image or --build".to_owned()).into()),
    };
    let started = Instant::now();
    let making = Making::new(context.printer, dir.display().to_string());
    let building = async {
        let engine = Engine::connect().await?;
        Ok(engine.build(&dir, BuildOptions::default(), |progress| making.show(progress)).await?)
    };
    let image = context.interrupts.until(building).await;
    let image = image.with_context(|| format!("failed to build an image from {}", dir.display()))?;
    durations_ms.build = Some(millis(started.elapsed()));
    Ok(image)
}

/// Makes a container, pulling its image if need be.
pub(crate) async fn make_container(
    context: &Context,
    options: ContainerOptions,
) -> anyhow::Result<ContainerWorkspace> {
    let making = Making::new(context.printer, options.image.clone());
    let keep = options.keep;
    let creating = async {
        let engine = Engine::connect().await?;
        Ok(ContainerWorkspace::create(&engine, options, |progress| making.show(progress)).await?)
    };
    tokio::pin!(creating);
    let made = context.interrupts.until(&mut creating).await;
    if let Err(failure) = &made
        && failure.is::<Interrupted>()
        && making.is_past_the_image()
    {
        // What the engine has begun to make it finishes in any case, and only a container that is
        // finished can be removed before this process ends.
        if let Ok(Ok(workspace)) = tokio::time::timeout(FINISHING, creating).await {
            remove_again(context, &workspace, keep).await;
        }
    }
    made
}

async fn remove_again(context: &Context, workspace: &ContainerWorkspace, keep: bool) {
    let removing = async {
        workspace.close().await?;
        if keep {
            remove(&Engine::connect().await?, workspace.container_id()).await?;
        }
        anyhow::Ok(())
    };
    if let Err(failure) = removing.await {
        context.printer.warning(text(&failure.context("failed to remove the container")));
    }
}
