//! `write`: standard input or a file into a file of a workspace.

use std::path::PathBuf;

use agentworkspace::{Content, Target, WorkspacePath, WriteOptions};
use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};
use crate::cli::{parse, stdio};

/// Write a file of a workspace.
#[derive(Args)]
pub(crate) struct WriteArgs {
    /// The workspace.
    target: Target,
    /// The file, relative to the root. Missing directories are made.
    name: WorkspacePath,
    /// A file of this machine to take the content from [default: standard input].
    #[arg(value_name = "FILE")]
    source: Option<PathBuf>,
    /// The permission bits of a new file, in octal; one that exists keeps its own.
    #[arg(long, value_parser = parse::mode, default_value = "644")]
    mode: u32,
}

/// Does it.
pub(crate) async fn write(args: WriteArgs, context: &Context) -> anyhow::Result<Status> {
    let WriteArgs { target, name, source, mode } = args;
    with_target(context, &target, async |workspace| {
        let what = || format!("failed to write `{name}` in {target}");
        let content = match source.filter(|source| source.as_os_str() != "-") {
            None => stdio::stdin(),
            Some(source) => {
                let file = tokio::fs::File::open(&source)
                    .await
                    .with_context(|| format!("failed to open `{}`", source.display()))?;
                Content::reader(file)
            }
        };
        let written =
            workspace.write(&name, content, WriteOptions::default().mode(mode)).await.with_context(what)?;
        context.printer.detail(format_args!("wrote {} bytes ({:?})", written.bytes, written.method));
        Ok(status::OK)
    })
    .await
}
