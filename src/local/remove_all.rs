//! Removing whole trees.
//!
//! The way down is a stack of open directories, each opened from the one above without following
//! a link, so that nothing a racing process puts there leads elsewhere. The stack is bounded: a
//! directory deeper than that is first moved up into the one that is being removed.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::list::Entries;
use super::replacement;
use super::root::{self, Root};
use super::tasks::Stop;
use crate::error::{Error, Result};
use crate::files::{EntryName, FileKind};
use crate::path::WorkspacePath;

/// How many directories are open at once.
const MAX_DEPTH: usize = 64;

/// One directory on the way down.
struct Level {
    entries: Entries,
    /// Its name in the level above.
    name: CString,
    /// Whether this pass over it removed anything.
    progress: bool,
}

/// Removes whatever has the name, with everything below it.
pub(super) fn remove_all(root: &Root, path: &WorkspacePath, stop: &Stop) -> Result<()> {
    let place = root.place("remove", path)?;
    let name = CString::new(place.name.into_encoded_bytes());
    let name = name.map_err(|e| root::error("remove", path.as_str(), e.into()))?;
    remove_at(&place.dir, name, path.as_str(), false, &mut || stop.check())
}

/// Removes `name` in `dir`, `shown` in errors, with everything below it. `force` gives this user
/// access to directories that lack it. `check` is asked between steps.
pub(super) fn remove_at(
    dir: impl AsFd,
    name: CString,
    shown: &str,
    force: bool,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let fail = |e| root::error("remove", shown, e);
    let kind = FileKind::from_st_mode(root::stat_at(&dir, &name).map_err(fail)?.st_mode);
    let mut stack = Vec::new();
    stack.extend(take(&dir, name, kind, force).map_err(fail)?);
    while !stack.is_empty() {
        check()?;
        match step(&mut stack, force).map_err(|e| below(shown, &stack, e))? {
            Step::Down(level) => stack.push(level),
            Step::Stay => {}
            Step::Up => {
                // `step` looked at a level, so there is one.
                let Some(done) = stack.pop() else { break };
                let parent = match stack.last_mut() {
                    Some(above) => {
                        above.progress = true;
                        above.entries.dir().map_err(fail)?
                    }
                    None => dir.as_fd(),
                };
                match remove_dir(parent, done) {
                    Ok(again) => stack.extend(again),
                    Err(e) => return Err(below(shown, &stack, e)),
                }
            }
        }
    }
    Ok(())
}

enum Step {
    /// Something was removed or moved.
    Stay,
    /// A directory has to be emptied first.
    Down(Level),
    /// The directory has been gone through.
    Up,
}

/// Deals with the next entry of the deepest level.
fn step(stack: &mut [Level], force: bool) -> io::Result<Step> {
    let deep = stack.len() >= MAX_DEPTH;
    let [above @ .., level] = stack else { return Ok(Step::Up) };
    let Some(entry) = level.entries.next() else { return Ok(Step::Up) };
    let entry = entry?;
    let name = CString::new(entry.name.as_bytes())?;
    if deep
        && entry.kind == FileKind::Directory
        && let Some(top) = above.first_mut()
    {
        move_up(level, &name, top)?;
        return Ok(Step::Stay);
    }
    match take(level.entries.dir()?, name, entry.kind, force)? {
        Some(below) => Ok(Step::Down(below)),
        None => {
            level.progress = true;
            Ok(Step::Stay)
        }
    }
}

/// Removes `name` from `dir`, or opens it when it is a directory that may hold something. What
/// has vanished is removed.
fn take(dir: impl AsFd, name: CString, kind: FileKind, force: bool) -> io::Result<Option<Level>> {
    if kind != FileKind::Directory {
        match rustix::fs::unlinkat(&dir, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(None),
            // It has become a directory.
            Err(Errno::ISDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    if force && let Ok(handle) = root::dir_handle_at(&dir, &name) {
        // When it is another user's this fails, and so will what comes next, which says why.
        let _ = root::chmod_handle(&handle, 0o700);
    }
    match root::open_dir_at(&dir, &name) {
        Ok(opened) => Ok(Some(Level { entries: Entries::new(opened)?, name, progress: false })),
        Err(e) => match (Errno::from_io_error(&e), rustix::fs::unlinkat(&dir, &name, removal(&e))) {
            (Some(Errno::NOENT), _) | (_, Ok(())) => Ok(None),
            // An unreadable directory that is not empty stays.
            _ => Err(e),
        },
    }
}

/// How to remove what could not be opened as a directory: as the link or file it has become, or
/// as an unreadable directory, which may be empty.
fn removal(error: &io::Error) -> AtFlags {
    match Errno::from_io_error(error) {
        Some(Errno::NOTDIR | Errno::LOOP) => AtFlags::empty(),
        _ => AtFlags::REMOVEDIR,
    }
}

/// Moves a directory that is too deep into the top one, whose next pass will find it.
fn move_up(level: &mut Level, name: &CString, top: &mut Level) -> io::Result<()> {
    let moved =
        rustix::fs::renameat(level.entries.dir()?, name, top.entries.dir()?, replacement::hidden_name());
    level.progress = true;
    top.progress = true;
    match moved {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes a directory that was gone through. When it has got entries meanwhile, or a listing left
/// some out because others were removed, it is gone through again, as long as that helps.
fn remove_dir(parent: impl AsFd, mut level: Level) -> io::Result<Option<Level>> {
    match rustix::fs::unlinkat(parent, &level.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTEMPTY | Errno::EXIST) if level.progress => {
            level.progress = false;
            level.entries.rewind();
            Ok(Some(level))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The error for what is below `shown`, named as far as it is known.
fn below(shown: &str, stack: &[Level], source: io::Error) -> Error {
    let mut name = shown.to_owned();
    for level in stack.iter().skip(1) {
        if let Ok(element) = EntryName::new(level.name.to_bytes()) {
            name.push('/');
            name.push_str(&element.escaped());
        }
    }
    root::error("remove", &name, source)
}
