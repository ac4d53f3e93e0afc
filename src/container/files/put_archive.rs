//! Unpacking a tree in a container.

use std::sync::Arc;

use futures::StreamExt as _;
use tokio_util::io::ReaderStream;

use super::engine_files::upload_error;
use super::engine_walk::{Last, resolve};
use super::paused::paused;
use super::spool::Spool;
use super::tar_emit::{self, Names};
use super::tar_index::{Bounds, Index, Policy, clean_name, read_index, refused};
use super::transfer::{consume, produce, upload};
use super::tree_plan::plan;
use super::upload_base::relocate;
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{ArchiveReport, Content, UnpackOptions};
use crate::path::WorkspacePath;
use crate::tar::TarWriter;

/// Unpacks `tar` below `dir`. Everything is read and checked first, so that nothing is written of
/// an archive that has an entry to be refused.
pub(crate) async fn put_archive(
    shared: &Arc<Shared>,
    dir: &WorkspacePath,
    tar: Content,
    options: UnpackOptions,
) -> Result<ArchiveReport> {
    shared.monitor.check_open()?;
    shared
        .guard(async {
            let mut index = take_apart(tar, options, dir).await?;
            for entry in &mut index.entries {
                entry.mode &= options.mode_mask;
            }
            let report = ArchiveReport::new(index.entries.len() as u64, index.bytes);
            let (held, dir) = (Arc::clone(shared), dir.clone());
            paused(shared, async move { unpack(&held, &dir, index).await }).await?;
            Ok(report)
        })
        .await
}

async fn take_apart(tar: Content, options: UnpackOptions, dir: &WorkspacePath) -> Result<Index> {
    let bounds = Bounds {
        max_bytes: options.max_bytes.unwrap_or(u64::MAX),
        max_entries: options.max_entries.unwrap_or(u64::MAX),
    };
    let data = Spool::create().await?;
    let what = dir.as_str().to_owned();
    let failed = |error| Error::from_io("read the archive for", dir.as_str(), error);
    let chunks = ReaderStream::with_capacity(tar.into_reader(), 64 * 1024);
    let chunks = chunks.map(|chunk| chunk.map_err(failed));
    consume(chunks, move |reader| read_index(reader, data, bounds, &what, &mut Strict)).await
}

/// Refuses what would land outside and what is no file, directory or link.
struct Strict;

impl Policy for Strict {
    fn place(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        let name = clean_name(raw)?;
        // The directory itself keeps its mode.
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    fn place_target(&mut self, raw: &[u8]) -> Result<Option<Vec<u8>>> {
        self.place(raw)
    }

    fn nameless(&mut self, name: &[u8]) -> Result<()> {
        Err(refused(name, "only a directory can be unpacked as the directory itself"))
    }

    fn special(&mut self, name: &[u8]) -> Result<()> {
        Err(refused(name, "it is a device, FIFO or socket"))
    }
}

async fn unpack(shared: &Shared, dir: &WorkspacePath, index: Index) -> Result<()> {
    let place = resolve(shared, dir, Last::Follow).await?;
    if place.found.is_some_and(|found| !found.is_dir()) {
        return Err(Error::NotADirectory { path: dir.as_str().to_owned() });
    }
    let Index { entries, data, .. } = index;
    let mut entries = plan(shared, &place, entries).await?;
    if entries.is_empty() {
        return Ok(());
    }
    let (target, leaving) = relocate(shared, &place, &mut entries);
    let archive = produce(move |out| {
        let mut out = TarWriter::new(out);
        for entry in &entries {
            tar_emit::emit(&mut out, entry, data.file(), Names::Dotted)?;
        }
        out.finish().map(drop)
    });
    let uploaded = upload(shared, &target, archive).await;
    uploaded.map_err(|error| match upload_error(error, dir.as_str()) {
        Error::ReadOnly { .. } if leaving.is_some() => refused(
            &leaving.unwrap_or_default(),
            "in a container whose root is read-only, the engine makes no link that leads out of a volume",
        ),
        other => other,
    })
}
