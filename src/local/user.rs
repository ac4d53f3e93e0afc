//! Whom a command runs as, looked up in this machine's `/etc/passwd` and `/etc/group`.
//!
//! The files are read by hand, because the C library's look-up may load modules and ask servers.

use std::io;

use crate::accounts::{Account, Unknown, UserSpec};
use crate::error::{Error, Result, SpawnErrorKind};

/// The credentials that `user` names; `None` when this process has them already, so that it need
/// not be allowed to switch.
///
/// # Errors
///
/// [`Error::Spawn`] with [`SpawnErrorKind::UnknownUser`] for a name that is not in those files,
/// and for another user when this process is not root.
pub(super) async fn resolve(program: &str, user: &str) -> Result<Option<Account>> {
    let unknown = |reason: String| Error::Spawn {
        program: program.to_owned(),
        kind: SpawnErrorKind::UnknownUser,
        source: Some(reason.into()),
    };
    let passwd = read("/etc/passwd").await?;
    let group = read("/etc/group").await?;
    let credentials = UserSpec::parse(user).resolve(&passwd, &group).map_err(|what| {
        unknown(match what {
            Unknown::User(name) => format!("no user `{}` is in /etc/passwd", name.escape_debug()),
            Unknown::Group(name) => format!("no group `{}` is in /etc/group", name.escape_debug()),
        })
    })?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if (credentials.uid, credentials.gid) == (uid, gid) {
        return Ok(None);
    }
    if uid != 0 {
        return Err(unknown(format!("only root may switch to `{user}`, and this process has uid {uid}")));
    }
    Ok(Some(credentials))
}

/// The text of a system file; empty when there is none.
async fn read(path: &str) -> Result<String> {
    match tokio::fs::read(path).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Error::from_io("read", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unknown_name_is_told_apart() {
        let error = resolve("a", "no such user").await.unwrap_err();
        assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::UnknownUser, .. }), "{error:?}");
    }
}
