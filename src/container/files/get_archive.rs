//! Taking a tree out of a container.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use tokio_util::io::StreamReader;

use super::engine_files::{not_found, within};
use super::engine_walk::{Last, resolve};
use super::paused::paused;
use super::spool::temporary_file;
use super::tar_emit::{self, Names};
use super::tar_index::{Bounds, Entry, EntryKind, Index, Policy, clean_name, read_index};
use super::transfer::{bound, consume, download, produce};
use crate::container::lookup::join;
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{ArchiveOptions, ArchiveReader};
use crate::path::WorkspacePath;
use crate::tar::TarWriter;

/// How long a tree may take whose size nobody knows, as if it had this many bytes.
const ASSUMED: u64 = 8 << 30;

/// The tree at `path`. It is in a temporary file of this machine when this returns, since the engine
/// locks the container for as long as it sends.
pub(crate) async fn get_archive(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: ArchiveOptions,
) -> Result<ArchiveReader> {
    shared.monitor.check_open()?;
    let exclude = globs(&options.exclude)?;
    let max_bytes = options.max_bytes.unwrap_or(u64::MAX);
    let (held, wanted) = (Arc::clone(shared), path.clone());
    let taking = paused(shared, async move { take_out(&held, &wanted, exclude, max_bytes).await });
    match shared.guard(taking).await {
        Ok(index) => Ok(archive(Arc::clone(shared), index)),
        // What breaks while it is read is an error of reading.
        Err(error @ (Error::TooLarge { .. } | Error::Changed { .. })) => {
            let failed = stream::iter([Err::<Bytes, _>(io::Error::from(error))]);
            Ok(ArchiveReader::new(StreamReader::new(failed)))
        }
        Err(error) => Err(error),
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut globs = GlobSetBuilder::new();
    let malformed = |error: globset::Error| Error::InvalidArgument { reason: error.to_string() };
    for pattern in patterns {
        globs.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(malformed)?);
    }
    globs.build().map_err(malformed)
}

async fn take_out(shared: &Shared, path: &WorkspacePath, exclude: GlobSet, max_bytes: u64) -> Result<Index> {
    let place = resolve(shared, path, Last::Follow).await?;
    let found = place.found.as_ref().ok_or_else(|| not_found(path))?;
    let (archive, alone) = match () {
        // With the dot the names begin in the directory itself.
        () if found.is_dir() => (download(shared, &join(&place.path(), ".")), None),
        () if found.is_file() => {
            let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
            (download(shared, &place.path()), Some(name))
        }
        () => return Err(Error::NotAFile { path: path.as_str().to_owned(), kind: found.kind }),
    };
    let expected = if found.is_file() { found.size } else { max_bytes.min(ASSUMED) };
    let data = temporary_file().await?;
    let what = path.as_str().to_owned();
    let reading = consume(archive, move |reader| {
        let bounds = Bounds { max_bytes, max_entries: u64::MAX };
        let mut index = read_index(reader, data, bounds, &what, &mut Wanted { alone, exclude })?;
        arrange(&mut index.entries);
        Ok(index)
    });
    match within(bound(expected), "taking a tree out of the container", reading).await {
        Err(Error::Archive { .. }) => Err(Error::Changed { path: path.as_str().to_owned() }),
        other => other,
    }
}

/// Which entries are wanted, under which names.
struct Wanted {
    /// The name of a file that was asked for by itself.
    alone: Option<Vec<u8>>,
    exclude: GlobSet,
}

