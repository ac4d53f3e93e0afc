//! Archives written anew from what was found in another one.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

use tar::{EntryType, Header};

use super::tar_index::{Entry, EntryKind};

/// How much a tar block holds.
const BLOCK: usize = 512;

/// How much a name field of a header holds.
const NAME_FIELD: usize = 100;

/// How names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// As they are.
    Plain,
    /// With `./` in front. An engine looks at the first bytes of an archive, which are the first
    /// name, for the magic numbers of compression.
    Dotted,
}

/// Writes `entry`, with its content from `data`.
pub(super) fn emit(out: &mut impl Write, entry: &Entry, data: &File, names: Names) -> io::Result<()> {
    match entry.kind {
        EntryKind::File { offset, len } => {
            header(out, entry, len, names)?;
            copy_at(out, data, offset, len)?;
            pad(out, len)
        }
        _ => header(out, entry, 0, names),
    }
}

/// Writes the blocks that end an archive.
pub(super) fn finish(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK])?;
    out.flush()
}

/// Writes the header of `entry`. What a plain header cannot say goes into a PAX record before it.
pub(super) fn header(out: &mut impl Write, entry: &Entry, len: u64, names: Names) -> io::Result<()> {
    let mut name = if names == Names::Dotted { b"./".to_vec() } else { Vec::new() };
    name.extend_from_slice(&entry.name);
    let (kind, target) = match &entry.kind {
        EntryKind::File { .. } => (EntryType::Regular, None),
        EntryKind::Directory => {
            name.push(b'/');
            (EntryType::Directory, None)
        }
        EntryKind::Symlink(target) => (EntryType::Symlink, Some(target.clone())),
        EntryKind::HardLink(target) => (EntryType::Link, Some(target.clone())),
    };
    let mut records = Vec::new();
    if name.len() > NAME_FIELD {
        record(&mut records, "path", &name);
    }
    if let Some(target) = target.as_ref().filter(|target| target.len() > NAME_FIELD) {
        record(&mut records, "linkpath", target);
    }
    if entry.modified.1 != 0 {
        let time = format!("{}.{:09}", entry.modified.0, entry.modified.1);
        record(&mut records, "mtime", time.as_bytes());
    }
    // The largest number of eleven octal digits.
    let octal_max = 0o777_7777_7777;
    if len > octal_max {
        record(&mut records, "size", len.to_string().as_bytes());
    }
    // The largest number of seven octal digits.
    for (key, id) in [("uid", entry.uid), ("gid", entry.gid)] {
        if id > 0o777_7777 {
            record(&mut records, key, id.to_string().as_bytes());
        }
    }
    if !records.is_empty() {
        let mut pax = Header::new_ustar();
        set_field(&mut pax.as_old_mut().name, b"./PaxHeaders/x");
        pax.set_entry_type(EntryType::XHeader);
        pax.set_mode(0o644);
        pax.set_size(records.len() as u64);
        pax.set_cksum();
        out.write_all(pax.as_bytes())?;
        out.write_all(&records)?;
        pad(out, records.len() as u64)?;
    }
    let mut plain = Header::new_ustar();
    set_field(&mut plain.as_old_mut().name, &name);
    if let Some(target) = &target {
        set_field(&mut plain.as_old_mut().linkname, target);
    }
    plain.set_entry_type(kind);
    plain.set_mode(entry.mode);
    plain.set_uid(entry.uid.min(0o777_7777));
    plain.set_gid(entry.gid.min(0o777_7777));
    plain.set_mtime(entry.modified.0.min(octal_max));
    plain.set_size(len.min(octal_max));
    plain.set_cksum();
    out.write_all(plain.as_bytes())
}

/// Fills the block that `len` bytes of content end in.
pub(super) fn pad(out: &mut impl Write, len: u64) -> io::Result<()> {
    let rest = (len % BLOCK as u64) as usize;
    if rest > 0 {
        out.write_all(&[0; BLOCK][rest..])?;
    }
    Ok(())
}

fn copy_at(out: &mut impl Write, data: &File, mut offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    let mut chunk = vec![0; 64 * 1024];
    while offset < end {
        let want = chunk.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        data.read_exact_at(&mut chunk[..want], offset)?;
        out.write_all(&chunk[..want])?;
        offset += want as u64;
    }
    Ok(())
}

