//! From this machine into a workspace.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use agentworkspace::local::LocalWorkspace;
use agentworkspace::{
    ArchiveOptions, Content, Environment, UnpackOptions, Workspace, WorkspacePath, WriteMethod, WriteOptions,
};
use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;

use super::left_out::LeftOut;
use crate::cli::context::Context;
use crate::cli::failure::Usage;
use crate::cli::parse::Place;
use crate::cli::stdio;

/// Copies a file, or a directory with all below it, into `workspace`. A link as `source` itself is
/// followed; below it links are copied as links. Devices, FIFOs and sockets are left out, which is
/// said.
pub(crate) async fn put(
    context: &Context,
    workspace: &dyn Workspace,
    source: &Path,
    place: Option<&Place>,
) -> anyhow::Result<()> {
    let shown = source.display();
    let metadata = tokio::fs::metadata(source).await.with_context(|| format!("failed to copy `{shown}`"))?;
    let name = destination(source, place, metadata.is_dir())?;
    let what = || format!("failed to copy `{shown}` to `{name}`");
    if metadata.is_dir() {
        put_tree(context, workspace, source, &name).await.with_context(what)
    } else if metadata.is_file() {
        put_file(context, workspace, source, &name).await.with_context(what)
    } else {
        Err(anyhow::anyhow!("`{shown}` is neither a file nor a directory").context(what()))
    }
}

/// Writes standard input to a file of `workspace`.
pub(crate) async fn put_stdin(
    context: &Context,
    workspace: &dyn Workspace,
    name: &WorkspacePath,
    options: WriteOptions,
) -> anyhow::Result<()> {
    write(context, workspace, name, stdio::stdin(), options).await
}

/// Where `source` goes.
fn destination(source: &Path, place: Option<&Place>, is_dir: bool) -> anyhow::Result<WorkspacePath> {
    let own_name = || {
        let name = source.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Usage(format!("`{}` has no name of its own that is UTF-8: say a NAME for it", source.display()))
        })?;
        anyhow::Ok(name)
    };
    Ok(match place {
        None if source.file_name().is_none() => WorkspacePath::root(),
        None => WorkspacePath::parse(own_name()?)?,
        Some(place) if place.into || (place.path.is_root() && !is_dir) => place.path.join(own_name()?)?,
        Some(place) => place.path.clone(),
    })
}

async fn put_file(
    context: &Context,
    workspace: &dyn Workspace,
    source: &Path,
    name: &WorkspacePath,
) -> anyhow::Result<()> {
    let file = tokio::fs::File::open(source).await?;
    let metadata = file.metadata().await?;
    let step = context.printer.step(format!("copying {} into the workspace", source.display()));
    step.bytes(0, Some(metadata.len()));
    // A file that grows meanwhile is copied as large as it was; one that shrinks is an error.
    let content = Content::sized_reader(step.count(file.take(metadata.len())), metadata.len());
    write(context, workspace, name, content, WriteOptions::default().mode(metadata.mode() & 0o777)).await
}

async fn write(
    context: &Context,
    workspace: &dyn Workspace,
    name: &WorkspacePath,
    content: Content,
    options: WriteOptions,
) -> anyhow::Result<()> {
    let written = workspace.write(name, content, options).await?;
    let how = if written.method == WriteMethod::InPlace { ", in place" } else { "" };
    context.printer.detail(format_args!("wrote {} bytes to `{name}`{how}", written.bytes));
    Ok(())
}

async fn put_tree(
    context: &Context,
    workspace: &dyn Workspace,
    source: &Path,
    name: &WorkspacePath,
) -> anyhow::Result<()> {
    let left_out = LeftOut::below(source.to_owned()).await?;
    let step = context.printer.step(format!("copying {} into the workspace", source.display()));
    let tree = LocalWorkspace::open(source, Environment::empty())?;
    let archive = tree.get_archive(&WorkspacePath::root(), ArchiveOptions::default()).await?;
    let content = Content::reader(step.count(archive));
    let report = workspace.put_archive(name, content, UnpackOptions::default()).await?;
    drop(step);
    context
        .printer
        .detail(format_args!("copied {} entries, {} bytes, to `{name}`", report.entries, report.bytes));
    left_out.tell(&context.printer, source);
    tree.close().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str, place: Option<&str>, is_dir: bool) -> String {
        let place = place.map(|place| Place::parse(place).unwrap());
        destination(Path::new(source), place.as_ref(), is_dir).unwrap().to_string()
    }

    #[test]
    fn a_copy_lands_where_it_was_asked_to() {
        assert_eq!(at("x/a", None, false), "a");
        assert_eq!(at("x/a/", None, true), "a");
        assert_eq!(at(".", None, true), ".");
        assert_eq!(at("x/a", Some("b"), false), "b");
        assert_eq!(at("x/a", Some("b/"), false), "b/a");
        assert_eq!(at("x/a", Some("b/"), true), "b/a");
        assert_eq!(at("x/a", Some("."), false), "a");
        assert_eq!(at("x/a", Some("."), true), ".");
    }
}
