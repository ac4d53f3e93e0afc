//! Where the data of a sparse file goes.

use super::BLOCK;

/// How many parts a sparse file may have: 16 MiB of map.
pub(super) const MAX_PARTS: usize = 1 << 20;

/// Where a part is in the file, and how long it is.
pub(super) type Part = (u64, u64);

/// The parts of a file that are in the archive, in order; the rest of its size is holes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Map(pub(super) Vec<Part>);

impl Map {
    /// One part: the file has no holes.
    pub(super) fn whole(size: u64) -> Map {
        Map(if size == 0 { Vec::new() } else { vec![(0, size)] })
    }

    /// Checks that the parts are in order, within `real_size`, and `stored` bytes in all.
    ///
    /// Writers differ in whether they pad a part to a whole block, so only the last may need it.
    pub(super) fn checked(parts: Vec<Part>, real_size: u64, stored: u64) -> Option<Map> {
        let mut end = 0u64;
        let mut total = 0u64;
        let parts: Vec<_> = parts.into_iter().filter(|(_, length)| *length > 0).collect();
        for (index, (offset, length)) in parts.iter().enumerate() {
            let padded = length.is_multiple_of(BLOCK as u64) || index + 1 == parts.len();
            if *offset < end || !padded {
                return None;
            }
            end = offset.checked_add(*length)?;
            total = total.checked_add(*length)?;
        }
        // GNU tar counts the padding of the last part as stored, others do not.
        let fits = total == stored || total.checked_next_multiple_of(BLOCK as u64)? == stored;
        (end <= real_size && fits).then_some(Map(parts))
    }

    /// Offsets and lengths in turn.
    pub(super) fn pairs(numbers: &[u64]) -> Option<Vec<Part>> {
        let pairs = numbers.chunks_exact(2);
        pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0], pair[1])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn parts_must_be_in_order_inside_and_complete() {
        assert!(Map::checked(vec![(0, 512), (1024, 5), (4096, 0)], 4096, 517).is_some());
        assert!(Map::checked(vec![(0, 512), (1024, 5)], 4096, 1024).is_some());
        for (parts, stored) in [
            (vec![(512, 512), (0, 512)], 1024),
            (vec![(0, 512), (256, 512)], 1024),
            (vec![(4000, 512)], 512),
            (vec![(0, 512)], 513),
            (vec![(0, 5), (1024, 512)], 517),
            (vec![(u64::MAX, 2)], 2),
        ] {
            assert_eq!(Map::checked(parts.clone(), 4096, stored), None, "{parts:?}");
        }
    }
}
