//! Names of a paused container, resolved by the engine's archive calls.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use super::capabilities::hidden;
use super::engine_files::within;
use super::tar_index::clean_name;
use super::transfer::{consume, download, first_bytes};
use crate::container::engine::SLOW_CALL_TIMEOUT;
use crate::container::lookup::{MAX_LINKS, join};
use crate::container::shared::Shared;
use crate::error::{Error, GoneReason, Result};
use crate::files::{FileKind, LinkTarget, Metadata, escape_bytes};
use crate::path::WorkspacePath;
use crate::tar::{Member, MemberKind, TarReader};

/// What becomes of a link in the last component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

/// Where a name leads.
#[derive(Debug)]
pub(crate) struct Place {
    /// The deepest directory on the way that exists: absolute, without links, in the root.
    pub(crate) dir: String,
    /// What comes below it: nothing when the name is `dir` itself, the last component when only
    /// that may be missing.
    pub(crate) below: Vec<String>,
    /// What is there; [`None`] when nothing is.
    pub(crate) found: Option<Metadata>,
}

impl Place {
    pub(crate) fn path(&self) -> String {
        self.below.iter().fold(self.dir.clone(), |path, name| join(&path, name))
    }
}

/// Follows `path` from the root, one component and one link at a time.
pub(crate) async fn resolve(shared: &Shared, path: &WorkspacePath, last: Last) -> Result<Place> {
    let left = path.elements().map(str::to_owned).rev().collect();
    resolve_from(shared, Vec::new(), left, path.as_str(), last).await
}

/// Follows `left`, whose next component is the last one, from the directory `inside` of the root,
/// which holds no link.
pub(super) async fn resolve_from(
    shared: &Shared,
    mut inside: Vec<String>,
    mut left: Vec<String>,
    name: &str,
    last: Last,
) -> Result<Place> {
    hidden(shared, &shared.root)?;
    let directory = |inside: &[String]| inside.iter().fold(shared.root.clone(), |dir, name| join(&dir, name));
    let Some(mut found) = head(shared, &directory(&inside)).await?.filter(Metadata::is_dir) else {
        return Err(Error::Gone { why: GoneReason::RootRemoved });
    };
    let mut links = 0;
    while let Some(component) = left.pop() {
        match component.as_str() {
            "" | "." => continue,
            ".." if inside.pop().is_none() => return Err(Error::OutsideWorkspace { path: name.to_owned() }),
            ".." => continue,
            _ => {}
        }
        let dir = directory(&inside);
        let here = join(&dir, &component);
        hidden(shared, &here)?;
        let next = match head(shared, &here).await {
            Err(Error::TooManyLinks { .. }) if left.is_empty() && last == Last::Keep => {
                Some(looping_link(shared, &here).await?.0)
            }
            Err(Error::TooManyLinks { .. }) => return Err(Error::TooManyLinks { path: name.to_owned() }),
            other => other?,
        };
        let Some(next) = next else {
            return missing(dir, component, left, name);
        };
        if next.is_symlink() && (!left.is_empty() || last == Last::Follow) {
            links += 1;
            if links > MAX_LINKS {
                return Err(Error::TooManyLinks { path: name.to_owned() });
            }
            let target = link_target(shared, &here, name).await?;
            let target = target.as_str().ok_or_else(|| Error::OutsideWorkspace { path: name.to_owned() })?;
            if target.starts_with('/') {
                return Err(Error::OutsideWorkspace { path: name.to_owned() });
            }
            left.extend(target.split('/').rev().map(str::to_owned));
            continue;
        }
        if next.is_dir() {
            inside.push(component);
        } else if left.is_empty() {
            return Ok(Place { dir, below: vec![component], found: Some(next) });
        } else {
            return Err(Error::NotADirectory { path: name.to_owned() });
        }
        found = next;
    }
    let dir = directory(&inside);
    if !inside.is_empty() {
        found = head(shared, &dir).await?.ok_or_else(|| Error::NotFound { path: name.to_owned() })?;
    }
    Ok(Place { dir, below: Vec::new(), found: Some(found) })
}

/// A name that ends in nothing. What is missing can be made unless `..` climbs out of it.
fn missing(dir: String, component: String, left: Vec<String>, name: &str) -> Result<Place> {
    let mut below = vec![component];
    below.extend(left.into_iter().rev().filter(|component| !matches!(component.as_str(), "" | ".")));
    if below.iter().any(|component| component == "..") {
        return Err(Error::NotFound { path: name.to_owned() });
    }
    Ok(Place { dir, below, found: None })
}

/// What is at an absolute path, a link in its last component not followed; one that leads to itself
/// is [`Error::TooManyLinks`].
pub(super) async fn head(shared: &Shared, path: &str) -> Result<Option<Metadata>> {
    let Some(stat) = shared.engine.stat(&shared.id, path).await? else { return Ok(None) };
    let size = u64::try_from(stat.size).unwrap_or(0);
    let modified = stat.modification_time.as_deref().and_then(parse_time).unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(Some(Metadata::new(kind(stat.file_mode), size, permissions(stat.file_mode), modified)))
}

