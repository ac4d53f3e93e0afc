//! Writing an archive: POSIX headers, with pax records for what does not fit into them.

use std::io::{self, Write};

use super::{BLOCK, Time};

/// What fits into the size field in octal.
const MAX_OCTAL_SIZE: u64 = 0o77_777_777_777;

/// An entry to write.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: tar::EntryType,
    pub(crate) link: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) size: u64,
    pub(crate) modified: Time,
}

/// A tar stream that is being made.
pub(crate) struct TarWriter<W>(W);

impl<W: Write> TarWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        TarWriter(inner)
    }

    /// Writes an entry's headers. Exactly `size` bytes of [`data`](Self::data) and a call of
    /// [`pad`](Self::pad) must follow.
    pub(crate) fn start(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let records = records(entry);
        if !records.is_empty() {
            let extended = Entry {
                name: b"././@PaxHeader",
                kind: tar::EntryType::XHeader,
                link: b"",
                mode: 0o644,
                owner: (0, 0),
                size: records.len() as u64,
                modified: Time { nanos: 0, ..entry.modified },
            };
            self.0.write_all(header(&extended).as_bytes())?;
            self.0.write_all(&records)?;
            self.pad(records.len() as u64)?;
        }
        self.0.write_all(header(entry).as_bytes())
    }

    pub(crate) fn data(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    /// Fills up the last block of data of this size.
    pub(crate) fn pad(&mut self, size: u64) -> io::Result<()> {
        let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
        if over == 0 { Ok(()) } else { self.0.write_all(&[0; BLOCK][over..]) }
    }

    /// Writes the end mark.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.0.write_all(&[0; 2 * BLOCK])?;
        Ok(self.0)
    }
}

fn header(entry: &Entry<'_>) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    let fields = header.as_old_mut();
    fill(&mut fields.name, entry.name);
    fill(&mut fields.linkname, entry.link);
    header.set_entry_type(entry.kind);
    header.set_mode(entry.mode);
    header.set_uid(entry.owner.0.into());
    header.set_gid(entry.owner.1.into());
    header.set_size(entry.size);
    header.set_mtime(u64::try_from(entry.modified.seconds).unwrap_or_default());
    header.set_cksum();
    header
}

fn fill(field: &mut [u8], bytes: &[u8]) {
    let length = bytes.len().min(field.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

/// The pax records of what does not fit into the header.
fn records(entry: &Entry<'_>) -> Vec<u8> {
    let mut records = Vec::new();
    if entry.name.len() > 100 {
        record(&mut records, "path", entry.name);
    }
    if entry.link.len() > 100 {
        record(&mut records, "linkpath", entry.link);
    }
    if entry.size > MAX_OCTAL_SIZE {
        record(&mut records, "size", entry.size.to_string().as_bytes());
    }
    let Time { seconds, nanos } = entry.modified;
    if seconds < 0 || nanos > 0 {
        record(&mut records, "mtime", decimal(seconds, nanos).as_bytes());
    }
    records
}

/// Seconds as pax writes them, where the fraction of a negative time counts down.
fn decimal(seconds: i64, nanos: u32) -> String {
    match (seconds, nanos) {
        (_, 0) => seconds.to_string(),
        (0.., _) => format!("{seconds}.{nanos:09}"),
        _ => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanos),
    }
}

/// Adds `LENGTH key=value\n`, where the length counts itself.
fn record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for size in [1, 80, 86, 87, 88, 89, 90, 91, 92, 984, 990, 995] {
            let mut records = Vec::new();
            record(&mut records, "path", &vec![b'x'; size]);
            let text = String::from_utf8(records.clone()).unwrap();
            assert_eq!(text.split(' ').next().unwrap().parse(), Ok(records.len()));
        }
    }

    #[test]
    fn times_before_1970_count_down() {
        assert_eq!(decimal(-2, 750_000_000), "-1.250000000");
        assert_eq!(decimal(-1, 500_000_000), "-0.500000000");
        assert_eq!(decimal(7, 5), "7.000000005");
    }
}
