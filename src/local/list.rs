//! Directory listings.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::root::{self, Root};
use super::tasks::Stop;
use crate::error::Result;
use crate::files::{DirEntry, DirPage, EntryName, FileKind, ListOptions};
use crate::path::WorkspacePath;

/// How many entries are read between two looks at whether the caller still waits.
const CHECK_EVERY: usize = 1024;

/// A page of a directory.
pub(super) fn page(root: &Root, path: &WorkspacePath, options: &ListOptions, stop: &Stop) -> Result<DirPage> {
    let fail = |e| root::error("list", path.as_str(), e);
    let dir = root.dir(path.as_str()).and_then(|dir| root::open_dir_at(dir, ".")).map_err(fail)?;
    let mut failed = None;
    let mut entries = Entries::new(dir).map_err(fail)?;
    let mut seen = 0usize;
    let names = std::iter::from_fn(|| {
        seen += 1;
        if seen.is_multiple_of(CHECK_EVERY)
            && let Err(stopped) = stop.check()
        {
            failed = Some(stopped);
            return None;
        }
        match entries.next()? {
            Ok(entry) => Some(entry),
            Err(e) => {
                failed = Some(fail(e));
                None
            }
        }
    });
    let page = DirPage::select(names, options);
    failed.map_or(Ok(page), Err)
}

/// The entries of an open directory, as the kernel gives them, with their kinds.
pub(super) struct Entries(rustix::fs::Dir);

impl Entries {
    pub(super) fn new(dir: OwnedFd) -> io::Result<Self> {
        Ok(Entries(rustix::fs::Dir::new(dir)?))
    }

    /// The directory itself.
    pub(super) fn dir(&self) -> io::Result<std::os::fd::BorrowedFd<'_>> {
        Ok(self.0.fd()?)
    }

    /// Starts again, with what is there now.
    pub(super) fn rewind(&mut self) {
        self.0.rewind();
    }

    /// The next entry. One that vanished before its kind was asked for is left out.
    pub(super) fn next(&mut self) -> Option<io::Result<DirEntry>> {
        loop {
            let entry = match self.0.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(errno.into())),
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                rustix::fs::FileType::Unknown => match self.dir().and_then(|dir| kind_at(dir, name)) {
                    Ok(kind) => kind,
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Some(Err(e)),
                },
                known => FileKind::from_st_mode(known.as_raw_mode()),
            };
            let name = EntryName::new(name.to_bytes()).map_err(io::Error::from);
            return Some(name.map(|name| DirEntry::new(name, kind)));
        }
    }
}

/// The kind of `name` in `dir`, for a file system that does not list kinds.
fn kind_at(dir: impl AsFd, name: &std::ffi::CStr) -> io::Result<FileKind> {
    Ok(FileKind::from_st_mode(root::stat_at(dir, name)?.st_mode))
}
