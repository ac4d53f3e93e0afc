//! A tar stream taken apart: what is in it, checked, with the contents in one temporary file.

use std::io::{self, Read};

use super::spool::Spool;
use crate::error::{Error, Result};
use crate::files::escape_bytes;
use crate::tar::{Member, MemberKind, TarReader, Time};

/// What an archive holds.
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    /// The contents of its files, one behind the other.
    pub(super) data: Spool,
    /// How many bytes of content there are.
    pub(super) bytes: u64,
}

/// One entry of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Relative, without empty, `.` and `..` elements, and without a `/` at its end.
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    /// User and group.
    pub(super) owner: (u32, u32),
    pub(super) modified: Time,
}

#[derive(Clone, Debug)]
pub(super) enum EntryKind {
    File {
        /// Where its content starts in [`Index::data`].
        offset: u64,
        len: u64,
    },
    Directory,
    /// With its target as it stands.
    Symlink(Vec<u8>),
    /// With the name of the other entry, in the form of [`Entry::name`].
    HardLink(Vec<u8>),
}

/// What one archive may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) max_bytes: u64,
    pub(super) max_entries: u64,
}

/// What becomes of the entries of an archive by their names.
pub(super) trait Policy {
    /// The name under which an entry is kept; [`None`] leaves it out.
    fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The same for the name that a hard link leads to.
    fn place_target(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>>;

    /// What becomes of an entry that is no directory and has a name which is left out, or is a
    /// hard link to such a one.
    fn nameless(&mut self, name: &[u8]) -> Result<()>;

    /// What becomes of a device, FIFO or socket: left out, or an error.
    fn special(&mut self, name: &[u8]) -> Result<()>;
}

/// The error of a broken or refused entry.
pub(super) fn refused(entry: &[u8], reason: impl Into<String>) -> Error {
    Error::Archive { entry: escape_bytes(entry), reason: reason.into() }
}

/// What an archive holds, read to its end. `what` names it in errors.
pub(super) fn read_index(
    reader: impl Read,
    data: Spool,
    bounds: Bounds,
    what: &str,
    policy: &mut dyn Policy,
) -> Result<Index> {
    let mut index = Index { entries: Vec::new(), data, bytes: 0 };
    index.add(reader, bounds, what, policy)?;
    Ok(index)
}

impl Index {
    /// Adds what another archive holds; the bounds are those of both.
    pub(super) fn add(
        &mut self,
        mut reader: impl Read,
        bounds: Bounds,
        what: &str,
        policy: &mut dyn Policy,
    ) -> Result<()> {
        let too_large = |limit| Error::TooLarge { path: what.to_owned(), limit };
        let mut archive = TarReader::new(|buf: &mut [u8]| reader.read(buf).map_err(broken));
        while let Some(member) = archive.next()? {
            let Some(mut taken) = take(&member, policy)? else { continue };
            if let EntryKind::File { offset, len } = &mut taken.kind {
                *offset = self.bytes;
                self.bytes = self.bytes.checked_add(*len).ok_or_else(|| too_large(bounds.max_bytes))?;
                if self.bytes > bounds.max_bytes {
                    return Err(too_large(bounds.max_bytes));
                }
                let start = *offset;
                // The holes of a sparse file are not among its data.
                archive.data(&member, |at, piece| self.data.write_at(piece, start + at))?;
            }
            self.entries.push(taken);
            if self.entries.len() as u64 > bounds.max_entries {
                return Err(too_large(bounds.max_entries));
            }
        }
        self.data.set_len(self.bytes)
    }
}

/// The entry without its content; [`None`] for one that is left out.
fn take(member: &Member, policy: &mut dyn Policy) -> Result<Option<Entry>> {
    let raw = &member.name;
    let Some(name) = policy.place(raw)? else {
        // The directory itself is left out, and nothing else can be it.
        return match member.kind {
            MemberKind::Directory => Ok(None),
            _ => policy.nameless(raw).map(|()| None),
        };
    };
    if matches!(member.kind, MemberKind::Symlink | MemberKind::HardLink)
        && (member.link.is_empty() || member.link.contains(&0))
    {
        return Err(refused(raw, "it is a link without a target"));
    }
    let kind = match member.kind {
        MemberKind::File => EntryKind::File { offset: 0, len: member.size },
        MemberKind::Directory => EntryKind::Directory,
        MemberKind::Symlink => EntryKind::Symlink(member.link.clone()),
        MemberKind::HardLink => match policy.place_target(&member.link) {
            Ok(Some(target)) => EntryKind::HardLink(target),
            Ok(None) => return policy.nameless(raw).map(|()| None),
            Err(Error::Archive { reason, .. }) => {
                return Err(refused(raw, format!("of the file that it links to, {reason}")));
            }
            Err(error) => return Err(error),
        },
        MemberKind::Other(b'3' | b'4' | b'6') => return policy.special(raw).map(|()| None),
        MemberKind::Other(flag) => {
            let reason = format!("its type `{}` is not known", char::from(flag).escape_default());
            return Err(refused(raw, reason));
        }
    };
    let (mode, modified) = (member.mode, member.modified);
    Ok(Some(Entry { name, kind, mode, owner: member.owner, modified }))
}

/// The elements of `raw`, checked, joined again.
pub(super) fn clean_name(raw: &[u8]) -> Result<Vec<u8>> {
    if raw.starts_with(b"/") {
        return Err(refused(raw, "its name is absolute"));
    }
    if raw.contains(&0) {
        return Err(refused(raw, "its name holds a NUL byte"));
    }
    let mut name = Vec::with_capacity(raw.len());
    for element in raw.split(|byte| *byte == b'/') {
        match element {
            b"" | b"." => continue,
            b".." => return Err(refused(raw, "its name holds `..`")),
            element if element.len() > crate::path::MAX_ELEMENT_BYTES => {
                return Err(refused(raw, "an element of its name is longer than 255 bytes"));
            }
            element => {
                if !name.is_empty() {
                    name.push(b'/');
                }
                name.extend_from_slice(element);
            }
        }
    }
    Ok(name)
}

fn broken(error: io::Error) -> Error {
    refused(b"", format!("it is no whole, uncompressed tar archive: {error}"))
}
