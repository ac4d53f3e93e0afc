//! Archives written anew from what was found in another one.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

use tar::EntryType;

use super::tar_index::{Entry, EntryKind};
use crate::tar::{self as tar_format, TarWriter};

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
pub(super) fn emit(
    out: &mut TarWriter<impl Write>,
    entry: &Entry,
    data: &File,
    names: Names,
) -> io::Result<()> {
    match entry.kind {
        EntryKind::File { offset, len } => {
            start(out, entry, len, names)?;
            copy_at(out, data, offset, len)?;
            out.pad(len)
        }
        _ => start(out, entry, 0, names),
    }
}

/// Writes the headers of `entry`.
pub(super) fn start(
    out: &mut TarWriter<impl Write>,
    entry: &Entry,
    size: u64,
    names: Names,
) -> io::Result<()> {
    let mut name = if names == Names::Dotted { b"./".to_vec() } else { Vec::new() };
    name.extend_from_slice(&entry.name);
    let (kind, link) = match &entry.kind {
        EntryKind::File { .. } => (EntryType::Regular, &[][..]),
        EntryKind::Directory => {
            name.push(b'/');
            (EntryType::Directory, &[][..])
        }
        EntryKind::Symlink(target) => (EntryType::Symlink, target.as_slice()),
        EntryKind::HardLink(target) => (EntryType::Link, target.as_slice()),
    };
    let (mode, owner, modified) = (entry.mode, entry.owner, entry.modified);
    out.start(&tar_format::Entry { name: &name, kind, link, mode, owner, size, modified })
}

fn copy_at(out: &mut TarWriter<impl Write>, data: &File, mut offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    let mut chunk = vec![0; 64 * 1024];
    while offset < end {
        let want = chunk.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        data.read_exact_at(&mut chunk[..want], offset)?;
        out.data(&chunk[..want])?;
        offset += want as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::spool::Spool;
    use super::super::tar_index::{Bounds, Policy, clean_name, read_index, refused};
    use super::*;
    use crate::error::{Error, Result};
    use crate::tar::Time;

    struct AsIs;

    impl Policy for AsIs {
        fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
            clean_name(raw).map(|name| Some(name).filter(|name| !name.is_empty()))
        }
        fn place_target(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
            self.place(raw)
        }
        fn nameless(&mut self, name: &[u8]) -> Result<()> {
            Err(refused(name, "nameless"))
        }
        fn special(&mut self, name: &[u8]) -> Result<()> {
            Err(refused(name, "special"))
        }
    }

    const ANY: Bounds = Bounds { max_bytes: u64::MAX, max_entries: u64::MAX };

    fn entry(name: &[u8], kind: EntryKind) -> Entry {
        let modified = Time { seconds: 1_700_000_000, nanos: 250_000_000 };
        Entry { name: name.to_vec(), kind, mode: 0o4751, owner: (1000, 3_000_000), modified }
    }

    fn archive(entries: &[Entry], content: &[u8]) -> Vec<u8> {
        let mut data = tempfile::tempfile().unwrap();
        data.write_all(content).unwrap();
        let mut out = TarWriter::new(Vec::new());
        for entry in entries {
            emit(&mut out, entry, &data, Names::Dotted).unwrap();
        }
        out.finish().unwrap()
    }

    fn index(archive: &[u8]) -> Result<super::super::tar_index::Index> {
        read_index(archive, Spool::new().unwrap(), ANY, "t", &mut AsIs)
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
            assert_eq!(found.owner, (1000, 3_000_000));
        }
        assert!(matches!(&read.entries[2].kind, EntryKind::Symlink(target) if target.len() == 200));
        assert!(matches!(&read.entries[3].kind, EntryKind::HardLink(target) if *target == long));
    }

    #[test]
    fn a_cut_archive_is_refused_wherever_it_is_cut() {
        let entries = [entry(b"a", EntryKind::File { offset: 0, len: 700 })];
        let archive = archive(&entries, &[7; 700]);
        assert!(index(&archive).is_ok());
        let whole_without_end = archive.len() - 1024;
        for cut in (0..=whole_without_end).step_by(100).chain([whole_without_end]) {
            assert!(matches!(index(&archive[..cut]), Err(Error::Archive { .. })), "{cut}");
        }
    }

    #[test]
    fn names_that_leave_and_compressed_archives_are_refused() {
        for name in [&b"../x"[..], b"a/../../x", b"/etc/passwd", b"a/.."] {
            let mut evil = TarWriter::new(Vec::new());
            let entry = tar_format::Entry {
                name,
                kind: EntryType::Regular,
                link: b"",
                mode: 0o644,
                owner: (0, 0),
                size: 0,
                modified: Time::default(),
            };
            evil.start(&entry).unwrap();
            let evil = evil.finish().unwrap();
            assert!(matches!(index(&evil), Err(Error::Archive { .. })), "{name:?}");
        }
        assert!(matches!(index(&[0x1f, 0x8b, 8, 0, 0, 0].repeat(200)), Err(Error::Archive { .. })));
    }
}
