//! What is in a directory.

use std::sync::Arc;

use bytes::BytesMut;

use super::engine_files;
use super::script::{self, Dropped, Output, script, unexpected};
use super::status;
use crate::container::shared::Shared;
use crate::error::Result;
use crate::files::{DirEntry, DirPage, EntryName, FileKind, ListOptions};
use crate::path::{MAX_ELEMENT_BYTES, WorkspacePath};

/// How many names are collected before a page is cut out of them.
const BATCH: usize = 4096;

pub(crate) async fn read_dir(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: ListOptions,
) -> Result<DirPage> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return shared.guard(engine_files::read_dir(shared, path, options)).await;
    }
    shared
        .guard(async {
            let mut attempt = 1;
            loop {
                let running =
                    script::start(shared, script!("list.sh"), &[path.as_str()], false, Dropped::Kill).await?;
                let (mut output, _) = running.split();
                let mut lister = Lister::new(options.clone());
                lister.take_all(&mut output).await?;
                let ended = output.end(shared, &lister.partial).await?;
                if ended.status != status::RACED || attempt == script::ATTEMPTS {
                    ended.check("list", path.as_str())?;
                    return lister.finish();
                }
                attempt += 1;
            }
        })
        .await
}

/// Makes a page of the names that come from a container.
pub(super) struct Lister {
    options: ListOptions,
    page: DirPage,
    batch: Vec<DirEntry>,
    /// The start of a name whose end has not come.
    partial: BytesMut,
}

impl Lister {
    pub(super) fn new(options: ListOptions) -> Self {
        Lister { options, page: DirPage::default(), batch: Vec::new(), partial: BytesMut::new() }
    }

    async fn take_all(&mut self, output: &mut Output) -> Result<()> {
        while let Some(chunk) = output.next().await? {
            self.partial.extend_from_slice(&chunk);
            while let Some(end) = self.partial.iter().position(|byte| *byte == 0) {
                let mut entry = self.partial.split_to(end + 1);
                entry.truncate(end);
                self.take(&entry)?;
            }
            if self.partial.len() > MAX_ELEMENT_BYTES + 1 && self.is_broken() {
                return Err(unexpected("a directory entry has no end"));
            }
        }
        Ok(())
    }

    /// Whether what came is no list: the engine's words about a failed start have no NUL either,
    /// and are wanted for its error.
    fn is_broken(&self) -> bool {
        self.partial.len() > 64 * 1024
    }

    fn take(&mut self, entry: &[u8]) -> Result<()> {
        let Some((kind, name)) = entry.split_first() else {
            return Err(unexpected("a directory entry is empty"));
        };
        let kind = match kind {
            b'f' => FileKind::File,
            b'd' => FileKind::Directory,
            b'l' => FileKind::Symlink,
            b'p' => FileKind::Fifo,
            b's' => FileKind::Socket,
            b'b' => FileKind::BlockDevice,
            b'c' => FileKind::CharDevice,
            _ => FileKind::Unknown,
        };
        self.take_entry(kind, name)
    }

    pub(super) fn take_entry(&mut self, kind: FileKind, name: &[u8]) -> Result<()> {
        self.batch.push(DirEntry::new(EntryName::new(name)?, kind));
        if self.batch.len() >= BATCH {
            self.select();
        }
        Ok(())
    }

    fn select(&mut self) {
        let page = std::mem::take(&mut self.page);
        let names = page.entries.into_iter().chain(self.batch.drain(..));
        let selected = DirPage::select(names, &self.options);
        self.page = DirPage::new(selected.entries, selected.more || page.more);
    }

    pub(super) fn finish(mut self) -> Result<DirPage> {
        if !self.partial.is_empty() {
            return Err(unexpected("the last directory entry has no end"));
        }
        self.select();
        Ok(self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_same_however_many_batches_it_took() {
        let options = ListOptions::default().limit(5000);
        let mut lister = Lister::new(options.clone());
        for n in (0..9000).rev() {
            lister.take(format!("f{n:05}").as_bytes()).unwrap();
        }
        let page = lister.finish().unwrap();
        assert!(page.more && page.entries.len() == 5000);
        assert_eq!(page.entries[4999].name.as_str(), Some("04999"));
    }

    #[test]
    fn a_name_that_no_directory_can_hold_is_refused() {
        let options = ListOptions::default();
        for entry in ["", "f", "f..", "fa/b"] {
            assert!(Lister::new(options.clone()).take(entry.as_bytes()).is_err(), "{entry}");
        }
    }
}
