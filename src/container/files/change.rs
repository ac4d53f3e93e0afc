//! Changes to the tree: removing, renaming, directories, permissions.

use std::sync::Arc;

use super::capabilities::needs_shell;
use super::engine_files;
use super::script::{self, Dropped, script};
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::path::WorkspacePath;

pub(crate) async fn remove(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<()> {
    refuse_root(path, "removed")?;
    change(shared, "remove", script!("remove.sh"), path, &[]).await
}

pub(crate) async fn remove_all(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<()> {
    refuse_root(path, "removed")?;
    change(shared, "remove", script!("remove_all.sh"), path, &[]).await
}

pub(crate) async fn rename(shared: &Arc<Shared>, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
    shared.monitor.check_open()?;
    refuse_root(from, "renamed")?;
    refuse_root(to, "replaced")?;
    if shared.shell.is_none() {
        return Err(needs_shell("renaming"));
    }
    shared
        .guard(async {
            let args = [from.as_str(), to.as_str()];
            let (said, ended) = script::answer(shared, script!("rename.sh"), &args, Dropped::Kill).await?;
            ended.check("rename", subject(&said, from, to).as_str())
        })
        .await
}

pub(crate) async fn create_dir_all(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<()> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return shared.guard(engine_files::create_dir_all(shared, path)).await;
    }
    change(shared, "make the directory", script!("mkdir.sh"), path, &[]).await
}

pub(crate) async fn set_mode(shared: &Arc<Shared>, path: &WorkspacePath, mode: u32) -> Result<()> {
    check_mode(mode)?;
    change(shared, "set the mode of", script!("chmod.sh"), path, &[&format!("{mode:o}")]).await
}

/// Runs a script that changes `path` and says nothing.
async fn change(
    shared: &Arc<Shared>,
    operation: &'static str,
    text: &str,
    path: &WorkspacePath,
    args: &[&str],
) -> Result<()> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return Err(needs_shell(&format!("to {operation} a file")));
    }
    let args = [&[path.as_str()], args].concat();
    shared
        .guard(async {
            let (_, ended) = script::answer(shared, text, &args, Dropped::Kill).await?;
            ended.check(operation, path.as_str())
        })
        .await
}

/// The name that a script of two was busy with, which its last line without a space says.
pub(super) fn subject<'a>(said: &[u8], from: &'a WorkspacePath, to: &'a WorkspacePath) -> &'a WorkspacePath {
    if said.ends_with(b"to\n") { to } else { from }
}

fn refuse_root(path: &WorkspacePath, verb: &str) -> Result<()> {
    if path.is_root() {
        return Err(Error::InvalidArgument { reason: format!("the workspace root cannot be {verb}") });
    }
    Ok(())
}

pub(super) fn check_mode(mode: u32) -> Result<()> {
    if mode > 0o7777 {
        return Err(Error::InvalidArgument {
            reason: format!("{mode:o} is not a file mode: use 7777 at most"),
        });
    }
    Ok(())
}
