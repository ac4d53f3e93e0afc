//! Users and groups of a container, by number.

use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures::StreamExt as _;
use std::io::Read as _;

use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::shared::UserIds;
use crate::accounts::{Account, Unknown, UserSpec, home_of, name_of};
use crate::error::{Error, Result};

/// The largest account file that is read. Images have a few KiB.
const MAX_ACCOUNT_FILE: u64 = 1024 * 1024;

/// A user of a container.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) ids: UserIds,
    /// What the engine is told to run a command as this user. With a group it drops the supplementary
    /// ones, so it gets the bare name of an account that has some.
    pub(crate) words: String,
}

/// What `user` is in a container, by the rule of [`Command::user`](crate::Command::user); empty is
/// root, as an image that sets no user means.
pub(crate) async fn resolve(engine: &Engine, container: &str, user: &str) -> Result<User> {
    if user.is_empty() {
        return Ok(User { ids: UserIds { uid: 0, gid: 0 }, words: String::new() });
    }
    let spec = UserSpec::parse(user);
    // Each file is a request.
    let mut texts = [String::new(), String::new()];
    if spec.needs_passwd() {
        texts[0] = read_text(engine, container, "/etc/passwd").await?;
    }
    if spec.needs_group() {
        texts[1] = read_text(engine, container, "/etc/group").await?;
    }
    let [passwd, group] = &texts;
    let account = spec.resolve(passwd, group).map_err(|what| {
        let (what, name) = match what {
            Unknown::User(name) => ("user", name),
            Unknown::Group(name) => ("group", name),
        };
        Error::InvalidArgument { reason: format!("the container knows no {what} `{}`", name.escape_debug()) }
    })?;
    let ids = UserIds { uid: account.uid, gid: account.gid };
    let words = account_name(&account, passwd).map_or_else(|| ids.to_string(), str::to_owned);
    Ok(User { ids, words })
}

/// The name of an account that has supplementary groups, if it stands for the same numbers to the
/// engine, which takes a name of digits for either.
fn account_name<'a>(account: &Account, passwd: &'a str) -> Option<&'a str> {
    let name = name_of(passwd, account.uid).filter(|_| account.groups.len() > 1)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_name = name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_plain);
    let named = UserSpec::parse(name).resolve(passwd, "").ok()?;
    (is_name && (named.uid, named.gid) == (account.uid, account.gid)).then_some(name)
}

/// The home directory that an engine gives to processes of a user: that of its account, or `/`.
pub(crate) async fn home(engine: &Engine, container: &str, uid: u32) -> Result<String> {
    let passwd = read_text(engine, container, "/etc/passwd").await?;
    Ok(home_of(&passwd, uid).unwrap_or("/").to_owned())
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
