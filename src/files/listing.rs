//! Directory listings.

use std::fmt;

use super::FileKind;
use crate::error::{Error, Result};
use crate::path::MAX_ELEMENT_BYTES;

/// How many entries a page of a listing holds unless the caller says otherwise.
pub const DEFAULT_LIST_LIMIT: usize = 10_000;

/// Which part of a directory [`read_dir`](crate::Workspace::read_dir) returns.
///
/// A page costs a scan of the whole directory, and entries made or removed between pages may be
/// missed, so ask for as many as fit into memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListOptions {
    /// Only entries whose names sort after this one. Default: from the start.
    pub after: Option<EntryName>,
    /// At most this many, at least one. Default: [`DEFAULT_LIST_LIMIT`].
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { after: None, limit: DEFAULT_LIST_LIMIT }
    }
}

impl ListOptions {
    /// Only entries that sort after `name`: the last one of the page before.
    #[must_use]
    pub fn after(self, name: EntryName) -> Self {
        ListOptions { after: Some(name), ..self }
    }

    /// At most `limit` entries, at least one.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        ListOptions { limit, ..self }
    }
}

/// A part of a directory, sorted by the bytes of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirPage {
    /// The entries, without `.` and `..`.
    pub entries: Vec<DirEntry>,
    /// Whether entries follow that did not fit.
    pub more: bool,
}

impl DirPage {
    /// A page of these entries.
    pub fn new(entries: Vec<DirEntry>, more: bool) -> Self {
        DirPage { entries, more }
    }

    /// The page of `names` that `options` ask for: the smallest names after the start, sorted.
    ///
    /// Memory is bounded by the limit, however many names there are.
    pub fn select(names: impl IntoIterator<Item = DirEntry>, options: &ListOptions) -> DirPage {
        let mut page = std::collections::BTreeMap::new();
        let mut more = false;
        for entry in names {
            if options.after.as_ref().is_some_and(|after| entry.name <= *after) {
                continue;
            }
            page.insert(entry.name, entry.kind);
            if page.len() > options.limit.max(1) {
                page.pop_last();
                more = true;
            }
        }
        let entries = page.into_iter().map(|(name, kind)| DirEntry { name, kind }).collect();
        DirPage { entries, more }
    }
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// Its name.
    pub name: EntryName,
    /// What it is; a link is a link, whatever it leads to.
    pub kind: FileKind,
}

impl DirEntry {
    /// An entry of this name and kind.
    pub fn new(name: EntryName, kind: FileKind) -> Self {
        DirEntry { name, kind }
    }
}

/// The name of a directory entry: any bytes but `/` and NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName(Vec<u8>);

impl EntryName {
    /// Checks `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPath`] when they are empty, `.` or `..`, hold `/` or NUL, or are more than
    /// [`MAX_ELEMENT_BYTES`]: what no directory can hold, so that whoever listed it lies.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = bytes.into();
        let reason = match bytes.as_slice() {
            b"" | b"." | b".." => "it is no name of a directory entry",
            _ if bytes.contains(&b'/') || bytes.contains(&0) => "it holds a `/` or a NUL byte",
            _ if bytes.len() > MAX_ELEMENT_BYTES => "it is longer than 255 bytes",
            _ => return Ok(EntryName(bytes)),
        };
        Err(Error::InvalidPath { path: escape_bytes(&bytes), reason: reason.into() })
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as text, when it is UTF-8 and so can be part of a
    /// [`WorkspacePath`](crate::WorkspacePath).
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The name with every byte that is not part of valid UTF-8 as `\xHH`, and every `\` doubled,
    /// so that two names never look the same.
    pub fn escaped(&self) -> String {
        escape_bytes(&self.0)
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.escaped())
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escaped())
    }
}

/// `bytes` as text: invalid UTF-8 as `\xHH`, and every `\` doubled.
pub(crate) fn escape_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push('\\');
            }
            text.push(c);
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> DirEntry {
        DirEntry::new(EntryName::new(name).unwrap(), FileKind::File)
    }

    #[test]
    fn a_page_holds_the_smallest_names_after_the_start() {
        let names = ["d", "a", "c", "b", "e"].map(entry);
        let page = DirPage::select(names.clone(), &ListOptions::default().limit(2));
        assert_eq!(page, DirPage::new(vec![entry("a"), entry("b")], true));
        let next = ListOptions::default().limit(3).after(entry("b").name);
        let page = DirPage::select(names, &next);
        assert_eq!(page, DirPage::new(vec![entry("c"), entry("d"), entry("e")], false));
    }

    #[test]
    fn names_that_are_not_utf8_are_escaped_and_distinct() {
        let raw = EntryName::new(*b"a\xff\\x").unwrap();
        assert_eq!(raw.as_str(), None);
        assert_eq!(raw.escaped(), "a\\xFF\\\\x");
        assert_ne!(raw.escaped(), EntryName::new("a\\xFF\\x").unwrap().escaped());
    }

    #[test]
    fn impossible_names_are_refused() {
        for name in ["", ".", "..", "a/b", "../x", "a\0"] {
            assert!(EntryName::new(name).is_err(), "{name:?}");
        }
    }
}
