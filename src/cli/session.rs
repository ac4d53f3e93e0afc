//! The life of a workspace around the work of a subcommand.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use agentworkspace::{Target, Workspace};
use futures::FutureExt as _;

use super::context::Context;
use super::failure::text;
use super::open::open;

/// Does `work` with `workspace` and closes that, whatever comes of it: an end, a failure, a signal
/// or a panic.
pub(crate) async fn with_workspace<T>(
    context: &Context,
    workspace: Arc<dyn Workspace>,
    work: impl AsyncFnOnce(Arc<dyn Workspace>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let done = context.interrupts.until(work(workspace.clone()));
    let done = AssertUnwindSafe(done).catch_unwind().await;
    let step = context.printer.step("closing the workspace");
    let closed = workspace.close().await;
    drop(step);
    if let Err(error) = closed {
        // The result of the work stands; what is left over is the engine's state, not the result.
        let failure = anyhow::Error::from(error).context("failed to close the workspace");
        context.printer.warning(text(&failure));
    }
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Opens `target`, does `work` with it and closes it.
pub(crate) async fn with_target<T>(
    context: &Context,
    target: &Target,
    work: impl AsyncFnOnce(Arc<dyn Workspace>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let workspace = open(context, target).await?;
    with_workspace(context, workspace, work).await
}
