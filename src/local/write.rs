//! Writing a file: in one step where that is possible, otherwise over what is there.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::{FallocateFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::feed::{PIECE_BYTES, Source};
use super::replacement::Replacement;
use super::root::{self, Place, Root};
use super::target;
use super::tasks::Stop;
use crate::error::{Error, Result};
use crate::files::{FileKind, WriteMethod, WriteOptions, Written};

/// Creates or replaces the regular file `path`.
pub(super) fn write(
    root: &Root,
    path: &str,
    source: &mut Source,
    options: WriteOptions,
    stop: &Stop,
) -> Result<Written> {
    let fail = |e| root::error("write", path, e);
    let place = target::target(root, path, options.parents).map_err(fail)?;
    let old = existing(&place, path)?;
    let mut temp = match (Replacement::create(&place.dir), old) {
        (Ok(temp), _) => temp,
        (Err(e), Some(_)) if no_room_beside(&e) => {
            let (mut source, bytes) = spool(source, path, stop)?;
            return over(&place, path, &mut source, bytes, stop);
        }
        (Err(e), _) => return Err(fail(e)),
    };
    let bytes = copy(source, temp.file(), path, stop)?;
    if replace(&mut temp, &place, old.as_ref(), options.mode, stop, path)? {
        return Ok(Written::new(bytes, WriteMethod::Atomic));
    }
    let mut written = temp.file().try_clone().map_err(fail)?;
    written.rewind().map_err(fail)?;
    over(&place, path, &mut whole(written), bytes, stop)
}

/// What is there already: a regular file, nothing, or something that is refused.
fn existing(place: &Place, path: &str) -> Result<Option<Stat>> {
    match root::stat_at(&place.dir, &place.name) {
        Ok(stat) => match root::not_a_file(path, FileKind::from_st_mode(stat.st_mode)) {
            // A link that was not there when the name was resolved will be replaced as a link.
            None | Some(Error::NotAFile { kind: FileKind::Symlink, .. }) => {
                Ok(Some(stat).filter(|stat| FileKind::from_st_mode(stat.st_mode) == FileKind::File))
            }
            Some(refused) => Err(refused),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(root::error("write", path, e)),
    }
}

/// Whether the file itself may still be written although its directory took no new file.
fn no_room_beside(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOSPC | Errno::DQUOT)
    )
}

/// Gives the temporary file mode and owner and renames it to its place. `false` when an existing
/// file cannot be replaced like that.
fn replace(
    temp: &mut Replacement<'_>,
    place: &Place,
    old: Option<&Stat>,
    mode: u32,
    stop: &Stop,
    path: &str,
) -> Result<bool> {
    let fail = |e| root::error("write", path, e);
    let file = temp.file();
    if let Some(old) = old {
        match keep_owner(file, old) {
            Err(Errno::PERM) => return Ok(false),
            done => done.map_err(|errno| fail(errno.into()))?,
        }
    }
    let mode = old.map_or(mode, |old| old.st_mode & 0o7777);
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map_err(|errno| fail(errno.into()))?;
    file.sync_all().map_err(fail)?;
    stop.check()?;
    match temp.rename(&place.name) {
        Ok(()) => {}
        // A mount point is busy, a sticky directory refuses to replace another's file.
        Err(e)
            if old.is_some()
                && matches!(
                    Errno::from_io_error(&e),
                    Some(Errno::BUSY | Errno::XDEV | Errno::PERM | Errno::ACCESS)
                ) =>
        {
            return Ok(false);
        }
        Err(e) => return Err(fail(e)),
    }
    root::sync_dir(&place.dir).map_err(fail)?;
    Ok(true)
}

/// Gives `file` the owner of `old`, if it has another.
fn keep_owner(file: &File, old: &Stat) -> rustix::io::Result<()> {
    let new = rustix::fs::fstat(file)?;
    let uid = (new.st_uid != old.st_uid).then(|| Uid::from_raw(old.st_uid));
    let gid = (new.st_gid != old.st_gid).then(|| Gid::from_raw(old.st_gid));
    if uid.is_none() && gid.is_none() {
        return Ok(());
    }
    rustix::fs::fchown(file, uid, gid)
}

/// The content read whole: memory as it is, everything else in an unnamed temporary file.
fn spool(source: &mut Source, path: &str, stop: &Stop) -> Result<(Source, u64)> {
    if let Source::Bytes(bytes) = source {
        return Ok((Source::Bytes(bytes.clone()), bytes.len() as u64));
    }
    let fail = |e| root::error("spool the content for", path, e);
    let mut file = tempfile::tempfile().map_err(fail)?;
    let bytes = copy(source, &file, path, stop)?;
    file.rewind().map_err(fail)?;
    Ok((whole(file), bytes))
}

/// All of a file from where it is.
fn whole(file: File) -> Source {
    use std::io::Read as _;
    Source::File(file.take(u64::MAX))
}

/// Writes `bytes` bytes over an existing file.
///
/// Space is reserved before the first byte, so that a full disk leaves the old content where the
/// file system can tell beforehand.
fn over(place: &Place, path: &str, source: &mut Source, bytes: u64, stop: &Stop) -> Result<Written> {
    let fail = |e| root::error("write", path, e);
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())
        .map_err(|errno| fail(errno.into()))?;
    let (file, old) = root::regular(path, file)?;
    // Not every file system can reserve, so other errors say nothing.
    if bytes > 0
        && let Err(errno @ (Errno::NOSPC | Errno::DQUOT)) =
            rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes)
    {
        return Err(fail(errno.into()));
    }
    copy(source, &file, path, stop)?;
    file.set_len(bytes).map_err(fail)?;
    // Writing as another than root takes the set-user-id bit away.
    let mode = rustix::fs::fstat(&file).map_err(|errno| fail(errno.into()))?.st_mode;
    if mode != old.st_mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o7777))
            .map_err(|errno| fail(errno.into()))?;
    }
    file.sync_all().map_err(fail)?;
    Ok(Written::new(bytes, WriteMethod::InPlace))
}

/// Writes all of `source` to `file`, and says how much it was.
fn copy(source: &mut Source, mut file: &File, path: &str, stop: &Stop) -> Result<u64> {
    let mut buf = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        let read = source.next(&mut buf, path, stop)?;
        if read == 0 {
            return Ok(bytes);
        }
        file.write_all(&buf[..read]).map_err(|e| root::error("write", path, e))?;
        bytes += read as u64;
    }
}
