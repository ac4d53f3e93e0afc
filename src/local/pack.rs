//! Packing a tree into an archive, which is streamed while it is made.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::feed::PIECE_BYTES;
use super::root::{self, Root};
use super::sorted_dir::SortedDir;
use super::stream::StreamWriter;
use super::tasks::Stop;
use crate::error::{Error, Result};
use crate::files::{ArchiveOptions, DirEntry, FileKind, Patterns, escape_bytes};
use crate::path::WorkspacePath;
use crate::tar::{Entry, TarWriter, Time};

/// What is to be packed, open already.
pub(super) enum Subject {
    Directory(OwnedFd),
    File { file: File, name: Vec<u8> },
}

/// Opens what is to be packed.
pub(super) fn subject(root: &Root, path: &WorkspacePath) -> Result<Subject> {
    let fail = |e| root::error("archive", path.as_str(), e);
    let stat = rustix::fs::fstat(root.handle(path.as_str()).map_err(fail)?).map_err(|e| fail(e.into()))?;
    if FileKind::from_st_mode(stat.st_mode) == FileKind::Directory {
        let dir = root.dir(path.as_str()).and_then(|dir| root::open_dir_at(dir, "."));
        return Ok(Subject::Directory(dir.map_err(fail)?));
    }
    let (file, _) = super::read::open_regular(root, path)?;
    let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
    Ok(Subject::File { file, name })
}

/// Packs `subject` into `stream`.
pub(super) fn pack(
    subject: Subject,
    path: &WorkspacePath,
    exclude: Patterns,
    options: &ArchiveOptions,
    stop: &Stop,
    stream: &mut StreamWriter,
) -> Result<()> {
    let mut packer = Packer {
        path,
        exclude,
        limit: options.max_bytes,
        bytes: 0,
        stop,
        links: HashMap::new(),
        buffer: vec![0; PIECE_BYTES],
        out: TarWriter::new(stream),
    };
    match subject {
        Subject::Directory(dir) => packer.tree(dir)?,
        Subject::File { file, name } => packer.file(&file, &name)?,
    }
    let sent = packer.out.finish().and_then(StreamWriter::finish);
    sent.map_err(|e| root::error("archive", path.as_str(), e))
}

struct Packer<'a> {
    path: &'a WorkspacePath,
    exclude: Patterns,
    limit: Option<u64>,
    bytes: u64,
    stop: &'a Stop,
    /// Files with names that are still to come, by device and number.
    links: HashMap<(u64, u64), Linked>,
    buffer: Vec<u8>,
    out: TarWriter<&'a mut StreamWriter>,
}

/// A file of more than one name, of which the first was packed.
struct Linked {
    first: Vec<u8>,
    /// How many other names it has. They may all be elsewhere.
    left: u64,
}