impl Policy for Wanted {
    fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(name) = &self.alone {
            return Ok(Some(name.clone()));
        }
        let name = clean_name(raw)?;
        let ends = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        let excluded = |end: usize| self.exclude.is_match(OsStr::from_bytes(&name[..end]));
        if name.is_empty() || ends.chain([name.len()]).any(excluded) {
            return Ok(None);
        }
        Ok(Some(name))
    }

    fn nameless(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn special(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Sorts the entries so that a directory comes before what is in it, and lets the first of each
/// group of hard links carry the content.
fn arrange(entries: &mut Vec<Entry>) {
    entries.sort_by(|a, b| a.name.split(|byte| *byte == b'/').cmp(b.name.split(|byte| *byte == b'/')));
    let mut contents: HashMap<Vec<u8>, Entry> = HashMap::new();
    for entry in entries.iter() {
        if matches!(entry.kind, EntryKind::File { .. }) {
            contents.insert(entry.name.clone(), entry.clone());
        }
    }
    let linked: HashMap<Vec<u8>, Vec<u8>> = entries
        .iter()
        .rev()
        .filter_map(|entry| match &entry.kind {
            EntryKind::HardLink(target) => Some((target.clone(), entry.name.clone())),
            _ => None,
        })
        .collect();
    // `linked` has the first link by name to each content.
    entries.retain_mut(|entry| match &entry.kind {
        EntryKind::File { .. } => {
            if let Some(first) = linked.get(&entry.name).filter(|first| is_before(first, &entry.name)) {
                entry.kind = EntryKind::HardLink(first.clone());
            }
            true
        }
        EntryKind::HardLink(target) => {
            let Some(content) = contents.get(target) else { return false };
            match linked.get(target) {
                Some(first) if is_before(first, target) && *first == entry.name => {
                    *entry = Entry { name: entry.name.clone(), ..content.clone() };
                }
                Some(first) if is_before(first, target) => entry.kind = EntryKind::HardLink(first.clone()),
                _ => {}
            }
            true
        }
        _ => true,
    });
}

fn is_before(a: &[u8], b: &[u8]) -> bool {
    a.split(|byte| *byte == b'/').lt(b.split(|byte| *byte == b'/'))
}

/// The archive of what was taken out.
fn archive(shared: Arc<Shared>, index: Index) -> ArchiveReader {
    let Index { entries, data, .. } = index;
    let chunks = produce(move |out| {
        let mut out = TarWriter::new(out);
        for entry in &entries {
            tar_emit::emit(&mut out, entry, &data, Names::Plain)?;
        }
        out.finish().map(drop)
    });
    let chunks = chunks.map(move |chunk| {
        shared.monitor.check_open()?;
        chunk
    });
    ArchiveReader::new(StreamReader::new(Box::pin(chunks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::Time;

    fn entry(name: &str, kind: EntryKind) -> Entry {
        Entry { name: name.into(), kind, mode: 0o644, owner: (0, 0), modified: Time::default() }
    }

    #[test]
    fn the_first_of_hard_links_carries_the_content() {
        let file = EntryKind::File { offset: 5, len: 3 };
        let link = || EntryKind::HardLink(b"m".to_vec());
        let mut entries = vec![
            entry("m", file),
            entry("z", link()),
            entry("c", link()),
            entry("a-b", EntryKind::Directory),
            entry("a/x", link()),
            entry("a", EntryKind::Directory),
            entry("orphan", EntryKind::HardLink(b"excluded".to_vec())),
        ];
        arrange(&mut entries);
        let names: Vec<_> = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name)).collect();
        assert_eq!(names, ["a", "a/x", "a-b", "c", "m", "z"]);
        assert!(matches!(entries[1].kind, EntryKind::File { offset: 5, len: 3 }));
        for entry in &entries[3..] {
            assert!(matches!(&entry.kind, EntryKind::HardLink(target) if target == b"a/x"), "{entry:?}");
        }
    }

    #[test]
    fn what_is_below_an_excluded_directory_is_left_out() {
        let exclude = globs(&["target".to_owned(), "**/*.o".to_owned()]).unwrap();
        let mut wanted = Wanted { alone: None, exclude };
        for (name, is_wanted) in [
            ("./target/", false),
            ("target/a/b", false),
            ("src/target", true),
            ("src/x.o", false),
            ("./", false),
        ] {
            assert_eq!(wanted.place(name.as_bytes()).unwrap().is_some(), is_wanted, "{name}");
        }
        assert!(globs(&["a[".to_owned()]).is_err());
    }
}
