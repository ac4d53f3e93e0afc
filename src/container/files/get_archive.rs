//! Taking a tree out of a container.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use tokio_util::io::StreamReader;

use super::arrange;
use super::capabilities::hidden_below;
use super::engine_files::not_found;
use super::engine_walk::{Last, resolve};
use super::paused::paused;
use super::spool::Spool;
use super::tar_emit::{self, Names};
use super::tar_index::{Bounds, Index, Policy, clean_name, read_index};
use super::transfer::{consume, download, produce, while_open};
use crate::container::lookup::join;
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{ArchiveOptions, ArchiveReader, Patterns};
use crate::path::WorkspacePath;
use crate::tar::TarWriter;

/// The tree at `path`. It is in a temporary file of this machine when this returns, since the engine
/// locks the container for as long as it sends.
pub(crate) async fn get_archive(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: ArchiveOptions,
) -> Result<ArchiveReader> {
    shared.monitor.check_open()?;
    let exclude = Patterns::new(&options.exclude)?;
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

async fn take_out(shared: &Shared, path: &WorkspacePath, exclude: Patterns, max_bytes: u64) -> Result<Index> {
    let place = resolve(shared, path, Last::Follow).await?;
    let found = place.found.as_ref().ok_or_else(|| not_found(path))?;
    let (from, alone) = match () {
        () if found.is_dir() => {
            hidden_below(shared, &place.path(), |name| is_excluded(&exclude, name))?;
            // With the dot the names begin in the directory itself.
            (join(&place.path(), "."), None)
        }
        () if found.is_file() => {
            (place.path(), Some(path.file_name().unwrap_or_default().as_bytes().to_vec()))
        }
        () => return Err(Error::NotAFile { path: path.as_str().to_owned(), kind: found.kind }),
    };
    let changed = |error| match error {
        Error::Archive { .. } => Error::Changed { path: path.as_str().to_owned() },
        other => other,
    };
    let data = Spool::create().await?;
    let what = path.as_str().to_owned();
    let bounds = Bounds { max_bytes, max_entries: u64::MAX };
    let reading = consume(download(shared, &from), move |reader| {
        read_index(reader, data, bounds, &what, &mut Wanted { alone, exclude })
    });
    let mut index = reading.await.map_err(changed)?;
    let excluded = arrange::excluded_contents(&index.entries);
    if excluded.is_empty() {
        arrange::arrange(&mut index.entries, &excluded);
        return Ok(index);
    }
    // A link to a file that is left out carries its content, which only another archive has.
    let what = path.as_str().to_owned();
    let reading = consume(download(shared, &from), move |reader| {
        index.add(reader, bounds, &what, &mut Only(&excluded))?;
        arrange::arrange(&mut index.entries, &excluded);
        Ok(index)
    });
    reading.await.map_err(changed)
}

/// Which entries are wanted, under which names.
struct Wanted {
    /// The name of a file that was asked for by itself.
    alone: Option<Vec<u8>>,
    exclude: Patterns,
}

impl Policy for Wanted {
    fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(name) = &self.alone {
            return Ok(Some(name.clone()));
        }
        let name = clean_name(raw)?;
        Ok(Some(name).filter(|name| !name.is_empty() && !is_excluded(&self.exclude, name)))
    }

    fn place_target(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        clean_name(raw).map(Some)
    }

    fn nameless(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn special(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Whether a pattern matches a name or a directory above it.
fn is_excluded(exclude: &Patterns, name: &[u8]) -> bool {
    let ends = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    ends.chain([name.len()]).any(|end| exclude.is_match(&name[..end]))
}

/// The entries of these names.
struct Only<'a>(&'a HashSet<Vec<u8>>);

impl Policy for Only<'_> {
    fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        clean_name(raw).map(|name| Some(name).filter(|name| self.0.contains(name)))
    }

    fn place_target(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        self.place(raw)
    }

    fn nameless(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn special(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// The archive of what was taken out.
fn archive(shared: Arc<Shared>, index: Index) -> ArchiveReader {
    let Index { entries, data, .. } = index;
    let chunks = produce(move |out| {
        let mut out = TarWriter::new(out);
        for entry in &entries {
            tar_emit::emit(&mut out, entry, data.file(), Names::Plain)?;
        }
        out.finish().map(drop)
    });
    ArchiveReader::new(while_open(shared, chunks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_an_excluded_directory_is_left_out() {
        let exclude = Patterns::new(&["target".to_owned(), "**/*.o".to_owned()]).unwrap();
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
    }
}
