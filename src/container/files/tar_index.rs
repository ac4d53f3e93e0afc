//! A tar stream taken apart: what is in it, checked, with the contents in one temporary file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};

use tar::{Archive, EntryType};

use crate::error::{Error, Result};
use crate::files::escape_bytes;

/// What an archive holds.
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    /// The contents of its files, one behind the other.
    pub(super) data: File,
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
    pub(super) uid: u64,
    pub(super) gid: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (u64, u32),
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

    /// What becomes of a device, FIFO or socket: left out, or an error.
    fn special(&mut self, name: &[u8]) -> Result<()>;
}

/// The error of a broken or refused entry.
pub(super) fn refused(entry: &[u8], reason: impl Into<String>) -> Error {
    Error::Archive { entry: escape_bytes(entry), reason: reason.into() }
}

/// Reads an archive to its end. `what` names it in errors.
pub(super) fn read_index(
    reader: impl Read,
    data: File,
    bounds: Bounds,
    what: &str,
    policy: &mut dyn Policy,
) -> Result<Index> {
    let mut watched = Watched { reader, ended: false };
    let mut entries = Vec::new();
    let mut out = BufWriter::with_capacity(128 * 1024, &data);
    let mut bytes = 0;
    {
        let mut archive = Archive::new(&mut watched);
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let Some(mut taken) = take(&mut entry, policy)? else { continue };
            if let EntryKind::File { offset, len } = &mut taken.kind {
                *offset = bytes;
                bytes += *len;
                if bytes > bounds.max_bytes {
                    return Err(Error::TooLarge { path: what.to_owned(), limit: bounds.max_bytes });
                }
                let copied =
                    io::copy(&mut entry, &mut out).map_err(|error| spool_error(&taken.name, error))?;
                if copied != *len {
                    return Err(refused(&taken.name, "its content is cut"));
                }
            }
            entries.push(taken);
            if entries.len() as u64 > bounds.max_entries {
                return Err(Error::TooLarge { path: what.to_owned(), limit: bounds.max_entries });
            }
        }
    }
    out.flush().map_err(|error| spool_error(b"", error))?;
    drop(out);
    // Without the blocks that end an archive nobody knows whether more was to come.
    if watched.ended {
        return Err(refused(b"", "it ends without the blocks that end an archive"));
    }
    io::copy(&mut watched, &mut io::sink()).map_err(broken)?;
    Ok(Index { entries, data, bytes })
}

/// The entry without its content; [`None`] for one that is left out.
fn take<R: Read>(entry: &mut tar::Entry<'_, R>, policy: &mut dyn Policy) -> Result<Option<Entry>> {
    let raw = entry.path_bytes().into_owned();
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return Ok(None);
    }
    let header = entry.header();
    let mut modified = (header.mtime().unwrap_or(0), 0);
    let (mut uid, mut gid) = (header.uid().unwrap_or(0), header.gid().unwrap_or(0));
    if let Some(records) = entry.pax_extensions().map_err(broken)? {
        for record in records {
            let record = record.map_err(broken)?;
            match record.key_bytes() {
                b"mtime" => modified = parse_time(record.value_bytes()).unwrap_or(modified),
                b"uid" => uid = parse_id(record.value_bytes()).unwrap_or(uid),
                b"gid" => gid = parse_id(record.value_bytes()).unwrap_or(gid),
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(refused(&raw, "a sparse file in the PAX form is not supported"));
                }
                _ => {}
            }
        }
    }
    let Some(name) = policy.place(&raw)? else { return Ok(None) };
    let kind = match kind {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            EntryKind::File { offset: 0, len: entry.size() }
        }
        EntryType::Directory => EntryKind::Directory,
        EntryType::Symlink | EntryType::Link => {
            let target = entry.link_name_bytes().map(|target| target.into_owned()).unwrap_or_default();
            if target.is_empty() || target.contains(&0) {
                return Err(refused(&raw, "a link without a target"));
            }
            match kind {
                EntryType::Symlink => EntryKind::Symlink(target),
                _ => match policy.place(&target)? {
                    Some(target) => EntryKind::HardLink(target),
                    None => return Ok(None),
                },
            }
        }
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            policy.special(&raw)?;
            return Ok(None);
        }
        other => {
            return Err(refused(
                &raw,
                format!("the entry type {:?} is not supported", other.as_byte() as char),
            ));
        }
    };
    let mode = entry.header().mode().map_err(broken)? & 0o7777;
    Ok(Some(Entry { name, kind, mode, uid, gid, modified }))
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

fn parse_id(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// `1700000000.25` of a PAX record.
fn parse_time(value: &[u8]) -> Option<(u64, u32)> {
    let text = std::str::from_utf8(value).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction.chars().take(9).collect();
    Some((seconds.parse().ok()?, format!("{fraction:0<9}").parse().ok()?))
}

fn broken(error: io::Error) -> Error {
    refused(b"", format!("it is no whole, uncompressed tar archive: {error}"))
}

fn spool_error(name: &[u8], error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => refused(name, "its content is cut"),
        _ => Error::from_io("spool the archive entry", &escape_bytes(name), error),
    }
}

/// Notes whether the stream itself ended, rather than the archive in it.
struct Watched<R> {
    reader: R,
    ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.ended |= read == 0 && !buf.is_empty();
        Ok(read)
    }
}
