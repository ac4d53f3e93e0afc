//! Content of unknown length, made one of known length.

use std::io::SeekFrom;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

use crate::error::{Error, Result};
use crate::files::Content;

/// How much is kept in memory; more goes into a temporary file of this machine.
const IN_MEMORY: usize = 256 * 1024;

/// Content whose length is known.
pub(super) struct Sized {
    pub(super) reader: Pin<Box<dyn AsyncRead + Send>>,
    pub(super) len: u64,
}

/// `content` with its length, which costs reading it whole only where nobody knows that.
pub(super) async fn sized(content: Content, path: &str) -> Result<Sized> {
    match content.len() {
        Some(len) => Ok(Sized { reader: content.into_reader(), len }),
        None => whole(content.into_reader(), path).await,
    }
}

/// What `reader` gives until its end.
pub(super) async fn whole(mut reader: Pin<Box<dyn AsyncRead + Send>>, path: &str) -> Result<Sized> {
    let failed = |error| Error::from_io("read the content for", path, error);
    let mut head = Vec::new();
    let limit = IN_MEMORY as u64;
    (&mut reader).take(limit).read_to_end(&mut head).await.map_err(failed)?;
    if head.len() < IN_MEMORY {
        let len = head.len() as u64;
        return Ok(Sized { reader: Box::pin(std::io::Cursor::new(head)), len });
    }
    let mut file = tokio::fs::File::from_std(temporary_file().await?);
    let spooling = |error| Error::from_io("spool the content for", path, error);
    file.write_all(&head).await.map_err(spooling)?;
    let rest = tokio::io::copy(&mut reader, &mut file).await.map_err(failed)?;
    file.flush().await.map_err(spooling)?;
    file.seek(SeekFrom::Start(0)).await.map_err(spooling)?;
    Ok(Sized { reader: Box::pin(file), len: limit + rest })
}

/// A temporary file of this machine, gone with its handle.
pub(super) async fn temporary_file() -> Result<std::fs::File> {
    let made = tokio::task::spawn_blocking(tempfile::tempfile).await;
    made.unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(|error| Error::from_io("make a temporary file in", "the temporary directory", error))
}
