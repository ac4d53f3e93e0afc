//! Users and groups of a container, by number.

use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures::StreamExt as _;
use std::io::Read as _;

use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::shared::UserIds;
use crate::error::{Error, Result};

/// The largest account file that is read. Images have a few KiB.
const MAX_ACCOUNT_FILE: u64 = 1024 * 1024;

/// The numbers of `user` (`name`, `uid`, `uid:gid`, `name:group`; empty for root) in a container.
///
/// A number without a group gets the group of its account, or 0 when it has none, as the engine
/// would do.
pub(crate) async fn resolve(engine: &Engine, container: &str, user: &str) -> Result<UserIds> {
    let (name, group) = user.split_once(':').map_or((user, None), |(name, group)| (name, Some(group)));
    let unknown = |what: &str, name: &str| Error::InvalidArgument {
        reason: format!("the container knows no {what} `{}`", name.escape_debug()),
    };
    if name.is_empty() {
        return match group {
            None => Ok(UserIds { uid: 0, gid: 0 }),
            Some(_) => Err(unknown("user", name)),
        };
    }
    let number = name.parse::<u32>().ok();
    let account = match (number, group) {
        (Some(_), Some(_)) => None,
        _ => find_account(&read_text(engine, container, "/etc/passwd").await?, name, number),
    };
    let uid = number.or(account.map(|account| account.uid)).ok_or_else(|| unknown("user", name))?;
    let gid = match group {
        None => account.map_or(0, |account| account.gid),
        Some(group) => match group.parse::<u32>() {
            Ok(gid) => gid,
            Err(_) => find_group(&read_text(engine, container, "/etc/group").await?, group)
                .ok_or_else(|| unknown("group", group))?,
        },
    };
    Ok(UserIds { uid, gid })
}

/// The home directory that an engine gives to processes of a user: that of its account, or `/`.
pub(crate) async fn home(engine: &Engine, container: &str, uid: u32) -> Result<String> {
    let passwd = read_text(engine, container, "/etc/passwd").await?;
    Ok(find_home(&passwd, uid).unwrap_or("/").to_owned())
}

/// The home directory of a number's account in the text of `/etc/passwd`.
fn find_home(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        (fields.next()?.parse() == Ok(uid)).then(|| fields.nth(2))?
    })
}

/// The account of a name or a number in the text of `/etc/passwd`; a name goes first, as an
/// account may be named by digits.
fn find_account(passwd: &str, name: &str, number: Option<u32>) -> Option<UserIds> {
    let accounts = || {
        passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            Some((name, UserIds { uid, gid }))
        })
    };
    match number {
        None => accounts().find(|(account, _)| *account == name).map(|(_, ids)| ids),
        Some(number) => accounts().find(|(_, ids)| ids.uid == number).map(|(_, ids)| ids),
    }
}

/// The number of a group in the text of `/etc/group`.
fn find_group(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// The text of a small file of the image; empty when there is none.
async fn read_text(engine: &Engine, container: &str, path: &str) -> Result<String> {
    let Some(found) = engine.look_up(container, path).await? else {
        return Ok(String::new());
    };
    if found.is_directory() || found.size > MAX_ACCOUNT_FILE {
        return Err(Error::InvalidArgument {
            reason: format!("`{path}` of the container is not a list of accounts"),
        });
    }
    let options = DownloadFromContainerOptionsBuilder::default().path(&found.path).build();
    let download = async {
        let mut archive = Vec::new();
        let mut stream = engine.docker().download_from_container(container, Some(options));
        while let Some(part) = stream.next().await {
            archive.extend_from_slice(&part?);
            // A header, padding and the end of the archive come on top of the file.
            if archive.len() as u64 > MAX_ACCOUNT_FILE + 16 * 1024 {
                break;
            }
        }
        Ok(archive)
    };
    let archive = engine.call("read a file of the container", SLOW_CALL_TIMEOUT, download).await?;
    let failed = |source| Error::from_io("read", path, source);
    let mut archive = tar::Archive::new(archive.as_slice());
    let mut text = Vec::new();
    if let Some(entry) = archive.entries().map_err(failed)?.next() {
        let mut entry = entry.map_err(failed)?;
        entry.read_to_end(&mut text).map_err(failed)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1001::/home/agent:/bin/sh\nbroken\n";

    #[test]
    fn accounts_are_found_by_name_and_by_number() {
        let agent = Some(UserIds { uid: 1000, gid: 1001 });
        assert_eq!(find_account(PASSWD, "agent", None), agent);
        assert_eq!(find_account(PASSWD, "1000", Some(1000)), agent);
        assert_eq!(find_account(PASSWD, "7", Some(7)), None);
        assert_eq!(find_account(PASSWD, "broken", None), None);
        assert_eq!(find_home(PASSWD, 1000), Some("/home/agent"));
        assert_eq!(find_home(PASSWD, 7), None);
    }

    #[test]
    fn groups_are_found_by_name() {
        assert_eq!(find_group("root:x:0:\nwheel:x:10:agent\n", "wheel"), Some(10));
        assert_eq!(find_group("root:x:0:\n", "wheel"), None);
    }
}
