//! Where a write goes, and the directories it needs on the way.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::root::{self, Place, Root};

/// How many links the last component of a name may lead through: the kernel's own bound.
const MAX_LINKS: usize = 40;

/// The mode of a directory that is made on the way.
pub(super) const DIR_MODE: u32 = 0o755;

/// Where a write to `path` goes: links in the last component are followed, also to what does not
/// exist. Each step is resolved beneath the root. Missing directories are made if `parents`.
pub(super) fn target(root: &Root, path: &str, parents: bool) -> io::Result<Place> {
    // The name is never tidied: the kernel must resolve `link/../x` itself.
    let mut current = path.as_bytes().to_vec();
    for _ in 0..=MAX_LINKS {
        let (parent, name) = split(&current);
        if matches!(name, b"" | b"." | b"..") {
            root.dir(OsStr::from_bytes(&current))?;
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let parent_path = OsStr::from_bytes(parent);
        let dir = if parents { make_all(root, parent_path) } else { root.dir(parent_path) }?;
        let link = match rustix::fs::readlinkat(&dir, name, Vec::new()) {
            Ok(link) => link.into_bytes(),
            // EINVAL is what is not a link, ENOENT what is not there.
            Err(Errno::INVAL | Errno::NOENT) => {
                return Ok(Place { dir, name: OsStr::from_bytes(name).into() });
            }
            Err(errno) => return Err(errno.into()),
        };
        if link.starts_with(b"/") {
            return Err(root::escape());
        }
        current = [parent, b"/", &link].concat();
    }
    Err(Errno::LOOP.into())
}

/// `path` as the bytes before its last `/` and those after; `.` before a name without one.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b".", path),
    }
}

/// Opens a directory, making what is missing of it with [`DIR_MODE`] under no umask.
///
/// A link that leads nowhere is not made good: it is `NotADirectory`.
pub(super) fn make_all(root: &Root, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let path = path.as_ref();
    match root.dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let mut prefix = PathBuf::new();
    let mut dir = root.dir(".")?;
    for element in path.components() {
        prefix.push(element);
        dir = match root.dir(&prefix) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => make_one(&dir, element.as_os_str())?,
            done => done?,
        };
    }
    Ok(dir)
}

/// Makes `name` in `dir` and opens it. That somebody else made it meanwhile is no error.
fn make_one(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(DIR_MODE)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return root::dir_handle_at(dir, name),
        Err(errno) => return Err(errno.into()),
    }
    let made = root::dir_handle_at(dir, name)?;
    let mode = rustix::fs::fstat(&made)?.st_mode & 0o7777;
    // The umask may have taken bits, and the parent's set-group-id bit is inherited.
    if mode & 0o777 != DIR_MODE {
        root::chmod_handle(&made, mode & 0o7000 | DIR_MODE)?;
    }
    Ok(made)
}
