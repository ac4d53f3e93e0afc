//! A directory of any size, name by name in order.

use std::io;
use std::os::fd::OwnedFd;

use super::list::Entries;
use crate::files::{DirEntry, DirPage, EntryName, ListOptions};

/// How many names of one directory are held at once.
const NAMES: usize = 16 * 1024;

/// A directory on the way down: what is left of its sorted names.
pub(super) struct SortedDir {
    pub(super) entries: Entries,
    /// Its own name below what is packed; empty for that itself.
    pub(super) name: Vec<u8>,
    names: std::vec::IntoIter<DirEntry>,
    /// Where the next page starts, when there is one.
    after: Option<EntryName>,
}

impl SortedDir {
    pub(super) fn open(dir: OwnedFd, name: Vec<u8>) -> io::Result<SortedDir> {
        let mut sorted =
            SortedDir { entries: Entries::new(dir)?, name, names: Vec::new().into_iter(), after: None };
        sorted.page(ListOptions::default())?;
        Ok(sorted)
    }

    fn page(&mut self, options: ListOptions) -> io::Result<()> {
        let mut failed = None;
        let names = std::iter::from_fn(|| match self.entries.next()? {
            Ok(entry) => Some(entry),
            Err(e) => {
                failed = Some(e);
                None
            }
        });
        let page = DirPage::select(names, &options.limit(NAMES));
        if let Some(e) = failed {
            return Err(e);
        }
        self.after = page.entries.last().filter(|_| page.more).map(|entry| entry.name.clone());
        self.names = page.entries.into_iter();
        Ok(())
    }

    pub(super) fn next(&mut self) -> io::Result<Option<DirEntry>> {
        if let Some(entry) = self.names.next() {
            return Ok(Some(entry));
        }
        let Some(after) = self.after.take() else { return Ok(None) };
        self.entries.rewind();
        self.page(ListOptions::default().after(after))?;
        Ok(self.names.next())
    }
}
