//! `cp`: files and trees between this machine and a workspace.

use agentworkspace::WriteOptions;
use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::failure::Usage;
use crate::cli::parse::Endpoint;
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};
use crate::cli::transfer;

/// Copy a file or directory between this machine and a workspace.
///
/// One side is TARGET//NAME, as in `container:web//etc/hosts`, or TARGET// for the root; the other
/// is a path of this machine, or `-` for standard input or output. A directory is copied with all
/// below it and merges with one that is there; to `-` it goes as a tar stream. A destination that
/// ends in `/` is the directory to put the copy into. Links are copied as links; devices, FIFOs and
/// sockets are left out.
#[derive(Args)]
pub(crate) struct CpArgs {
    /// What to copy.
    #[arg(value_name = "SRC", value_parser = Endpoint::parse)]
    source: Endpoint,
    /// Where to.
    #[arg(value_name = "DST", value_parser = Endpoint::parse)]
    dest: Endpoint,
}

/// Does it.
pub(crate) async fn cp(args: CpArgs, context: &Context) -> anyhow::Result<Status> {
    match (args.source, args.dest) {
        (Endpoint::Host(source), Endpoint::Workspace(target, place)) => {
            with_target(context, &target, async |workspace| {
                transfer::put(context, &*workspace, &source, Some(&place))
                    .await
                    .with_context(|| format!("failed in {target}"))
            })
            .await?;
        }
        (Endpoint::Standard, Endpoint::Workspace(target, place)) => {
            if place.into || place.path.is_root() {
                return Err(Usage("standard input has no name: say one for the file".to_owned()).into());
            }
            with_target(context, &target, async |workspace| {
                transfer::put_stdin(context, &*workspace, &place.path, WriteOptions::default())
                    .await
                    .with_context(|| format!("failed to write `{}` in {target}", place.path))
            })
            .await?;
        }
        (Endpoint::Workspace(target, place), Endpoint::Host(dest)) => {
            with_target(context, &target, async |workspace| {
                transfer::get(context, &*workspace, &place.path, &dest)
                    .await
                    .with_context(|| format!("failed in {target}"))
            })
            .await?;
        }
        (Endpoint::Workspace(target, place), Endpoint::Standard) => {
            with_target(context, &target, async |workspace| {
                transfer::get_to_stdout(&*workspace, &place.path)
                    .await
                    .with_context(|| format!("failed in {target}"))
            })
            .await?;
        }
        (Endpoint::Workspace(..), Endpoint::Workspace(..)) => {
            return Err(Usage(
                "only one side of a copy can be a workspace: copy by way of this machine".to_owned(),
            )
            .into());
        }
        _ => return Err(Usage("one side of a copy must be in a workspace: TARGET//NAME".to_owned()).into()),
    }
    Ok(status::OK)
}
