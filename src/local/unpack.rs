//! Unpacking an archive: each entry is checked, then made through handles.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, Mode, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::feed::Source;
use super::replacement::Replacement;
use super::root::{self, Root};
use super::target;
use super::tasks::Stop;
use crate::error::{Error, Result};
use crate::files::{ArchiveReport, FileKind, UnpackOptions};
use crate::path::WorkspacePath;
use crate::tar::{Member, MemberKind, TarReader, Time};

/// How many bytes of names of directories are held until the end.
const MAX_HELD_NAMES: usize = 256 << 20;

/// Unpacks a tar stream below `dir`.
pub(super) fn unpack(
    root: &Root,
    dir: &WorkspacePath,
    source: &mut Source,
    options: UnpackOptions,
    stop: &Stop,
) -> Result<ArchiveReport> {
    let base = target::make_all(root, dir.as_str());
    let base = base.map_err(|e| root::error("unpack into", dir.as_str(), e))?;
    let mut unpacker = Unpacker {
        base: Root::from(base),
        dir,
        options,
        stop,
        report: ArchiveReport::default(),
        made: BTreeMap::new(),
        made_bytes: 0,
        parent: None,
    };
    let mut reader = TarReader::new(|buf: &mut [u8]| source.next(buf, dir.as_str(), stop));
    let entries = unpacker.entries(&mut reader);
    // Directories got what was unpacked before a failure, so they get their modes as well.
    let finished = unpacker.finish();
    entries.and(finished).map(|()| unpacker.report)
}

struct Unpacker<'a> {
    base: Root,
    dir: &'a WorkspacePath,
    options: UnpackOptions,
    stop: &'a Stop,
    report: ArchiveReport,
    /// Directories of the archive, whose modes and times are set at the end: a mode may forbid to
    /// unpack into them, and unpacking changes the time.
    made: BTreeMap<Vec<u8>, (u32, Time)>,
    /// How long the names in `made` are together.
    made_bytes: usize,
    /// The directory of the entry before, which is most often that of the next.
    parent: Option<(Vec<u8>, OwnedFd)>,
}

