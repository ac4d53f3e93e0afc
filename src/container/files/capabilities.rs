//! What the two ways of reaching files can do.

use crate::capabilities::Capabilities;
use crate::container::shared::Shared;
use crate::descriptor::Kind;
use crate::error::{Error, Result};
use crate::files::escape_bytes;

/// What file operations on this container can promise; everything about processes is left out.
pub(crate) fn capabilities(shared: &Shared) -> Capabilities {
    let shell = shared.shell.is_some();
    Capabilities {
        change_tree: shell,
        atomic_write: shell,
        files_as_user: shell,
        owners: shell,
        tmpfs: shell,
        // A link that leaves is uploaded from the root of the file system.
        leaving_archive_links: !shared.read_only_rootfs,
        // A script acts by handles, and around archive calls the container is paused.
        confined_under_races: true,
        // A script flushes the file and not the directory that names it.
        durable_write: false,
        ..Capabilities::default()
    }
}

/// The error of an operation that archive calls cannot do.
pub(super) fn needs_shell(operation: &str) -> Error {
    Error::Unsupported {
        operation: operation.to_owned(),
        backend: Kind::Container,
        reason: "it needs a POSIX shell in the image".to_owned(),
    }
}

/// Refuses an absolute path that archive calls do not see as processes do: what is written there
/// would be lost.
pub(super) fn hidden(shared: &Shared, path: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    match shared.hidden_mounts.iter().find(|mount| below(path, mount).is_some()) {
        None => Ok(()),
        Some(mount) => Err(Error::Unsupported {
            operation: format!("reaching `{}`", escape_bytes(path)),
            backend: Kind::Container,
            reason: format!(
                "the engine's archive calls do not see what is mounted at `{mount}`; use a volume there, \
                 or a command such as `tar` in the container"
            ),
        }),
    }
}

/// Refuses a directory with a mount below it that archive calls do not see, unless its name in the
/// directory `is_excluded`: it would be taken for an empty directory.
pub(super) fn hidden_below(shared: &Shared, dir: &str, is_excluded: impl Fn(&[u8]) -> bool) -> Result<()> {
    let names = shared.hidden_mounts.iter().filter_map(|mount| below(mount.as_bytes(), dir));
    let names: Vec<_> = names.filter(|name| !is_excluded(name)).map(escape_bytes).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Error::Unsupported {
        operation: format!("archiving `{dir}`"),
        backend: Kind::Container,
        reason: format!(
            "the engine's archive calls do not see what is mounted in it; exclude `{0}`, and take `{0}` out by a \
             command such as `tar` in the container",
            names.join("`, `")
        ),
    })
}

/// The name of `path` in `dir`, empty for itself; [`None`] for what is not at or below it.
fn below<'a>(path: &'a [u8], dir: &str) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(dir.trim_end_matches('/').as_bytes())?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_a_directory_only_by_whole_components() {
        let cases = [
            ("/a/b", "/a", Some("b")),
            ("/a", "/a", Some("")),
            ("/ab", "/a", None),
            ("/a", "/a/b", None),
            ("/proc", "/", Some("proc")),
        ];
        for (path, dir, name) in cases {
            assert_eq!(below(path.as_bytes(), dir), name.map(str::as_bytes), "{path} in {dir}");
        }
    }
}
