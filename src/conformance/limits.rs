//! Memory of this process stays bounded, whatever a command prints and however large a file is.

use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::place::{Must as _, Place, name};
use crate::{ArchiveOptions, Content, End, OpenOptions};

cases!("limits" {
    a_flood_of_output_is_bounded [Kill] as Alone;
    a_flood_that_nobody_reads_is_bounded [Kill] as Alone;
    a_large_file_is_streamed_up_and_down [Files] as Alone;
    a_large_file_is_packed_in_a_stream [Files, Archives] as Alone;
});

/// How much more memory than before may be in use at any moment.
const GROWTH: u64 = 64 << 20;

/// Makes the system forget the largest size so far, and gives the size now.
fn begin_measuring() -> u64 {
    // Writing 5 there resets VmHWM, proc_pid_clear_refs(5).
    std::fs::write("/proc/self/clear_refs", "5").must("reset the largest size");
    memory("VmRSS:")
}

/// A field of this process's status, in bytes.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").must("read the status");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().must("parse a size");
    kibibytes * 1024
}

fn assert_bounded(before: u64, allowed: u64) {
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < allowed, "memory grew by {} MiB", grown >> 20);
}

/// Both ends are kept, the rest counted, and the timeout works all the while.
pub async fn a_flood_of_output_is_bounded(at: &Place) {
    let before = begin_measuring();
    let command = at.sh("printf begin; exec cat /dev/zero").timeout(Duration::from_secs(3));
    let ran = at.run(command).await;
    assert_eq!(ran.end, End::TimedOut);
    assert!(ran.stdout.starts_with(b"begin"));
    assert_eq!(ran.stdout.len() as u64, crate::DEFAULT_OUTPUT_LIMIT);
    assert!(ran.stdout.dropped() > 1 << 20, "{} bytes dropped", ran.stdout.dropped());
    assert_bounded(before, GROWTH + crate::DEFAULT_OUTPUT_LIMIT);
}

/// What a started process prints waits for its reader, in a bounded place.
pub async fn a_flood_that_nobody_reads_is_bounded(at: &Place) {
    let before = begin_measuring();
    let (sink, receiver) = crate::output_channel();
    let marker = at.marker();
    let command = at.sh(format!("cat /dev/zero; : {marker}")).stream(sink).timeout(Duration::from_secs(3));
    // The receiver is held and not read until the timeout, which goes on counting, has ended the command.
    let held = async {
        let mut receiver = receiver;
        at.await_some(&marker).await;
        at.await_none(&marker, Duration::from_secs(20)).await;
        while receiver.recv().await.is_some() {}
    };
    let (ran, ()) = tokio::join!(at.run(command), held);
    assert_eq!(ran.end, End::TimedOut, "{ran}");
    assert_bounded(before, GROWTH);
}

/// Bytes that follow from their position, so that nothing need be kept to check them.
struct Pattern {
    position: u64,
    size: u64,
}

/// The length after which the pattern repeats; a prime, so that blocks differ.
const PERIOD: usize = 251;

/// The longest piece of the pattern that is made or checked at once.
const PIECE: usize = 64 << 10;

/// The `len` bytes at a position, at most [`PIECE`].
fn pattern(position: u64, len: usize) -> &'static [u8] {
    // From memory: one byte after another is a minute's work for a gigabyte in a debug build.
    static PATTERN: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..=u8::MAX).take(PERIOD).cycle().take(PERIOD + PIECE).collect());
    let start = (position % PERIOD as u64) as usize;
    &PATTERN[start..start + len]
}

impl AsyncRead for Pattern {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = usize::try_from(self.size - self.position).unwrap_or(usize::MAX);
        let count = buf.remaining().min(left).min(PIECE);
        buf.put_slice(pattern(self.position, count));
        self.position += count as u64;
        Poll::Ready(Ok(()))
    }
}

/// Checks every byte of a reader against the pattern.
async fn assert_pattern(mut reader: impl AsyncRead + Unpin, size: u64) {
    let (mut buffer, mut position) = (vec![0; PIECE], 0u64);
    loop {
        let read = reader.read(&mut buffer).await.must("read");
        if read == 0 {
            break;
        }
        assert!(buffer[..read] == *pattern(position, read), "a byte after {position} is wrong");
        position += read as u64;
    }
    assert_eq!(position, size);
}

/// Neither way keeps it in memory.
pub async fn a_large_file_is_streamed_up_and_down(at: &Place) {
    let size = at.fixture.big_file();
    let before = begin_measuring();
    let content = Content::sized_reader(Pattern { position: 0, size }, size);
    assert_eq!(at.put("big", content).await.bytes, size);
    assert_eq!(at.done("wc -c < big").await.trim(), size.to_string());
    let reader = at.ws().open(&name("big"), OpenOptions::default()).await.must("open");
    assert_pattern(reader, size).await;
    assert_bounded(before, GROWTH);
}

/// The same for archives, both ways.
pub async fn a_large_file_is_packed_in_a_stream(at: &Place) {
    // It is written, packed, unpacked and read, in the time of one case.
    let size = at.fixture.big_file().min(256 << 20);
    let before = begin_measuring();
    at.put("t/big", Content::reader(Pattern { position: 0, size })).await;
    let archive = at.ws().get_archive(&name("t"), ArchiveOptions::default()).await.must("pack");
    let report =
        at.ws().put_archive(&name("u"), Content::reader(archive), Default::default()).await.must("unpack");
    assert_eq!(report.bytes, size);
    let reader = at.ws().open(&name("u/big"), OpenOptions::default()).await.must("open");
    assert_pattern(reader, size).await;
    assert_bounded(before, GROWTH);
}
