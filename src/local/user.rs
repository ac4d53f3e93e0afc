//! Whom a command runs as: `name`, `uid` or `uid:gid`, looked up in `/etc/passwd` and `/etc/group`.
//!
//! The files are read by hand, because the C library's look-up may load modules and ask servers.

use std::io;

use crate::error::{Error, Result, SpawnErrorKind};

/// What a process is switched to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The supplementary groups, the primary one among them.
    pub(super) groups: Vec<u32>,
}

/// The credentials that `user` names; `None` when this process has them already, so that it need
/// not be allowed to switch.
///
/// A number alone takes the primary group that `/etc/passwd` says, or the group of the same
/// number when it is not in there.
///
/// # Errors
///
/// [`Error::Spawn`] with [`SpawnErrorKind::UnknownUser`] for a name that is not in `/etc/passwd`,
/// and for another user when this process is not root.
pub(super) async fn resolve(program: &str, user: &str) -> Result<Option<Credentials>> {
    let unknown = |reason: String| Error::Spawn {
        program: program.to_owned(),
        kind: SpawnErrorKind::UnknownUser,
        source: Some(reason.into()),
    };
    let passwd = read("/etc/passwd").await?;
    let group = read("/etc/group").await?;
    let credentials = find(&passwd, &group, user)
        .ok_or_else(|| unknown(format!("`{user}` is neither in /etc/passwd nor `uid` or `uid:gid`")))?;
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

fn find(passwd: &str, group: &str, user: &str) -> Option<Credentials> {
    if let Some((uid, gid)) = user.split_once(':') {
        let (uid, gid) = (number(uid)?, number(gid)?);
        return Some(Credentials { uid, gid, groups: vec![gid] });
    }
    let uid = number(user);
    let entry = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        let (id, gid) = (number(id)?, number(gid)?);
        (name == user || uid == Some(id)).then_some((name, id, gid))
    });
    match (entry, uid) {
        (Some((name, uid, gid)), _) => Some(Credentials { uid, gid, groups: groups_of(group, name, gid) }),
        (None, Some(uid)) => Some(Credentials { uid, gid: uid, groups: vec![uid] }),
        (None, None) => None,
    }
}

/// A user or group number. The highest one means "leave it as it is" to the kernel.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != u32::MAX)
}

/// The groups that list `name` as a member, after its primary one.
fn groups_of(group: &str, name: &str, primary: u32) -> Vec<u32> {
    let mut groups = vec![primary];
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [_, _, gid, members] = fields[..]
            && let Some(gid) = number(gid)
            && members.split(',').any(|member| member == name)
            && !groups.contains(&gid)
        {
            groups.push(gid);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/var:/bin/false\n7:x:8:8::/:\n";
    const GROUP: &str = "root:x:0:\nweb:x:34:\nlogs:x:40:root,web\n";

    #[test]
    fn a_user_is_a_name_a_number_or_both_numbers() {
        let credentials = |uid, gid, groups: &[u32]| Some(Credentials { uid, gid, groups: groups.to_vec() });
        for (user, expected) in [
            ("web", credentials(33, 34, &[34, 40])),
            ("33", credentials(33, 34, &[34, 40])),
            ("33:5", credentials(33, 5, &[5])),
            ("1234", credentials(1234, 1234, &[1234])),
            ("nobody", None),
            ("web:5", None),
            ("-1", None),
            ("4294967295", None),
        ] {
            assert_eq!(find(PASSWD, GROUP, user), expected, "{user}");
        }
    }

    #[tokio::test]
    async fn an_unknown_name_is_told_apart() {
        let error = resolve("a", "no such user").await.unwrap_err();
        assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::UnknownUser, .. }), "{error:?}");
    }
}
