//! Reads a command's output pipes for as long as somebody holds them open.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStderr, ChildStdout};

use crate::collector::{Collector, chunk};
use crate::output::OutputChunk;

use super::clock::OutputClock;

/// The most that is read at once, which is what a pipe holds.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// The pipes of a command and who takes what comes out of them.
#[derive(Debug)]
pub(super) struct Pump {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out_buffer: Box<[u8]>,
    err_buffer: Box<[u8]>,
    collector: Collector,
    /// A chunk that waits for its reader.
    waiting: Option<OutputChunk>,
}

impl Pump {
    pub(super) fn new(
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        collector: Collector,
    ) -> Self {
        let buffer = |wanted| vec![0; if wanted { CHUNK_BYTES } else { 0 }].into_boxed_slice();
        let (out_buffer, err_buffer) = (buffer(stdout.is_some()), buffer(stderr.is_some()));
        Pump { stdout, stderr, out_buffer, err_buffer, collector, waiting: None }
    }

    /// Passes output on until both pipes have ended, and tells `clock`.
    ///
    /// Dropped and called again, it goes on where it was, and nothing is lost.
    pub(super) async fn run(&mut self, clock: &OutputClock) {
        self.pass_on(clock).await;
        while self.stdout.is_some() || self.stderr.is_some() {
            let (from_stderr, bytes) = tokio::select! {
                bytes = read(&mut self.stdout, &mut self.out_buffer) => (false, bytes),
                bytes = read(&mut self.stderr, &mut self.err_buffer) => (true, bytes),
            };
            if let Some(bytes) = bytes {
                self.waiting = Some(chunk(from_stderr, bytes));
                self.pass_on(clock).await;
            }
        }
    }

    async fn pass_on(&mut self, clock: &OutputClock) {
        if let Some(chunk) = self.waiting.clone() {
            clock.block();
            self.collector.take(chunk).await;
            clock.touch();
            self.waiting = None;
        }
    }

    /// Whether both pipes have ended.
    pub(super) fn is_finished(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// What was collected, and the pipes that others still hold open.
    pub(super) fn into_parts(self) -> (Collector, Option<ChildStdout>, Option<ChildStderr>) {
        (self.collector, self.stdout, self.stderr)
    }
}

/// The next bytes; `None` at the end of the pipe, which is closed then.
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>, buffer: &mut [u8]) -> Option<Bytes> {
    let Some(reader) = pipe else { return std::future::pending().await };
    // An error on a pipe is as much an end as its end is.
    match reader.read(buffer).await {
        Ok(read) if read > 0 => Some(Bytes::copy_from_slice(&buffer[..read])),
        _ => {
            *pipe = None;
            None
        }
    }
}

/// Reads and discards what processes left behind still print, so that they are not ended by a
/// broken pipe.
pub(super) async fn discard(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) {
    let (out, err) = tokio::join!(discard_one(stdout), discard_one(stderr));
    if let Err(error) = out.and(err) {
        tracing::debug!(%error, "failed to read from processes left behind");
    }
}

async fn discard_one(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<u64> {
    match pipe {
        Some(mut pipe) => tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await,
        None => Ok(0),
    }
}
