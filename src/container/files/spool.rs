//! What is kept in a temporary file of this machine on its way.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use futures::StreamExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::ReaderStream;

use super::transfer::consume;
use crate::error::{Error, Result};
use crate::files::Content;

/// How much is kept in memory; more goes into a temporary file of this machine.
const IN_MEMORY: usize = 256 * 1024;

/// The part of a temporary file that is a hole or is not, in bytes: a page, and a block of most file
/// systems.
const BLOCK: u64 = ZEROS.len() as u64;

const ZEROS: [u8; 4096] = [0; 4096];

/// The most that is left to others of the disk of temporary files; of a small one it is a tenth.
const MAX_RESERVE: u64 = 1 << 30;

/// How much is written between two looks at the disk.
const UNCHECKED: u64 = 1 << 20;

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
    let mut spool = Spool::create().await?;
    spool.write_at(&head, 0)?;
    let chunks = ReaderStream::with_capacity(reader, 64 * 1024).map(|chunk| chunk.map_err(failed));
    let spooling = consume(chunks, move |reader| {
        let mut chunk = vec![0; 64 * 1024];
        let mut len = limit;
        loop {
            match reader.read(&mut chunk).map_err(|error| Error::from_io("spool", "the content", error))? {
                0 => return Ok((spool.finish(len)?, len)),
                read => {
                    spool.write_at(&chunk[..read], len)?;
                    len += read as u64;
                }
            }
        }
    });
    let (file, len) = spooling.await?;
    Ok(Sized { reader: Box::pin(tokio::fs::File::from_std(file)), len })
}

/// A temporary file of this machine, gone with its handle, that leaves room on its disk for others.
/// Blocks of zeros become holes.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    dir: PathBuf,
    /// How much may be written before the disk is looked at again.
    unchecked: u64,
}

impl Spool {
    pub(super) async fn create() -> Result<Spool> {
        let made = tokio::task::spawn_blocking(Spool::new).await;
        made.unwrap_or_else(|error| Err(Error::from_io("make", "a temporary file", io::Error::other(error))))
    }

    pub(super) fn new() -> Result<Spool> {
        let dir = std::env::temp_dir();
        let made = tempfile::tempfile_in(&dir);
        let file = made.map_err(|error| failed("make a temporary file in", &dir, error))?;
        Ok(Spool { file, dir, unchecked: 0 })
    }

    /// Writes what is not zero of `data`.
    pub(super) fn write_at(&mut self, data: &[u8], at: u64) -> Result<()> {
        let (mut start, mut here) = (0, 0);
        while here < data.len() {
            let to_next = BLOCK - (at + here as u64) % BLOCK;
            let end = data.len().min(here + usize::try_from(to_next).unwrap_or(usize::MAX));
            if data[here..end] == ZEROS[..end - here] {
                self.put(&data[start..here], at + start as u64)?;
                start = end;
            }
            here = end;
        }
        self.put(&data[start..], at + start as u64)
    }

    fn put(&mut self, data: &[u8], at: u64) -> Result<()> {
        let len = data.len() as u64;
        if len > self.unchecked {
            self.check_space(len)?;
            self.unchecked = UNCHECKED.max(len);
        }
        self.unchecked -= len;
        self.file
            .write_all_at(data, at)
            .map_err(|error| failed("write a temporary file in", &self.dir, error))
    }

    fn check_space(&self, wanted: u64) -> Result<()> {
        let stat = rustix::fs::fstatvfs(&self.file)
            .map_err(|error| failed("look at the space in", &self.dir, error.into()))?;
        let total = stat.f_blocks.saturating_mul(stat.f_frsize);
        let available = stat.f_bavail.saturating_mul(stat.f_frsize);
        // A tmpfs without a limit has no size.
        if total > 0 && available < wanted.saturating_add(reserve(total)) {
            return Err(Error::SpoolFull { dir: self.dir.display().to_string() });
        }
        Ok(())
    }

    /// Makes it `len` bytes long, with a hole where it ends in one.
    pub(super) fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|error| failed("set the size of a temporary file in", &self.dir, error))
    }

    /// The file, `len` bytes long.
    pub(super) fn finish(self, len: u64) -> Result<File> {
        self.set_len(len)?;
        Ok(self.file)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

/// How much of a file system of `total` bytes is left to others.
fn reserve(total: u64) -> u64 {
    MAX_RESERVE.min(total / 10)
}

fn failed(operation: &'static str, dir: &Path, error: io::Error) -> Error {
    let dir = dir.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::SpoolFull { dir },
        _ => Error::from_io(operation, &dir, error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn zeros_become_holes_and_everything_else_is_kept() {
        let mut spool = Spool::new().unwrap();
        let mut data = vec![0; 1 << 20];
        for at in [0, 4095, 4096, 70_000, 300_001, (1 << 20) - 1] {
            data[at] = 7;
        }
        // Pieces that end beside the blocks of the file.
        for (n, piece) in data.chunks(10_007).enumerate() {
            spool.write_at(piece, 3 + n as u64 * 10_007).unwrap();
        }
        spool.write_at(&[0; 100_000], 3 + (1 << 20)).unwrap();
        let file = spool.finish(3 + (1 << 20) + 100_000).unwrap();
        let mut read = vec![1; data.len() + 100_003];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read[3..][..data.len()] == data && read[..3] == [0; 3]);
        assert!(read[3 + data.len()..].iter().all(|byte| *byte == 0));
        let used = file.metadata().unwrap().blocks() * 512;
        assert!(used < 200_000, "{used} bytes are used");
    }

    #[test]
    fn a_disk_keeps_a_tenth_or_a_gibibyte() {
        assert_eq!(reserve(100 << 20), 10 << 20);
        assert_eq!(reserve(1 << 40), 1 << 30);
        let spool = Spool::new().unwrap();
        spool.check_space(1).unwrap();
        let full = spool.check_space(u64::MAX).unwrap_err();
        assert!(matches!(&full, Error::SpoolFull { dir } if *dir == std::env::temp_dir().to_string_lossy()));
    }

    /// Runs itself again where a small file system is mounted as the temporary directory.
    #[test]
    fn a_small_disk_is_not_filled() {
        const INSIDE: &str = "AGENTWORKSPACE_TEST_SMALL_DISK";
        const DISK: u64 = 32 << 20;
        if std::env::var_os(INSIDE).is_none() {
            assert!(rustix::process::geteuid().is_root(), "this test mounts: run it as root");
            let dir = tempfile::tempdir().unwrap();
            let mount = format!("mount -t tmpfs -o size={DISK} tmpfs \"$TMPDIR\" && exec \"$@\"");
            let output = std::process::Command::new("unshare")
                .args(["--mount", "--propagation", "private", "sh", "-c", &mount, "sh"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "container::files::spool::tests::a_small_disk_is_not_filled"])
                .env(INSIDE, "1")
                .env("TMPDIR", dir.path())
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let mut spool = Spool::new().unwrap();
        let piece = [7; 64 * 1024];
        let mut len = 0;
        let full = loop {
            assert!(len < DISK, "the disk is full");
            // As much again is a hole.
            match spool.write_at(&piece, 2 * len) {
                Ok(()) => len += piece.len() as u64,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&full, Error::SpoolFull { dir } if *dir == std::env::var("TMPDIR").unwrap()),
            "{full}"
        );
        assert!((DISK / 10 * 8..=DISK / 10 * 9 + UNCHECKED).contains(&len), "{len} bytes were written");
    }
}
