//! The order of the entries that go out, and which of them carry contents.

use std::collections::{HashMap, HashSet};

use super::tar_index::{Entry, EntryKind};

/// The names that hard links lead to and that nothing has: their files were left out.
pub(super) fn excluded_contents(entries: &[Entry]) -> HashSet<Vec<u8>> {
    let mut targets: HashSet<Vec<u8>> = entries
        .iter()
        .filter_map(|entry| match &entry.kind {
            EntryKind::HardLink(target) => Some(target.clone()),
            _ => None,
        })
        .collect();
    if !targets.is_empty() {
        for entry in entries {
            targets.remove(&entry.name);
        }
    }
    targets
}

/// Sorts the entries so that a directory comes before what is in it, drops those that are `excluded`,
/// and lets the first name of each file carry its content. Every name of a symbolic link is one of
/// its own.
pub(super) fn arrange(entries: &mut Vec<Entry>, excluded: &HashSet<Vec<u8>>) {
    entries.sort_by(|a, b| a.name.split(|byte| *byte == b'/').cmp(b.name.split(|byte| *byte == b'/')));
    // Of each target of hard links its first name that goes out.
    let mut first: HashMap<Vec<u8>, Option<Vec<u8>>> = HashMap::new();
    for entry in entries.iter() {
        if let EntryKind::HardLink(target) = &entry.kind {
            first.entry(target.clone()).or_default();
        }
    }
    let mut contents: HashMap<Vec<u8>, Entry> = HashMap::new();
    for entry in entries.iter() {
        let target = match &entry.kind {
            EntryKind::HardLink(target) => target,
            EntryKind::Directory => continue,
            EntryKind::File { .. } | EntryKind::Symlink(_) if first.contains_key(&entry.name) => {
                contents.insert(entry.name.clone(), entry.clone());
                &entry.name
            }
            _ => continue,
        };
        if let Some(first) = first.get_mut(target).filter(|_| !excluded.contains(&entry.name)) {
            first.get_or_insert_with(|| entry.name.clone());
        }
    }
    entries.retain_mut(|entry| {
        if excluded.contains(&entry.name) {
            return false;
        }
        let target = match &entry.kind {
            EntryKind::HardLink(target) => target,
            _ => &entry.name,
        };
        let Some(first) = first.get(target) else { return true };
        // Without content it is a name of a FIFO or a device.
        let Some(content) = contents.get(target) else { return false };
        entry.kind = match first {
            Some(first) if *first != entry.name && matches!(content.kind, EntryKind::File { .. }) => {
                EntryKind::HardLink(first.clone())
            }
            _ => content.kind.clone(),
        };
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::Time;

    fn entry(name: &str, kind: EntryKind) -> Entry {
        Entry { name: name.into(), kind, mode: 0o644, owner: (0, 0), modified: Time::default() }
    }

    fn link(target: &str) -> EntryKind {
        EntryKind::HardLink(target.into())
    }

    const FILE: EntryKind = EntryKind::File { offset: 5, len: 3 };

    #[test]
    fn the_first_of_hard_links_carries_the_content() {
        let mut entries = vec![
            entry("m", FILE),
            entry("z", link("m")),
            entry("c", link("m")),
            entry("a-b", EntryKind::Directory),
            entry("a/x", link("m")),
            entry("a", EntryKind::Directory),
            entry("fifo2", link("fifo")),
        ];
        assert_eq!(excluded_contents(&entries), HashSet::from([b"fifo".to_vec()]));
        arrange(&mut entries, &HashSet::new());
        let names: Vec<_> = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name)).collect();
        assert_eq!(names, ["a", "a/x", "a-b", "c", "m", "z"]);
        assert!(matches!(entries[1].kind, EntryKind::File { offset: 5, len: 3 }));
        for entry in &entries[3..] {
            assert!(matches!(&entry.kind, EntryKind::HardLink(target) if target == b"a/x"), "{entry:?}");
        }
    }

    #[test]
    fn a_link_carries_the_content_of_an_excluded_name() {
        let symlink = EntryKind::Symlink(b"t".to_vec());
        let mut entries = vec![
            entry("out/f", FILE),
            entry("out/s", symlink),
            entry("y", link("out/f")),
            entry("x", link("out/f")),
            entry("r", link("out/s")),
            entry("q", link("out/s")),
        ];
        let excluded = HashSet::from([b"out/f".to_vec(), b"out/s".to_vec()]);
        arrange(&mut entries, &excluded);
        let names: Vec<_> = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name)).collect();
        assert_eq!(names, ["q", "r", "x", "y"]);
        for link in &entries[..2] {
            assert!(matches!(&link.kind, EntryKind::Symlink(target) if target == b"t"), "{link:?}");
        }
        assert!(matches!(entries[2].kind, EntryKind::File { offset: 5, len: 3 }));
        assert!(matches!(&entries[3].kind, EntryKind::HardLink(target) if target == b"x"));
    }
}
