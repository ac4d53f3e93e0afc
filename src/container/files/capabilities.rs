//! What the two ways of reaching files can do.

use crate::capabilities::Capabilities;
use crate::container::shared::Shared;
use crate::descriptor::Kind;
use crate::error::{Error, Result};

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
pub(super) fn hidden(shared: &Shared, path: &str) -> Result<()> {
    let below = |mount: &&String| {
        path.strip_prefix(mount.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match shared.hidden_mounts.iter().find(below) {
        None => Ok(()),
        Some(mount) => Err(Error::Unsupported {
            operation: format!("reaching `{path}`"),
            backend: Kind::Container,
            reason: format!(
                "the engine's archive calls do not see what is mounted at `{mount}`; use a volume there, \
                 or a command such as `tar` in the container"
            ),
        }),
    }
}
