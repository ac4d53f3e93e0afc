//! The fields of one header block.

use super::BLOCK;
use super::sparse::Part;

/// A block that was found to be a header.
pub(super) struct Header([u8; BLOCK]);

impl Header {
    /// `block` as a header, if its checksum is right.
    pub(super) fn parse(block: [u8; BLOCK]) -> Option<Header> {
        let header = Header(block);
        let expected = header.number(148..156)?;
        // The checksum is taken with its own field as spaces. Old writers summed signed bytes.
        let field = |index: usize| if (148..156).contains(&index) { b' ' } else { block[index] };
        let unsigned: i64 = (0..BLOCK).map(|index| i64::from(field(index))).sum();
        let signed: i64 = (0..BLOCK).map(|index| i64::from(field(index).cast_signed())).sum();
        (expected == unsigned || expected == signed).then_some(header)
    }

    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    pub(super) fn name(&self) -> Vec<u8> {
        let name = self.text(0..100);
        let prefix = if !self.is_ustar() {
            &b""[..]
        } else if &self.0[508..512] == b"tar\0" {
            // The format of star has times where POSIX has the end of the prefix.
            self.text(345..476)
        } else {
            self.text(345..500)
        };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    pub(super) fn link(&self) -> &[u8] {
        self.text(157..257)
    }

    pub(super) fn mode(&self) -> Option<u32> {
        u32::try_from(self.number(100..108)?).ok()
    }

    pub(super) fn uid(&self) -> u32 {
        self.number(108..116).and_then(|id| u32::try_from(id).ok()).unwrap_or_default()
    }

    pub(super) fn gid(&self) -> u32 {
        self.number(116..124).and_then(|id| u32::try_from(id).ok()).unwrap_or_default()
    }

    pub(super) fn size(&self) -> Option<u64> {
        u64::try_from(self.number(124..136)?).ok()
    }

    pub(super) fn modified(&self) -> Option<i64> {
        self.number(136..148)
    }

    /// The first entries of the map of an old GNU sparse file, whether more blocks of it follow,
    /// and the size of the file.
    pub(super) fn sparse(&self) -> Option<(Vec<Part>, bool, u64)> {
        let size = u64::try_from(self.number(483..495)?).ok()?;
        Some((sparse_entries(&self.0[386..482])?, self.0[482] != 0, size))
    }

    fn is_ustar(&self) -> bool {
        &self.0[257..263] == b"ustar\0"
    }

    /// A field up to its first NUL.
    fn text(&self, field: std::ops::Range<usize>) -> &[u8] {
        let bytes = &self.0[field];
        &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
    }

    fn number(&self, field: std::ops::Range<usize>) -> Option<i64> {
        number(&self.0[field])
    }
}

/// The map entries in a header or an extension block: pairs of offset and length, 12 bytes each,
/// up to an empty one.
pub(super) fn sparse_entries(block: &[u8]) -> Option<Vec<Part>> {
    let mut entries = Vec::new();
    for pair in block.chunks_exact(24) {
        if pair[0] == 0 {
            break;
        }
        let field = |bytes| u64::try_from(number(bytes)?).ok();
        entries.push((field(&pair[..12])?, field(&pair[12..])?));
    }
    Some(entries)
}

/// A number in octal, or in base 256 when its first bit is set. Blank is 0.
fn number(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // Two's complement below the marking bit.
        let start = i64::from(first & 0x3f) - if first & 0x40 != 0 { 0x40 } else { 0 };
        return rest
            .iter()
            .try_fold(start, |value, byte| value.checked_mul(256).map(|shifted| shifted | i64::from(*byte)));
    }
    let digits = field.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii();
    digits.iter().try_fold(0i64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"    644 "), Some(0o644));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"00008\0"), None);
        assert_eq!(number(&[0x80, 0, 0, 1, 0]), Some(256));
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xfe]), Some(-2));
    }
}
