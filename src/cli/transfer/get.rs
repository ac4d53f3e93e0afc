//! From a workspace to this machine.

use std::path::{Path, PathBuf};

use agentworkspace::local::LocalWorkspace;
use agentworkspace::{
    ArchiveOptions, Content, Environment, Metadata, OpenOptions, UnpackOptions, Workspace, WorkspacePath,
    WriteOptions,
};
use anyhow::Context as _;

use crate::cli::context::Context;
use crate::cli::failure::Usage;
use crate::cli::stdio;

/// The permission bits that come along: what was root's in a container would be root's here.
const PLAIN_MODE: u32 = 0o777;

/// Copies a file, or a directory with all below it, out of `workspace`. What is in it is not
/// trusted: everything is written through a workspace on the destination, so that nothing lands
/// outside of it, and no set-user-id or set-group-id bit comes along.
pub(crate) async fn get(
    context: &Context,
    workspace: &dyn Workspace,
    name: &WorkspacePath,
    dest: &Path,
) -> anyhow::Result<()> {
    let what = || format!("failed to copy `{name}` to `{}`", dest.display());
    let metadata = workspace.metadata(name).await.with_context(what)?;
    let dest = destination(name, dest, metadata)?;
    if metadata.is_dir() {
        get_tree(context, workspace, name, &dest).await.with_context(what)
    } else {
        get_file(context, workspace, name, &dest, metadata).await.with_context(what)
    }
}

/// Writes a file to standard output as it is, a directory as a tar stream.
pub(crate) async fn get_to_stdout(workspace: &dyn Workspace, name: &WorkspacePath) -> anyhow::Result<()> {
    let what = || format!("failed to copy `{name}`");
    if workspace.metadata(name).await.with_context(what)?.is_dir() {
        let archive = workspace.get_archive(name, ArchiveOptions::default()).await.with_context(what)?;
        stdio::copy_out(archive).await
    } else {
        let reader = workspace.open(name, OpenOptions::default()).await.with_context(what)?;
        stdio::copy_out(reader).await
    }
}

/// The path of this machine that `name` becomes: with a trailing `/`, or for a file an existing
/// directory, one in there.
fn destination(name: &WorkspacePath, dest: &Path, metadata: Metadata) -> anyhow::Result<PathBuf> {
    let trailing = dest.as_os_str().as_encoded_bytes().ends_with(b"/");
    let into = match metadata.is_dir() {
        true => trailing && !name.is_root(),
        false => trailing || dest.is_dir(),
    };
    match name.file_name() {
        Some(own) if into => Ok(dest.join(own)),
        _ => Ok(dest.to_owned()),
    }
}

async fn get_file(
    context: &Context,
    workspace: &dyn Workspace,
    name: &WorkspacePath,
    dest: &Path,
    metadata: Metadata,
) -> anyhow::Result<()> {
    // A link of this machine at the destination is its user's own and is followed.
    let dest = tokio::fs::canonicalize(dest).await.unwrap_or_else(|_| dest.to_owned());
    let (parent, own) = parent_and_name(&dest)?;
    tokio::fs::create_dir_all(&parent).await?;
    let reader = workspace.open(name, OpenOptions::default()).await?;
    let step = context.printer.step(format!("copying {name} to {}", dest.display()));
    step.bytes(0, Some(metadata.size));
    let mode = WriteOptions::default().mode(metadata.mode & PLAIN_MODE);
    let directory = LocalWorkspace::open(&parent, Environment::empty())?;
    let written = directory.write(&own, Content::reader(step.count(reader)), mode).await?;
    drop(step);
    context.printer.detail(format_args!("wrote {} bytes to {}", written.bytes, dest.display()));
    Ok(directory.close().await?)
}

fn parent_and_name(dest: &Path) -> anyhow::Result<(PathBuf, WorkspacePath)> {
    let own = dest
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Usage(format!("`{}` is not the name of a file, or is not UTF-8", dest.display())))?;
    let parent = match dest.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((parent, WorkspacePath::parse(own)?))
}

async fn get_tree(
    context: &Context,
    workspace: &dyn Workspace,
    name: &WorkspacePath,
    dest: &Path,
) -> anyhow::Result<()> {
    tokio::fs::create_dir_all(dest).await?;
    let directory = LocalWorkspace::open(dest, Environment::empty())?;
    let step = context.printer.step(format!("copying {name} to {}", dest.display()));
    let archive = workspace.get_archive(name, ArchiveOptions::default()).await?;
    let content = Content::reader(step.count(archive));
    let options = UnpackOptions::default().mode_mask(PLAIN_MODE);
    let report = directory.put_archive(&WorkspacePath::root(), content, options).await?;
    drop(step);
    context.printer.detail(format_args!(
        "copied {} entries, {} bytes, to {}",
        report.entries,
        report.bytes,
        dest.display()
    ));
    Ok(directory.close().await?)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use agentworkspace::FileKind;

    use super::*;

    fn at(name: &str, dest: &str, kind: FileKind) -> PathBuf {
        let metadata = Metadata::new(kind, 0, 0, SystemTime::UNIX_EPOCH);
        destination(&WorkspacePath::parse(name).unwrap(), Path::new(dest), metadata).unwrap()
    }

    #[test]
    fn a_copy_lands_where_it_was_asked_to() {
        assert_eq!(at("a/f", "x", FileKind::File), Path::new("x"));
        assert_eq!(at("a/f", "x/", FileKind::File), Path::new("x/f"));
        assert_eq!(at("a/f", "/tmp", FileKind::File), Path::new("/tmp/f"));
        assert_eq!(at("a", "/tmp", FileKind::Directory), Path::new("/tmp"));
        assert_eq!(at("a", "/tmp/", FileKind::Directory), Path::new("/tmp/a"));
        assert_eq!(at(".", "/tmp/", FileKind::Directory), Path::new("/tmp/"));
    }

    #[test]
    fn a_file_in_the_current_directory_has_a_parent() {
        let (parent, own) = parent_and_name(Path::new("f")).unwrap();
        assert_eq!((parent.as_path(), own.as_str()), (Path::new("."), "f"));
        assert!(parent_and_name(Path::new("..")).is_err());
    }
}
