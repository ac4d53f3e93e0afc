//! What a name stands for.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::engine_files;
use super::engine_walk::Last;
use super::script::{self, Dropped, script, unexpected};
use crate::container::shared::Shared;
use crate::error::Result;
use crate::files::{FileKind, LinkTarget, Metadata};
use crate::path::WorkspacePath;

pub(crate) async fn metadata(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<Metadata> {
    look_up(shared, path, Last::Follow).await
}

pub(crate) async fn symlink_metadata(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<Metadata> {
    look_up(shared, path, Last::Keep).await
}

async fn look_up(shared: &Arc<Shared>, path: &WorkspacePath, last: Last) -> Result<Metadata> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return shared.guard(engine_files::look_up(shared, path, last)).await;
    }
    let links = if last == Last::Follow { "follow" } else { "keep" };
    shared
        .guard(async {
            let args = [path.as_str(), links];
            let (said, ended) = script::answer(shared, script!("stat.sh"), &args, Dropped::Kill).await?;
            ended.check("look up", path.as_str())?;
            parse_facts(&String::from_utf8_lossy(&said))
        })
        .await
}

pub(crate) async fn read_link(shared: &Arc<Shared>, path: &WorkspacePath) -> Result<LinkTarget> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return shared.guard(engine_files::read_link(shared, path)).await;
    }
    shared
        .guard(async {
            let (said, ended) =
                script::answer(shared, script!("readlink.sh"), &[path.as_str()], Dropped::Kill).await?;
            ended.check("read the link", path.as_str())?;
            match said.strip_suffix(b"\n") {
                Some(target) => Ok(LinkTarget::new(target)),
                None => Err(unexpected("`readlink` did not end its line")),
            }
        })
        .await
}

/// The metadata in the line that `stat` prints for `facts` of `walk.sh`.
pub(super) fn parse_facts(line: &str) -> Result<Metadata> {
    parse(line).ok_or_else(|| unexpected("`stat` printed something unexpected"))
}

fn parse(line: &str) -> Option<Metadata> {
    let mut fields = line.trim_end().splitn(6, ' ');
    let mode = u32::from_str_radix(fields.next()?, 16).ok()?;
    let size = fields.next()?.parse().ok()?;
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanos = Duration::from_nanos(fraction(fields.next()?));
    let modified = match u64::try_from(seconds) {
        Ok(seconds) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)),
        Err(_) => SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())),
    };
    let modified = modified?.checked_add(nanos)?;
    Some(Metadata::new(FileKind::from_st_mode(mode), size, mode, modified).owner(uid, gid))
}

/// The nanoseconds in `2026-01-02 03:04:05.678901234 +0000`; 0 where `stat` prints no fraction.
fn fraction(date: &str) -> u64 {
    let digits = date.split_once('.').map_or("", |(_, digits)| digits);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).take(9).collect();
    format!("{digits:0<9}").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_every_stat_are_read() {
        let line = "81a4 6 1000 100 1796073842 2026-11-30 21:24:02.226982139 +0000\n";
        let metadata = parse_facts(line).unwrap();
        assert_eq!((metadata.kind, metadata.size, metadata.mode), (FileKind::File, 6, 0o644));
        assert_eq!((metadata.uid, metadata.gid), (Some(1000), Some(100)));
        let since = metadata.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since, Duration::new(1_796_073_842, 226_982_139));
        assert!(parse_facts("a1ff 1 0 0 -1 1969-12-31 23:59:59 +0000").unwrap().is_symlink());
        assert!(parse_facts("OCI runtime exec failed").is_err());
    }
}
