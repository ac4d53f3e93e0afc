//! The directory that a planned archive is sent to.

use super::engine_walk::Place;
use super::tar_index::{Entry, EntryKind};
use crate::container::shared::Shared;

/// The bits that the kernel takes from a file that changes hands.
const SPECIAL_BITS: u32 = 0o6000;

/// Chooses the directory to unpack in, and makes the names of `entries`, which are below the
/// workspace root, relative to it.
///
/// It is the one that was asked for, because the engine judges by it whether it may be written to,
/// or the workspace root where a link leads elsewhere. An engine refuses a symbolic link that leads
/// out of the directory it unpacks in, and out of `/` none does. The name of one that made it `/` is
/// given as well, since a container whose root is read-only refuses that.
pub(super) fn relocate(shared: &Shared, place: &Place, entries: &mut [Entry]) -> (String, Option<Vec<u8>>) {
    let root = shared.root.trim_end_matches('/');
    let below = place.dir.strip_prefix(root).unwrap_or_default().trim_start_matches('/');
    let prefix = if below.is_empty() { Vec::new() } else { format!("{below}/").into_bytes() };
    let is_below = |entry: &Entry| match &entry.kind {
        EntryKind::HardLink(target) => target.starts_with(&prefix) && entry.name.starts_with(&prefix),
        _ => entry.name.starts_with(&prefix),
    };
    let mut base = shared.root.clone();
    if entries.iter().all(is_below) {
        for entry in entries.iter_mut() {
            rename(entry, |name| drop(name.drain(..prefix.len())));
        }
        base.clone_from(&place.dir);
    }
    let leaving = entries.iter().find(|entry| leaves(&base, entry)).map(|entry| {
        // In the archive it is below the directory that was asked for, which may be missing.
        let missing: String = place.below.iter().map(|name| format!("{name}/")).collect();
        entry.name.strip_prefix(missing.as_bytes()).unwrap_or(&entry.name).to_vec()
    });
    if leaving.is_some() {
        let above = base.trim_matches('/');
        let above = if above.is_empty() { Vec::new() } else { format!("{above}/").into_bytes() };
        for entry in entries.iter_mut() {
            rename(entry, |name| drop(name.splice(..0, above.iter().copied())));
        }
        base = "/".to_owned();
    }
    keep_special_bits(&base, entries);
    (base, leaving)
}

/// Whether an entry is a symbolic link that an engine takes for one out of `base`: relative, and
/// with more `..` than there is above it.
fn leaves(base: &str, entry: &Entry) -> bool {
    let EntryKind::Symlink(target) = &entry.kind else { return false };
    if base == "/" {
        return false;
    }
    let parents = entry.name.iter().filter(|byte| **byte == b'/').count();
    let mut depth = parents;
    for element in target.split(|byte| *byte == b'/') {
        match element {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// Docker gives what a hard link names to its user again, at which the kernel takes set-user-id and
/// set-group-id from it, and sets the mode once more only if it finds the name from `/` as well. So
/// that name is put as one that is the same from both.
fn keep_special_bits(base: &str, entries: &mut [Entry]) {
    let above: Vec<_> = base.split('/').filter(|element| !element.is_empty()).collect();
    if above.is_empty() {
        return;
    }
    let climb = format!("{}{}/", "../".repeat(above.len()), above.join("/")).into_bytes();
    for entry in entries.iter_mut().filter(|entry| entry.mode & SPECIAL_BITS != 0) {
        if let EntryKind::HardLink(target) = &mut entry.kind {
            drop(target.splice(..0, climb.iter().copied()));
        }
    }
}

/// Changes the name of an entry and that of the file that it links to.
fn rename(entry: &mut Entry, change: impl Fn(&mut Vec<u8>)) {
    change(&mut entry.name);
    if let EntryKind::HardLink(target) = &mut entry.kind {
        change(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::Time;

    fn entry(name: &str, kind: EntryKind) -> Entry {
        Entry { name: name.into(), kind, mode: 0o4755, owner: (0, 0), modified: Time::default() }
    }

    #[test]
    fn only_a_relative_link_with_too_many_steps_up_leaves() {
        let cases =
            [("../b", "a/l", false), ("../../b", "a/l", true), ("..", "l", true), ("/etc", "l", false)];
        for (target, name, leaving) in cases.into_iter().chain([("x/../..", "l", true)]) {
            let link = entry(name, EntryKind::Symlink(target.into()));
            assert_eq!(leaves("/workspace", &link), leaving, "{name} -> {target}");
            assert!(!leaves("/", &link));
        }
    }

    #[test]
    fn a_hard_link_with_special_bits_names_the_same_file_from_the_root() {
        let mut entries = [entry("l", EntryKind::HardLink(b"d/f".to_vec()))];
        keep_special_bits("/work/t", &mut entries);
        assert!(matches!(&entries[0].kind, EntryKind::HardLink(target) if target == b"../../work/t/d/f"));
    }
}