impl Unpacker<'_> {
    fn entries(&mut self, reader: &mut TarReader<impl FnMut(&mut [u8]) -> Result<usize>>) -> Result<()> {
        while let Some(mut member) = reader.next()? {
            self.stop.check()?;
            member.mode &= self.options.mode_mask;
            self.count(&member)?;
            self.entry(&member, reader)?;
        }
        Ok(())
    }

    /// Counts an entry before anything of it is written.
    fn count(&mut self, member: &Member) -> Result<()> {
        let too_large = |limit| Error::TooLarge { path: self.dir.to_string(), limit };
        let entries = self.report.entries + 1;
        if let Some(limit) = self.options.max_entries.filter(|limit| entries > *limit) {
            return Err(too_large(limit));
        }
        let size = if member.kind == MemberKind::File { member.size } else { 0 };
        let bytes = self.report.bytes.checked_add(size).ok_or_else(|| too_large(u64::MAX))?;
        if let Some(limit) = self.options.max_bytes.filter(|limit| bytes > *limit) {
            return Err(too_large(limit));
        }
        self.report = ArchiveReport::new(entries, bytes);
        Ok(())
    }

    fn entry(
        &mut self,
        member: &Member,
        reader: &mut TarReader<impl FnMut(&mut [u8]) -> Result<usize>>,
    ) -> Result<()> {
        let name = relative(&member.name).map_err(|reason| refused(member, reason))?;
        if member.kind == MemberKind::Directory {
            return self.directory(member, name);
        }
        let Some(last) = name.last().copied() else {
            return Err(refused(member, "only a directory can be unpacked as the directory itself"));
        };
        if let MemberKind::Other(flag) = member.kind {
            return Err(refused(member, &what(flag)));
        }
        let parent = self.parent(member, &name[..name.len() - 1])?;
        let old = match root::stat_at(&parent, last) {
            Ok(stat) if FileKind::from_st_mode(stat.st_mode) == FileKind::Directory => {
                return Err(refused(member, "a directory is there, which a file does not replace"));
            }
            Ok(stat) => Some(stat),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(self.failed(member, e)),
        };
        match member.kind {
            MemberKind::HardLink => self.hard_link(member, &parent, last, old.as_ref())?,
            MemberKind::Symlink => {
                self.symlink(&parent, last, member, old.is_some()).map_err(|e| self.failed(member, e))?;
            }
            _ => self.file(member, reader, &parent, last)?,
        }
        self.parent = Some((name[..name.len() - 1].join(&b'/'), parent));
        Ok(())
    }

    /// The directory for an entry, made if it is missing.
    fn parent(&mut self, member: &Member, elements: &[&[u8]]) -> Result<OwnedFd> {
        let name = elements.join(&b'/');
        match self.parent.take() {
            Some((known, dir)) if known == name => Ok(dir),
            _ => self.open_below(&name, true).map_err(|e| self.failed(member, e)),
        }
    }

    /// Opens a directory below the one that is unpacked into, and keeps to that: a link which
    /// leads out of it is refused, even if it stays in the workspace.
    fn open_below(&self, name: &[u8], make: bool) -> io::Result<OwnedFd> {
        let path = OsStr::from_bytes(if name.is_empty() { b"." } else { name });
        if make { target::make_all(&self.base, path) } else { self.base.dir(path) }
    }

    fn directory(&mut self, member: &Member, name: Vec<&[u8]>) -> Result<()> {
        self.parent = None;
        if let Some((last, above)) = name.split_last() {
            let parent = self.parent(member, above)?;
            let make = || Ok(rustix::fs::mkdirat(&parent, *last, Mode::RWXU)?);
            let made = match root::stat_at(&parent, *last) {
                Ok(stat) => match FileKind::from_st_mode(stat.st_mode) {
                    FileKind::Directory => Ok(()),
                    FileKind::Symlink => {
                        unlink(&parent, last).and_then(|()| make()).map_err(|e| self.failed(member, e))
                    }
                    kind => Err(refused(
                        member,
                        &format!("a {kind} is there, which a directory does not replace"),
                    )),
                },
                Err(e) if e.kind() == io::ErrorKind::NotFound => make().map_err(|e| self.failed(member, e)),
                Err(e) => Err(self.failed(member, e)),
            };
            made?;
        }
        let name = name.join(&b'/');
        let length = name.len();
        if self.made.insert(name, (member.mode, member.modified)).is_none() {
            self.made_bytes += length;
        }
        if self.made_bytes > MAX_HELD_NAMES {
            return Err(refused(member, "the names of the archive's directories are too long together"));
        }
        Ok(())
    }

    fn file(
        &self,
        member: &Member,
        reader: &mut TarReader<impl FnMut(&mut [u8]) -> Result<usize>>,
        parent: &OwnedFd,
        name: &[u8],
    ) -> Result<()> {
        let fail = |e| self.failed(member, e);
        let mut temp = Replacement::create(parent).map_err(fail)?;
        let file = temp.file();
        reader.data(member, |offset, data| {
            self.stop.check()?;
            file.write_all_at(data, offset).map_err(fail)
        })?;
        if member.is_sparse() {
            file.set_len(member.size).map_err(fail)?;
        }
        seal(file, member).map_err(fail)?;
        self.stop.check()?;
        temp.rename(name).map_err(fail)
    }

    fn symlink(&self, parent: &OwnedFd, name: &[u8], member: &Member, replace: bool) -> io::Result<()> {
        if replace {
            unlink(parent, name)?;
        }
        rustix::fs::symlinkat(&member.link[..], parent, name)?;
        set_time(parent, name, member.modified)
    }

    fn hard_link(&self, member: &Member, parent: &OwnedFd, name: &[u8], old: Option<&Stat>) -> Result<()> {
        let target =
            relative(&member.link).map_err(|reason| refused(member, &format!("as a link, {reason}")))?;
        let Some((last, above)) = target.split_last() else {
            return Err(refused(member, "it links to a directory"));
        };
        let link = || -> io::Result<Option<&str>> {
            let dir = self.open_below(&above.join(&b'/'), false)?;
            let there = root::stat_at(&dir, *last)?;
            if FileKind::from_st_mode(there.st_mode) == FileKind::Directory {
                return Ok(Some("it links to a directory"));
            }
            if let Some(old) = old {
                if (old.st_dev, old.st_ino) == (there.st_dev, there.st_ino) {
                    return Ok(None);
                }
                unlink(parent, name)?;
            }
            rustix::fs::linkat(dir, *last, parent, name, AtFlags::empty())?;
            Ok(None)
        };
        match link() {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(refused(member, reason)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(refused(member, "what it links to does not exist"))
            }
            Err(e) => Err(self.failed(member, e)),
        }
    }

    /// Sets modes and times of directories, the deepest first, because a mode may close the way.
    fn finish(&self) -> Result<()> {
        for (name, (mode, modified)) in self.made.iter().rev() {
            let set = || -> io::Result<()> {
                let split = name.iter().rposition(|byte| *byte == b'/');
                let (above, last) = match split {
                    Some(slash) => (&name[..slash], &name[slash + 1..]),
                    None => (&b""[..], &name[..]),
                };
                let (parent, last) = if last.is_empty() {
                    (self.open_below(b"", false)?, &b"."[..])
                } else {
                    (self.open_below(above, false)?, last)
                };
                // Its time first: afterwards the directory may be closed to this user.
                set_time(&parent, last, *modified)?;
                root::chmod_handle(&root::dir_handle_at(&parent, last)?, *mode)
            };
            set().map_err(|e| root::error("set the mode of", &self.shown(name), e))?;
        }
        Ok(())
    }

    /// What an error of the system means for an entry.
    fn failed(&self, member: &Member, source: io::Error) -> Error {
        match root::error("unpack", &self.shown(&member.name), source) {
            Error::OutsideWorkspace { .. } => refused(member, "it leads out of the directory through a link"),
            Error::NotADirectory { .. } => refused(member, "a component of its name is not a directory"),
            Error::TooManyLinks { .. } => refused(member, "its name leads through too many links"),
            Error::IsADirectory { .. } => refused(member, "a directory is there"),
            Error::Io { source, .. } if source.raw_os_error() == Some(libc::ENAMETOOLONG) => {
                refused(member, "its name is too long")
            }
            Error::NotFound { .. } | Error::AlreadyExists { .. } => {
                refused(member, "the directory changed while it was unpacked")
            }
            error => error,
        }
    }

    fn shown(&self, name: &[u8]) -> String {
        format!("{}/{}", self.dir, crate::files::escape_bytes(name))
    }
}