/// The kind in a `mode` of the engine, which is Go's `os.FileMode`.
fn kind(mode: u32) -> FileKind {
    let has = |bit: u32| mode & 1 << bit != 0;
    // An engine may set the bit of a directory beside that of a link.
    match () {
        () if has(27) => FileKind::Symlink,
        () if has(31) => FileKind::Directory,
        () if has(26) && has(21) => FileKind::CharDevice,
        () if has(26) => FileKind::BlockDevice,
        () if has(25) => FileKind::Fifo,
        () if has(24) => FileKind::Socket,
        () if has(19) => FileKind::Unknown,
        () => FileKind::File,
    }
}

/// The permission bits in a `mode` of the engine as the kernel has them.
fn permissions(mode: u32) -> u32 {
    let bit = |go: u32, unix: u32| if mode & 1 << go == 0 { 0 } else { unix };
    mode & 0o777 | bit(23, 0o4000) | bit(22, 0o2000) | bit(20, 0o1000)
}

/// The time of an engine, in its own time zone.
fn parse_time(text: &str) -> Option<SystemTime> {
    if text.ends_with('Z') {
        return humantime::parse_rfc3339(text).ok();
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let local = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let shift = Duration::from_secs(hours.parse::<u64>().ok()? * 3600 + minutes.parse::<u64>().ok()? * 60);
    if zone.starts_with('+') { local.checked_sub(shift) } else { local.checked_add(shift) }
}

/// What the link at an absolute path holds. The engine's `HEAD` says where it leads instead.
pub(super) async fn link_target(shared: &Shared, path: &str, name: &str) -> Result<LinkTarget> {
    let entry = match first_entry(shared, path).await {
        // So the engine refuses a link that leads to itself.
        Err(refusal @ Error::Engine { status: Some(500), .. }) => {
            return looping_link(shared, path).await.map(|link| link.1).map_err(|_| refusal);
        }
        other => other?,
    };
    match entry.kind {
        MemberKind::Symlink if !entry.link.is_empty() => Ok(LinkTarget::new(entry.link)),
        _ => Err(Error::NotALink { path: name.to_owned() }),
    }
}

/// The link at an absolute path that leads to itself, and what it holds.
///
/// The engine looks where a link leads before it answers anything about it, but not so for what it
/// meets in a directory.
pub(super) async fn looping_link(shared: &Shared, path: &str) -> Result<(Metadata, LinkTarget)> {
    let (dir, name) = path.rsplit_once('/').unwrap_or_default();
    let wanted = name.as_bytes().to_vec();
    let archive = download(shared, &format!("{dir}/."));
    let reading = consume(archive, move |reader| {
        let mut archive = TarReader::new(|buf: &mut [u8]| {
            reader.read(buf).map_err(|error| Error::from_io("read", "an archive", error))
        });
        while let Some(entry) = archive.next()? {
            if entry.kind == MemberKind::Symlink && clean_name(&entry.name)? == wanted {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    });
    let entry = within(SLOW_CALL_TIMEOUT, "looking up a link", reading).await?;
    let entry = entry.ok_or_else(|| Error::Engine {
        operation: format!("look up `{}` in the container", path.escape_debug()),
        status: Some(500),
        message: "it did not say why".to_owned(),
    })?;
    let seconds = u64::try_from(entry.modified.seconds).unwrap_or(0);
    let modified = SystemTime::UNIX_EPOCH + Duration::new(seconds, entry.modified.nanos);
    let metadata = Metadata::new(FileKind::Symlink, entry.link.len() as u64, entry.mode & 0o7777, modified);
    Ok((metadata, LinkTarget::new(entry.link)))
}

/// The first entry in an archive of the engine.
pub(super) async fn first_entry(shared: &Shared, path: &str) -> Result<Member> {
    let mut head = first_bytes(shared, path).await?;
    let odd = |detail: String| Error::Engine {
        operation: format!("read `{}` from the container", escape_bytes(path.as_bytes())),
        status: None,
        message: detail,
    };
    let read = |buf: &mut [u8]| head.read(buf).map_err(|error| odd(error.to_string()));
    match TarReader::new(read).next() {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(odd("the archive is empty".to_owned())),
        Err(error) => Err(odd(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_zone_are_read() {
        let utc = parse_time("2026-11-30T21:24:02.226982139Z").unwrap();
        assert_eq!(parse_time("2026-11-30T22:54:02.226982139+01:30"), Some(utc));
        assert_eq!(parse_time("2026-11-30T20:24:02.226982139-01:00"), Some(utc));
        assert_eq!(parse_time("yesterday"), None);
    }

    #[test]
    fn modes_of_the_engine_are_translated() {
        assert_eq!(kind(0x0800_01ff), FileKind::Symlink);
        assert_eq!(kind(0x8800_01ff), FileKind::Symlink);
        assert_eq!(kind(1 << 31 | 0o755), FileKind::Directory);
        assert_eq!(kind(1 << 26 | 1 << 21), FileKind::CharDevice);
        assert_eq!(permissions(1 << 23 | 1 << 20 | 0o751), 0o5751);
    }
}
