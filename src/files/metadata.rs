//! Kinds and metadata of files.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::listing::escape_bytes;

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// Something else.
    Unknown,
}

impl FileKind {
    /// The kind in the `S_IFMT` bits of an `st_mode`.
    pub fn from_st_mode(mode: u32) -> FileKind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => FileKind::File,
            libc::S_IFDIR => FileKind::Directory,
            libc::S_IFLNK => FileKind::Symlink,
            libc::S_IFIFO => FileKind::Fifo,
            libc::S_IFSOCK => FileKind::Socket,
            libc::S_IFBLK => FileKind::BlockDevice,
            libc::S_IFCHR => FileKind::CharDevice,
            _ => FileKind::Unknown,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symbolic link",
            FileKind::Fifo => "FIFO",
            FileKind::Socket => "socket",
            FileKind::BlockDevice => "block device",
            FileKind::CharDevice => "character device",
            FileKind::Unknown => "special file",
        })
    }
}

/// What is known about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes; of a link, the length of its target.
    pub size: u64,
    /// Its permission bits, with set-user-id, set-group-id and sticky: `0o7777` at most.
    pub mode: u32,
    /// Its owner's number, where the workspace can tell
    /// ([`Capabilities::owners`](crate::Capabilities::owners)).
    pub uid: Option<u32>,
    /// Its group's number, likewise.
    pub gid: Option<u32>,
    /// When its content last changed.
    pub modified: SystemTime,
}

impl Metadata {
    /// Metadata of these; owner and group unknown.
    pub fn new(kind: FileKind, size: u64, mode: u32, modified: SystemTime) -> Self {
        Metadata { kind, size, mode: mode & 0o7777, uid: None, gid: None, modified }
    }

    /// The same with owner and group.
    #[must_use]
    pub fn owner(self, uid: u32, gid: u32) -> Self {
        Metadata { uid: Some(uid), gid: Some(gid), ..self }
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind == FileKind::Symlink
    }
}

/// The target of a symbolic link, byte for byte as the link holds it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LinkTarget(Vec<u8>);

impl LinkTarget {
    /// A target of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        LinkTarget(bytes.into())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The target as text, when it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_bytes(&self.0))
    }
}

impl fmt::Debug for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