/// The elements of an entry's name, `.` left out.
fn relative(name: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    if name.starts_with(b"/") {
        return Err("its name is absolute");
    }
    if name.is_empty() {
        return Err("its name is empty");
    }
    if name.contains(&0) {
        return Err("its name holds a NUL byte");
    }
    let elements: Vec<_> =
        name.split(|byte| *byte == b'/').filter(|element| !matches!(*element, b"" | b".")).collect();
    if elements.contains(&&b".."[..]) {
        return Err("its name has a `..` element");
    }
    Ok(elements)
}

fn refused(member: &Member, reason: &str) -> Error {
    Error::Archive { entry: member.shown(), reason: reason.to_owned() }
}

/// Why an entry of this type is not unpacked.
fn what(flag: u8) -> String {
    match flag {
        b'3' => "it is a character device".to_owned(),
        b'4' => "it is a block device".to_owned(),
        b'6' => "it is a FIFO".to_owned(),
        b'M' => "it is the rest of a file from another volume".to_owned(),
        other => format!("its type `{}` is not known", char::from(other).escape_default()),
    }
}

/// Removes what is not a directory; that it has vanished is no error.
fn unlink(parent: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives a file its mode and time.
fn seal(file: &File, member: &Member) -> io::Result<()> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(member.mode))?;
    Ok(rustix::fs::futimens(file.as_fd(), &times(member.modified))?)
}

/// Sets the time of what has a name, a link not followed.
fn set_time(parent: &OwnedFd, name: &[u8], modified: Time) -> io::Result<()> {
    Ok(rustix::fs::utimensat(parent, name, &times(modified), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn times(modified: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() },
    }
}
