//! Makes archives to unpack, hostile ones included, and reads archives that were packed.

use std::io::Read as _;

use tar::{Archive, EntryType, Header};
use tokio::io::AsyncReadExt as _;

use super::place::{Must as _, Place, name};
use crate::{ArchiveOptions, Content};

/// When every made entry was last changed, in seconds since 1970.
pub(super) const MTIME: u64 = 1_000_000_007;

/// A tar stream in the making. Names go in as they are given, unchecked.
#[derive(Default)]
pub(super) struct Tarball(Vec<u8>);

impl Tarball {
    pub(super) fn new() -> Self {
        Tarball::default()
    }

    pub(super) fn file(self, name: &str, data: &[u8], mode: u32) -> Self {
        self.entry(EntryType::Regular, name, "", mode, data)
    }

    pub(super) fn dir(self, name: &str, mode: u32) -> Self {
        self.entry(EntryType::Directory, name, "", mode, b"")
    }

    pub(super) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, name, target, 0o777, b"")
    }

    pub(super) fn hardlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Link, name, target, 0o644, b"")
    }

    /// Any entry; a name or target over 100 bytes becomes a PAX record.
    pub(super) fn entry(mut self, kind: EntryType, name: &str, target: &str, mode: u32, data: &[u8]) -> Self {
        let long = [("path", name), ("linkpath", target)];
        let records: Vec<_> = long.into_iter().filter(|(_, value)| value.len() > 100).collect();
        if !records.is_empty() {
            let body: Vec<u8> = records.iter().flat_map(|(key, value)| pax_record(key, value)).collect();
            self.push(EntryType::XHeader, "pax", "", 0o644, &body);
        }
        self.push(kind, &cut(name), &cut(target), mode, data);
        self
    }

    /// Records for the next entry, in the form of PAX.
    pub(super) fn pax(mut self, records: &[(&str, &str)]) -> Self {
        let body: Vec<u8> = records.iter().flat_map(|(key, value)| pax_record(key, value)).collect();
        self.push(EntryType::XHeader, "pax", "", 0o644, &body);
        self
    }

    /// A file whose name is in a GNU long-name entry.
    pub(super) fn gnu_long_file(mut self, name: &str, data: &[u8]) -> Self {
        let mut body = name.as_bytes().to_vec();
        body.push(0);
        self.push(EntryType::GNULongName, "././@LongLink", "", 0o644, &body);
        self.push(EntryType::Regular, &cut(name), "", 0o644, data);
        self
    }

    /// A file of `size` bytes in the old GNU sparse form, which holds `data` at `offset` only.
    pub(super) fn gnu_sparse_file(mut self, name: &str, size: u64, offset: u64, data: &[u8]) -> Self {
        let mut header = self.header(EntryType::GNUSparse, name, "", 0o644, data.len() as u64);
        if let Some(gnu) = header.as_gnu_mut() {
            let octal = |field: &mut [u8; 12], value: u64| {
                field.copy_from_slice(format!("{value:011o}\0").as_bytes())
            };
            octal(&mut gnu.realsize, size);
            octal(&mut gnu.sparse[0].offset, offset);
            octal(&mut gnu.sparse[0].numbytes, data.len() as u64);
            octal(&mut gnu.sparse[1].offset, size);
            octal(&mut gnu.sparse[1].numbytes, 0);
        }
        header.set_cksum();
        self.append(&header, data);
        self
    }

    /// The stream as far as it is made, without an end.
    pub(super) fn unfinished(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn bytes(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }

    pub(super) fn content(self) -> Content {
        Content::from(self.bytes())
    }

    fn header(&self, kind: EntryType, name: &str, target: &str, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(MTIME);
        // Nobody here: the owner must not come from the archive.
        header.set_uid(54321);
        header.set_gid(54321);
        header.set_size(size);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header
    }

    fn push(&mut self, kind: EntryType, name: &str, target: &str, mode: u32, data: &[u8]) {
        let mut header = self.header(kind, name, target, mode, data.len() as u64);
        header.set_cksum();
        self.append(&header, data);
    }

    fn append(&mut self, header: &Header, data: &[u8]) {
        self.0.extend(header.as_bytes());
        self.0.extend(data);
        let full = self.0.len().next_multiple_of(512);
        self.0.resize(full, 0);
    }
}

/// At most 100 bytes of `text`, as many as the header field holds.
fn cut(text: &str) -> String {
    let mut end = text.len().min(100);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// `length key=value\n`, where the length counts its own digits.
fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}").into_bytes()
}

/// One entry of a packed archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: EntryType,
    pub(super) mode: u32,
    pub(super) mtime: u64,
    pub(super) target: String,
    pub(super) data: Vec<u8>,
}

/// Packs `path` and reads the whole archive.
pub(super) async fn pack(at: &Place, path: &str, options: ArchiveOptions) -> Vec<Entry> {
    entries(&packed(at, path, options).await)
}

/// Packs `path` into memory.
pub(super) async fn packed(at: &Place, path: &str, options: ArchiveOptions) -> Vec<u8> {
    let mut reader = at.ws().get_archive(&name(path), options).await.must("pack");
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.must("read an archive");
    bytes
}

/// The entries of an archive; a directory's name ends without `/`.
pub(super) fn entries(bytes: &[u8]) -> Vec<Entry> {
    let mut archive = Archive::new(bytes);
    let entries = archive.entries().must("read an archive");
    entries
        .map(|entry| {
            let mut entry = entry.must("read an archive");
            let mut data = Vec::new();
            entry.read_to_end(&mut data).must("read an archive entry");
            let header = entry.header();
            Entry {
                name: text(&entry.path_bytes()).trim_end_matches('/').to_owned(),
                kind: header.entry_type(),
                mode: header.mode().must("read a mode") & 0o7777,
                mtime: header.mtime().must("read a time"),
                target: entry.link_name_bytes().map(|target| text(&target)).unwrap_or_default(),
                data,
            }
        })
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