impl Packer<'_> {
    /// Packs everything below `dir`, depth first, each directory's names in order.
    fn tree(&mut self, dir: OwnedFd) -> Result<()> {
        let mut stack = vec![SortedDir::open(dir, Vec::new()).map_err(|e| self.failed(b"", e))?];
        while let Some(level) = stack.last_mut() {
            self.stop.check()?;
            let Some(entry) = level.next().map_err(|e| self.failed(&level.name, e))? else {
                stack.pop();
                continue;
            };
            let mut name = level.name.clone();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(entry.name.as_bytes());
            if self.exclude.is_match(&name) {
                continue;
            }
            let parent = level.entries.dir().map_err(|e| self.failed(&name, e))?;
            if let Some(below) = self.entry(parent, &entry, &name)? {
                stack.push(below);
            }
        }
        Ok(())
    }

    /// Packs one entry; a directory is returned, to be gone down into.
    fn entry(&mut self, parent: impl AsFd, entry: &DirEntry, name: &[u8]) -> Result<Option<SortedDir>> {
        let last = entry.name.as_bytes();
        match entry.kind {
            FileKind::Directory => {
                let dir = root::open_dir_at(&parent, last).map_err(|e| self.failed(name, e))?;
                let stat = rustix::fs::fstat(&dir).map_err(|e| self.failed(name, e.into()))?;
                self.start([name, b"/"].concat().as_slice(), tar::EntryType::Directory, b"", 0, &stat)?;
                Ok(Some(SortedDir::open(dir, name.to_vec()).map_err(|e| self.failed(name, e))?))
            }
            FileKind::Symlink => {
                let link = || -> io::Result<_> {
                    let target = rustix::fs::readlinkat(&parent, last, Vec::new())?;
                    Ok((target, root::stat_at(&parent, last)?))
                };
                let (target, stat) = link().map_err(|e| self.failed(name, e))?;
                self.start(name, tar::EntryType::Symlink, target.to_bytes(), 0, &stat)?;
                Ok(None)
            }
            FileKind::File => {
                let flags =
                    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&parent, last, flags, Mode::empty())
                    .map_err(|e| self.failed(name, e.into()))?;
                match root::regular(&self.shown(name), file) {
                    Ok((file, _)) => self.file(&file, name)?,
                    // It was a regular file when it was listed.
                    Err(_) => return Err(self.changed(name)),
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn file(&mut self, file: &File, name: &[u8]) -> Result<()> {
        let stat = rustix::fs::fstat(file).map_err(|e| self.failed(name, e.into()))?;
        if stat.st_nlink > 1 {
            #[expect(clippy::useless_conversion, reason = "the fields are not u64 on every architecture")]
            let id = (u64::from(stat.st_dev), u64::from(stat.st_ino));
            if let Some(mut linked) = self.links.remove(&id) {
                self.start(name, tar::EntryType::Link, &linked.first, 0, &stat)?;
                linked.left -= 1;
                if linked.left > 0 {
                    self.links.insert(id, linked);
                }
                return Ok(());
            }
            #[expect(clippy::useless_conversion, reason = "the field is not u64 on every architecture")]
            let left = u64::from(stat.st_nlink) - 1;
            self.links.insert(id, Linked { first: name.to_vec(), left });
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        self.bytes = self.bytes.saturating_add(size);
        if let Some(limit) = self.limit.filter(|limit| self.bytes > *limit) {
            return Err(Error::TooLarge { path: self.path.to_string(), limit });
        }
        self.start(name, tar::EntryType::Regular, b"", size, &stat)?;
        self.content(file, name, size)?;
        let after = rustix::fs::fstat(file).map_err(|e| self.failed(name, e.into()))?;
        let state = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        if state(&after) != state(&stat) {
            return Err(self.changed(name));
        }
        self.out.pad(size).map_err(|e| self.failed(name, e))
    }

    /// Packs exactly the `size` bytes that the header announced.
    fn content(&mut self, mut file: &File, name: &[u8], size: u64) -> Result<()> {
        let mut left = size;
        while left > 0 {
            self.stop.check()?;
            let want = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = match file.read(&mut self.buffer[..want]) {
                Ok(0) => return Err(self.changed(name)),
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.failed(name, e)),
            };
            if let Err(e) = self.out.data(&self.buffer[..read]) {
                return Err(self.failed(name, e));
            }
            left -= read as u64;
        }
        Ok(())
    }

    fn start(
        &mut self,
        name: &[u8],
        kind: tar::EntryType,
        link: &[u8],
        size: u64,
        stat: &Stat,
    ) -> Result<()> {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 1e9")]
        let nanos = stat.st_mtime_nsec as u32;
        let entry = Entry {
            name,
            kind,
            link,
            mode: stat.st_mode & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
            size,
            modified: Time { seconds: stat.st_mtime, nanos },
        };
        self.out.start(&entry).map_err(|e| self.failed(name, e))
    }

    fn changed(&self, name: &[u8]) -> Error {
        Error::Changed { path: self.shown(name) }
    }

    /// What an error on something below means: what was listed and is no longer there, or is
    /// something else, has changed.
    fn failed(&self, name: &[u8], source: io::Error) -> Error {
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::INVAL | Errno::NXIO)
                if !name.is_empty() =>
            {
                self.changed(name)
            }
            _ => root::error("archive", &self.shown(name), source),
        }
    }

    fn shown(&self, name: &[u8]) -> String {
        match (self.path.is_root(), name.is_empty()) {
            (_, true) => self.path.to_string(),
            (true, false) => escape_bytes(name),
            (false, false) => format!("{}/{}", self.path, escape_bytes(name)),
        }
    }
}
