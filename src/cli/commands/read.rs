//! `read`: a file to standard output.

use agentworkspace::{OpenOptions, Target, WorkspacePath};
use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};
use crate::cli::{parse, stdio};

/// Print a file of a workspace.
#[derive(Args)]
pub(crate) struct ReadArgs {
    /// The workspace.
    target: Target,
    /// The file, relative to the root.
    name: WorkspacePath,
    /// Start at this byte.
    #[arg(long, value_name = "BYTES", value_parser = parse::size, default_value = "0", hide_default_value = true)]
    offset: u64,
    /// Print at most this much.
    #[arg(long, value_name = "BYTES", value_parser = parse::size)]
    length: Option<u64>,
}

/// Does it.
pub(crate) async fn read(args: ReadArgs, context: &Context) -> anyhow::Result<Status> {
    let ReadArgs { target, name, offset, length } = args;
    let mut options = OpenOptions::default().offset(offset);
    options.length = length;
    with_target(context, &target, async |workspace| {
        let what = || format!("failed to read `{name}` in {target}");
        let reader = workspace.open(&name, options).await.with_context(what)?;
        stdio::copy_out(reader).await.with_context(what)?;
        Ok(status::OK)
    })
    .await
}
