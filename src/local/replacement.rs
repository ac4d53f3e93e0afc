//! Temporary files beside what they will replace.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::random::random_u64;

/// How often another name is tried. One collision in 2^64 is not expected; this only bounds it.
const ATTEMPTS: usize = 8;

/// A file that is removed when it is dropped, unless it was renamed.
#[derive(Debug)]
pub(super) struct Replacement<'dir> {
    dir: BorrowedFd<'dir>,
    name: String,
    file: File,
}

impl<'dir> Replacement<'dir> {
    /// Makes an empty file in `dir` that only this user may touch.
    pub(super) fn create(dir: &'dir impl AsFd) -> io::Result<Self> {
        let dir = dir.as_fd();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut attempt = 0;
        loop {
            let name = hidden_name();
            match rustix::fs::openat(dir, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(file) => return Ok(Replacement { dir, name, file: file.into() }),
                Err(rustix::io::Errno::EXIST) if attempt < ATTEMPTS => attempt += 1,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives it the name `name` in its directory, replacing what has it.
    pub(super) fn rename(&mut self, name: impl rustix::path::Arg) -> io::Result<()> {
        rustix::fs::renameat(self.dir, &self.name, self.dir, name)?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // Nothing can be done about one that cannot be removed.
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// A name that nobody can guess and listings do not show by default.
pub(super) fn hidden_name() -> String {
    format!(".agentworkspace-{:016x}", random_u64())
}
