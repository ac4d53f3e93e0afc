//! Pax records: the extended headers of POSIX, with GNU's keys for sparse files.

use super::Time;

/// What extended headers say about the entries after them.
#[derive(Clone, Debug, Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) modified: Option<Time>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) sparse: PaxSparse,
}

/// What they say about a sparse file.
#[derive(Clone, Debug, Default)]
pub(super) struct PaxSparse {
    /// The version is 1.0: the map is at the start of the data.
    pub(super) map_in_data: bool,
    /// A version that is not known.
    pub(super) unknown: bool,
    pub(super) name: Option<Vec<u8>>,
    pub(super) real_size: Option<u64>,
    /// The map of version 0.0 and 0.1: offsets and lengths in turn.
    pub(super) map: Option<Vec<u64>>,
}

impl Pax {
    /// Adds the records in `data`. `None` when they are malformed.
    pub(super) fn read(&mut self, mut data: &[u8]) -> Option<()> {
        // Padding after the last record is not in the format, but some writers put it there.
        while data.first().is_some_and(|byte| *byte != 0) {
            let space = data.iter().position(|byte| *byte == b' ')?;
            let length = usize::try_from(decimal(&data[..space])?).ok()?;
            let record = data.get(space + 1..length)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|byte| *byte == b'=')?;
            self.record(&record[..equals], &record[equals + 1..])?;
            data = &data[length..];
        }
        Some(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let text = || (!value.is_empty()).then(|| value.to_vec());
        match key {
            b"path" => self.path = text(),
            b"linkpath" => self.link = text(),
            // An empty value takes back what a global header said.
            b"size" if value.is_empty() => self.size = None,
            b"size" => self.size = Some(decimal(value)?),
            b"mtime" if value.is_empty() => self.modified = None,
            b"mtime" => self.modified = Some(time(value)?),
            b"uid" => self.uid = id(value),
            b"gid" => self.gid = id(value),
            b"GNU.sparse.major" => {
                self.sparse.map_in_data |= value == b"1";
                self.sparse.unknown |= !matches!(value, b"0" | b"1");
            }
            b"GNU.sparse.name" => self.sparse.name = text(),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.real_size = Some(decimal(value)?),
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                self.sparse.map.get_or_insert_default().push(decimal(value)?);
            }
            b"GNU.sparse.map" => {
                let numbers = value.split(|byte| *byte == b',').filter(|n| !n.is_empty());
                self.sparse.map = Some(numbers.map(decimal).collect::<Option<_>>()?);
            }
            _ => {}
        }
        Some(())
    }
}

impl PaxSparse {
    /// Whether any of them was there.
    pub(super) fn is_some(&self) -> bool {
        self.map_in_data || self.map.is_some() || self.unknown
    }
}

/// A user or group. One that is no number does not make a file unreadable.
fn id(value: &[u8]) -> Option<u32> {
    decimal(value).and_then(|id| u32::try_from(id).ok())
}

/// A plain decimal number.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

/// Seconds with an optional sign and fraction. A negative fraction counts down.
fn time(text: &[u8]) -> Option<Time> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let fraction = parts.next().unwrap_or_default();
    let mut nanos = 0;
    for place in 0..9 {
        let digit = fraction.get(place).copied().unwrap_or(b'0');
        nanos = nanos * 10 + char::from(digit).to_digit(10)?;
    }
    Some(match (negative, nanos) {
        (false, _) => Time { seconds, nanos },
        (true, 0) => Time { seconds: -seconds, nanos },
        (true, _) => Time { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_may_hold_newlines_and_empty_values() {
        let mut pax = Pax::default();
        pax.read(b"13 path=a\nb/\n11 size=12\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a\nb/"[..]));
        assert_eq!(pax.size, Some(12));
        pax.read(b"8 path=\n").unwrap();
        assert_eq!(pax.path, None);
        for broken in [&b"9 path=a"[..], b"x path=a\n", b"900 path=a\n", b"7 path\n", b"0 \n"] {
            assert!(Pax::default().read(broken).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn times_have_fractions_and_signs() {
        assert_eq!(time(b"12.5"), Some(Time { seconds: 12, nanos: 500_000_000 }));
        assert_eq!(time(b"-1.25"), Some(Time { seconds: -2, nanos: 750_000_000 }));
        assert_eq!(time(b"-3"), Some(Time { seconds: -3, nanos: 0 }));
        assert_eq!(time(b"1.1234567891"), Some(Time { seconds: 1, nanos: 123_456_789 }));
        assert_eq!(time(b"1x"), None);
    }
}
