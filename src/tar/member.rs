//! What an archive says of one entry.

use super::Time;
use super::sparse::Map;
use crate::files::escape_bytes;

/// One entry, as all its headers together describe it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: MemberKind,
    /// Of a link, where it leads.
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) modified: Time,
    /// Its user and group, 0 where they are no numbers.
    #[cfg_attr(
        not(feature = "container"),
        expect(dead_code, reason = "only a file of a container is written back with its old owner")
    )]
    pub(crate) owner: (u32, u32),
    /// The size of the file, holes included.
    pub(crate) size: u64,
    /// Where its stored parts belong.
    pub(super) map: Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberKind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// What is not accepted, by its type flag.
    Other(u8),
}

impl Member {
    /// Its name for messages.
    pub(crate) fn shown(&self) -> String {
        escape_bytes(&self.name)
    }

    /// Whether it is a file with holes.
    pub(crate) fn is_sparse(&self) -> bool {
        self.map != Map::whole(self.size)
    }
}
