//! Changing the tree: directories, names, modes, copies.

use std::io::{self, Read as _};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::feed::Source;
use super::root::{self, Root};
use super::tasks::Stop;
use super::{read, target, write};
use crate::error::{Error, Result};
use crate::files::{FileKind, WriteOptions, Written};
use crate::path::WorkspacePath;

/// Makes a directory and its missing parents.
pub(super) fn create_dir_all(root: &Root, path: &WorkspacePath) -> Result<()> {
    match target::make_all(root, path.as_str()) {
        Ok(_) => Ok(()),
        // The last element is something else, or a component on the way is.
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => match read::symlink_metadata(root, path) {
            Ok(there) if !there.is_dir() => Err(Error::AlreadyExists { path: path.to_string() }),
            _ => Err(root::error("create", path.as_str(), e)),
        },
        Err(e) => Err(root::error("create", path.as_str(), e)),
    }
}

/// Removes a file, a link or an empty directory.
pub(super) fn remove(root: &Root, path: &WorkspacePath) -> Result<()> {
    let place = root.place("remove", path)?;
    let unlink = || -> io::Result<()> {
        let stat = root::stat_at(&place.dir, &place.name)?;
        let flags = match FileKind::from_st_mode(stat.st_mode) {
            FileKind::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(&place.dir, &place.name, flags) {
            // POSIX allows either number for a directory that is not empty.
            Err(Errno::EXIST) => Err(Errno::NOTEMPTY.into()),
            done => Ok(done?),
        }
    };
    unlink().map_err(|e| root::error("remove", path.as_str(), e))
}

/// Gives something another name.
pub(super) fn rename(root: &Root, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
    let old = root.place("rename", from)?;
    let new = root.place("rename", to)?;
    let about_from = |errno: Errno| root::error("rename", from.as_str(), errno.into());
    let about_to = |errno: Errno| root::error("rename", to.as_str(), errno.into());
    match rustix::fs::renameat(&old.dir, &old.name, &new.dir, &new.name) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(about_to(Errno::NOTEMPTY)),
        Err(errno @ (Errno::ISDIR | Errno::NOTDIR)) => Err(about_to(errno)),
        Err(Errno::INVAL) => Err(Error::InvalidArgument {
            reason: format!("`{from}` cannot be renamed to `{to}`, which is inside of it"),
        }),
        Err(errno) => Err(about_from(errno)),
    }
}

/// Sets permission bits, links followed.
pub(super) fn set_mode(root: &Root, path: &WorkspacePath, mode: u32) -> Result<()> {
    check_mode(mode)?;
    let set = || root::chmod_handle(&root.handle(path.as_str())?, mode);
    set().map_err(|e| root::error("set the mode of", path.as_str(), e))
}

/// Fails for a mode that no file can have.
pub(super) fn check_mode(mode: u32) -> Result<()> {
    if mode <= 0o7777 {
        return Ok(());
    }
    Err(Error::InvalidArgument { reason: format!("the mode {mode:#o} is more than permission bits, 0o7777") })
}

/// Copies a regular file.
pub(super) fn copy(root: &Root, from: &WorkspacePath, to: &WorkspacePath, stop: &Stop) -> Result<Written> {
    let (file, metadata) = read::open_regular(root, from)?;
    let fail = |e: io::Error| root::error("copy", from.as_str(), e);
    let source = rustix::fs::fstat(&file).map_err(|e| fail(e.into()))?;
    if let Ok(handle) = root.handle(to.as_str())
        && let Ok(there) = rustix::fs::fstat(&handle)
        && (there.st_dev, there.st_ino) == (source.st_dev, source.st_ino)
    {
        return Err(Error::InvalidArgument { reason: format!("`{from}` and `{to}` are the same file") });
    }
    // A file that somebody appends to for ever is copied as long as it was. One without a size,
    // as in a file system of the kernel's own, is copied to its end.
    let length = if metadata.size == 0 { u64::MAX } else { metadata.size };
    let options = WriteOptions::default().mode(metadata.mode);
    write::write(root, to.as_str(), &mut Source::File(file.take(length)), options, stop)
}
