//! How a command ended and what it printed.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::signal::Signal;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// It exited with this status, 0 to 255.
    Exited(i32),
    /// A signal ended it that no timeout, cancellation or memory limit sent.
    Signaled(Signal),
    /// [`Command::timeout`](crate::Command::timeout) ended it.
    TimedOut,
    /// [`Command::idle_timeout`](crate::Command::idle_timeout) ended it.
    IdleTimedOut,
    /// It was killed because the workspace's memory limit was reached.
    OutOfMemory,
    /// The caller's cancellation token ended it. Only for a started process: a cancelled `exec` is
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    Cancelled,
}

impl End {
    /// The exit status; -1 for everything but [`End::Exited`].
    pub fn exit_code(self) -> i32 {
        match self {
            End::Exited(code) => code,
            _ => -1,
        }
    }

    /// Whether it exited with status 0.
    pub fn success(self) -> bool {
        self == End::Exited(0)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(code) => write!(f, "exited with status {code}"),
            End::Signaled(signal) => write!(f, "was ended by {signal}"),
            End::TimedOut => f.write_str("timed out"),
            End::IdleTimedOut => f.write_str("timed out without output"),
            End::OutOfMemory => f.write_str("was killed because memory ran out"),
            End::Cancelled => f.write_str("was cancelled"),
        }
    }
}

/// What came of a command that ran.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// Its standard output, as bytes.
    pub stdout: Captured,
    /// Its standard error, as bytes.
    pub stderr: Captured,
    /// Its exit status; -1 when it did not exit by itself.
    pub exit_code: i32,
    /// Whether a timeout ended it.
    pub timed_out: bool,
    /// How it ended.
    pub end: End,
    /// Whether a process that it left behind still held its output open, so that what that one
    /// prints later is not in here.
    pub output_detached: bool,
    /// How long it ran.
    pub duration: Duration,
}

impl Output {
    /// An output with this end; `exit_code` and `timed_out` follow from it.
    pub fn new(end: End, stdout: Captured, stderr: Captured, duration: Duration) -> Self {
        Output {
            stdout,
            stderr,
            exit_code: end.exit_code(),
            timed_out: matches!(end, End::TimedOut | End::IdleTimedOut),
            end,
            output_detached: false,
            duration,
        }
    }

    /// Whether the command exited with status 0.
    pub fn success(&self) -> bool {
        self.end.success()
    }
}

/// The bytes kept of one output stream: all of them, or the first and the last ones.
///
/// It derefs to the kept bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Captured {
    bytes: Vec<u8>,
    head: usize,
    dropped: u64,
}

impl Captured {
    /// A stream of which nothing was dropped.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Captured { head: bytes.len(), bytes, dropped: 0 }
    }

    /// A stream of which `dropped` bytes between `head` and `tail` are missing.
    pub fn cut(mut head: Vec<u8>, tail: &[u8], dropped: u64) -> Self {
        let split = head.len();
        head.extend_from_slice(tail);
        Captured { bytes: head, head: split, dropped }
    }

    /// How many bytes were dropped; 0 when everything is here.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The bytes before the cut.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head]
    }

    /// The bytes after the cut; none when nothing was dropped.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// The kept bytes as text, with U+FFFD for what is not UTF-8, and a line that says how much
    /// is missing where bytes were dropped.
    pub fn to_text(&self) -> String {
        if self.dropped == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        format!(
            "{}\n[... {} bytes dropped ...]\n{}",
            String::from_utf8_lossy(self.head()),
            self.dropped,
            String::from_utf8_lossy(self.tail())
        )
    }

    /// The kept bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Deref for Captured {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.bytes.escape_ascii())?;
        if self.dropped > 0 {
            write!(f, " ({} bytes dropped at {})", self.dropped, self.head)?;
        }
        Ok(())
    }
}

/// A piece of output as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputChunk {
    /// From standard output, or from a terminal.
    Stdout(Bytes),
    /// From standard error.
    Stderr(Bytes),
}

impl OutputChunk {
    /// The bytes, whichever stream they are from.
    pub fn bytes(&self) -> &Bytes {
        match self {
            OutputChunk::Stdout(bytes) | OutputChunk::Stderr(bytes) => bytes,
        }
    }
}

/// How many chunks an [`output_channel`] holds before its process has to wait for the reader.
const CHANNEL_CHUNKS: usize = 64;

/// A channel for [`Command::stream`](crate::Command::stream).
///
/// It holds at most 64 chunks of 64 KiB: a slow reader slows its own process down and nothing
/// else, while the total timeout goes on counting. Read it while the command runs, from another
/// task: `exec` returns once everything was passed on. When the reader is dropped, the process
/// goes on and its output is discarded.
pub fn output_channel() -> (OutputSink, OutputReceiver) {
    let (sender, receiver) = mpsc::channel(CHANNEL_CHUNKS);
    (OutputSink(sender), OutputReceiver(receiver))
}

/// The end of an [`output_channel`] that a command writes to.
#[derive(Clone, Debug)]
pub struct OutputSink(mpsc::Sender<OutputChunk>);

impl OutputSink {
    /// Passes `chunk` on, waiting for room; `false` once the reader is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the chunk is not passed on.
    pub async fn send(&self, chunk: OutputChunk) -> bool {
        self.0.send(chunk).await.is_ok()
    }
}

/// The end of an [`output_channel`] that the caller reads.
#[derive(Debug)]
pub struct OutputReceiver(mpsc::Receiver<OutputChunk>);

impl OutputReceiver {
    /// The next chunk; `None` once the command has ended and everything was read.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, no chunk is lost.
    pub async fn recv(&mut self) -> Option<OutputChunk> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_stream_says_how_much_is_missing() {
        let captured = Captured::cut(b"ab".to_vec(), b"yz", 22);
        assert_eq!(&*captured, b"abyz");
        assert_eq!((captured.head(), captured.tail(), captured.dropped()), (&b"ab"[..], &b"yz"[..], 22));
        assert_eq!(captured.to_text(), "ab\n[... 22 bytes dropped ...]\nyz");
        assert_eq!(Captured::whole(b"a\xff".to_vec()).to_text(), "a\u{fffd}");
    }

    #[test]
    fn the_exit_code_follows_from_the_end() {
        assert_eq!(End::Exited(3).exit_code(), 3);
        for end in [End::Signaled(Signal::KILL), End::TimedOut, End::OutOfMemory, End::Cancelled] {
            assert_eq!(end.exit_code(), -1);
        }
        let json = serde_json::to_string(&[End::Exited(3), End::TimedOut]).unwrap();
        assert_eq!(json, r#"[{"exited":3},"timed_out"]"#);
    }

    #[tokio::test]
    async fn a_sink_without_a_reader_discards() {
        let (sink, receiver) = output_channel();
        drop(receiver);
        for _ in 0..2 * CHANNEL_CHUNKS {
            assert!(!sink.send(OutputChunk::Stdout(Bytes::from_static(b"x"))).await);
        }
    }
}