/// As much of `value` as fits; a PAX record has the whole of what does not.
fn set_field(field: &mut [u8], value: &[u8]) {
    let fits = value.len().min(field.len());
    field[..fits].copy_from_slice(&value[..fits]);
}

/// Adds `LENGTH KEY=VALUE` and a line end, where the length counts its own digits.
fn record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    records.extend_from_slice(format!("{len} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::tar_index::{Bounds, Policy, clean_name, read_index, refused};
    use super::*;
    use crate::error::{Error, Result};

    struct AsIs;

    impl Policy for AsIs {
        fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
            clean_name(raw).map(|name| Some(name).filter(|name| !name.is_empty()))
        }
        fn special(&mut self, name: &[u8]) -> Result<()> {
            Err(refused(name, "special"))
        }
    }

    const ANY: Bounds = Bounds { max_bytes: u64::MAX, max_entries: u64::MAX };

    fn entry(name: &[u8], kind: EntryKind) -> Entry {
        let modified = (1_700_000_000, 250_000_000);
        Entry { name: name.to_vec(), kind, mode: 0o4751, uid: 1000, gid: 3_000_000, modified }
    }

    fn archive(entries: &[Entry], content: &[u8]) -> Vec<u8> {
        let mut data = tempfile::tempfile().unwrap();
        data.write_all(content).unwrap();
        let mut out = Vec::new();
        for entry in entries {
            emit(&mut out, entry, &data, Names::Dotted).unwrap();
        }
        finish(&mut out).unwrap();
        out
    }

    fn index(archive: &[u8]) -> Result<super::super::tar_index::Index> {
        read_index(archive, tempfile::tempfile().unwrap(), ANY, "t", &mut AsIs)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = [b"d/".as_slice(), &[b'n'; 150]].concat();
        let raw = b"d/raw\xff\n";
        let entries = [
            entry(b"d", EntryKind::Directory),
            entry(&long, EntryKind::File { offset: 2, len: 3 }),
            entry(raw, EntryKind::Symlink([b'/'; 200].to_vec())),
            entry(b"hard", EntryKind::HardLink(long.clone())),
        ];
        let archive = archive(&entries, b"..abc");
        let read = index(&archive).unwrap();
        assert_eq!(read.bytes, 3);
        for (found, given) in read.entries.iter().zip(&entries) {
            assert_eq!((&found.name, found.mode, found.modified), (&given.name, 0o4751, given.modified));
            assert_eq!((found.uid, found.gid), (1000, 3_000_000));
        }
        assert!(matches!(&read.entries[2].kind, EntryKind::Symlink(target) if target.len() == 200));
        assert!(matches!(&read.entries[3].kind, EntryKind::HardLink(target) if *target == long));
    }

    #[test]
    fn a_cut_archive_is_refused_wherever_it_is_cut() {
        let entries = [entry(b"a", EntryKind::File { offset: 0, len: 700 })];
        let archive = archive(&entries, &[7; 700]);
        assert!(index(&archive).is_ok());
        let whole_without_end = archive.len() - 2 * BLOCK;
        for cut in (0..=whole_without_end).step_by(100).chain([whole_without_end]) {
            assert!(matches!(index(&archive[..cut]), Err(Error::Archive { .. })), "{cut}");
        }
    }

    #[test]
    fn names_that_leave_and_compressed_archives_are_refused() {
        for name in [&b"../x"[..], b"a/../../x", b"/etc/passwd", b"a/.."] {
            let archive = archive(&[], b"");
            let mut evil = Vec::new();
            let mut header = Header::new_ustar();
            set_field(&mut header.as_old_mut().name, name);
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o644);
            header.set_size(0);
            header.set_cksum();
            evil.extend_from_slice(header.as_bytes());
            evil.extend_from_slice(&archive);
            assert!(matches!(index(&evil), Err(Error::Archive { .. })), "{name:?}");
        }
        assert!(matches!(index(&[0x1f, 0x8b, 8, 0, 0, 0].repeat(200)), Err(Error::Archive { .. })));
    }
}
