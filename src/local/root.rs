//! The confined directory handle that every file operation goes through.
//!
//! Nothing below the root is ever named by a path of this process: a name is resolved from the
//! handle by cap-std, which keeps it beneath, and what is done then is done on the handle that
//! came out and one last element.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, OpenOptionsExt as _};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};

use crate::error::{Error, GoneReason, Result};
use crate::files::{FileKind, Metadata};
use crate::path::WorkspacePath;

/// A directory and nothing outside of it.
#[derive(Debug)]
pub(super) struct Root {
    dir: Dir,
    path: PathBuf,
}

/// A directory handle and the name of something in it: what may be acted on without a race.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
}

impl Root {
    /// Opens an existing directory of this machine.
    pub(super) fn open(path: &Path) -> Result<Root> {
        let shown = path.display().to_string();
        let open = || {
            let path = path.canonicalize()?;
            let dir = Dir::open_ambient_dir(&path, cap_std::ambient_authority())?;
            Ok(Root { dir, path })
        };
        open().map_err(|source| Error::from_io("open", &shown, source))
    }

    /// Its absolute path when it was opened. Only for showing.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when the directory has been removed: it has no name any more.
    pub(super) fn check(&self) -> Result<()> {
        match rustix::fs::fstat(&self.dir) {
            Ok(stat) if stat.st_nlink == 0 => Err(Error::Gone { why: GoneReason::RootRemoved }),
            _ => Ok(()),
        }
    }

    /// A handle for a directory, links followed, that can be looked up in without being readable.
    pub(super) fn dir(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        Ok(OwnedFd::from(self.dir.open_dir(path)?.into_std_file()))
    }

    /// The directory that holds `path` and the last element.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for the root, which nothing holds.
    pub(super) fn place(&self, operation: &'static str, path: &WorkspacePath) -> Result<Place> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::InvalidArgument {
                reason: format!("the workspace's root is not there to {operation}: name something below it"),
            });
        };
        let dir = self.dir(parent.as_str()).map_err(|e| error(operation, path.as_str(), e))?;
        Ok(Place { dir, name: name.into() })
    }

    /// A handle that stands for whatever `path` leads to, without opening it.
    pub(super) fn handle(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        self.open_with(path, OFlags::PATH)
    }

    /// Opens what `path` leads to for reading. Nothing is waited for: a FIFO without a writer
    /// opens at once, and the caller looks at what it got.
    pub(super) fn open_nonblocking(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        self.open_with(path, OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    fn open_with(&self, path: impl AsRef<Path>, flags: OFlags) -> io::Result<OwnedFd> {
        let mut options = cap_std::fs::OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        Ok(OwnedFd::from(self.dir.open_with(path, &options)?.into_std()))
    }
}

impl From<OwnedFd> for Root {
    /// A directory that is open already, as narrower confinement within one operation.
    fn from(dir: OwnedFd) -> Root {
        Root { dir: Dir::from_std_file(File::from(dir)), path: PathBuf::new() }
    }
}

/// The error by which cap-std reports that a name leaves: it has a kind, but no number.
pub(super) fn escape() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the name leads outside")
}

/// What `source`, from a confined operation on `path`, means.
///
/// Resolving beneath a handle reports a name that leaves as `PermissionDenied` without an errno,
/// while a file that may not be touched has EACCES or EPERM.
pub(super) fn error(operation: impl Into<Cow<'static, str>>, path: &str, source: io::Error) -> Error {
    let carries = source.get_ref().is_some_and(|inner| inner.is::<Error>());
    if source.kind() == io::ErrorKind::PermissionDenied && source.raw_os_error().is_none() && !carries {
        return Error::OutsideWorkspace { path: path.to_owned() };
    }
    Error::from_io(operation, path, source)
}

/// What `name` in `dir` is, a link not followed.
pub(super) fn stat_at(dir: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Stat> {
    Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Opens the directory `name` in `dir` for listing; not through a link.
pub(super) fn open_dir_at(dir: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// A handle for the directory `name` in `dir`, which need not be readable; not through a link.
pub(super) fn dir_handle_at(dir: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Sets the permission bits of what a handle stands for.
///
/// `fchmod` refuses an `O_PATH` handle, and one for reading cannot be had of an unreadable file,
/// so the handle is named by its magic link in `/proc`, which no directory lookup is part of.
pub(super) fn chmod_handle(handle: &OwnedFd, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let mode = Mode::from_raw_mode(mode);
    match rustix::fs::fchmod(handle, mode) {
        Err(rustix::io::Errno::BADF) => {}
        done => return Ok(done?),
    }
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Ok(rustix::fs::chmodat(rustix::fs::CWD, link, mode, AtFlags::empty())?)
}

/// Flushes the names in a directory to disk. One that may not be read cannot be opened for that,
/// and is left to the kernel.
pub(super) fn sync_dir(dir: &OwnedFd) -> io::Result<()> {
    match open_dir_at(dir, ".") {
        Ok(readable) => match rustix::fs::fsync(readable) {
            // Some file systems do not flush directories and say so by EINVAL.
            Err(rustix::io::Errno::INVAL) => Ok(()),
            done => Ok(done?),
        },
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e) => Err(e),
    }
}

/// What a `stat` says.
pub(super) fn metadata(stat: &Stat) -> Metadata {
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let kind = FileKind::from_st_mode(stat.st_mode);
    Metadata::new(kind, size, stat.st_mode, modified(stat)).owner(stat.st_uid, stat.st_gid)
}

/// When the content last changed; before 1970 too.
fn modified(stat: &Stat) -> SystemTime {
    #[expect(clippy::unnecessary_cast, reason = "the field is not u64 on every architecture")]
    let nanos = Duration::from_nanos(stat.st_mtime_nsec as u64);
    let whole = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let base = if stat.st_mtime < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    base.and_then(|time| time.checked_add(nanos)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The error for something of this kind where a regular file is wanted; `None` for a regular file.
pub(super) fn not_a_file(path: &str, kind: FileKind) -> Option<Error> {
    let path = path.to_owned();
    match kind {
        FileKind::File => None,
        FileKind::Directory => Some(Error::IsADirectory { path }),
        kind => Some(Error::NotAFile { path, kind }),
    }
}

/// A regular file opened by `open`, checked and set to block again.
pub(super) fn regular(path: &str, file: OwnedFd) -> Result<(File, Stat)> {
    let checked = || -> io::Result<Stat> {
        let stat = rustix::fs::fstat(&file)?;
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        Ok(stat)
    };
    let stat = checked().map_err(|e| error("open", path, e))?;
    match not_a_file(path, FileKind::from_st_mode(stat.st_mode)) {
        Some(refused) => Err(refused),
        None => Ok((File::from(file), stat)),
    }
}
