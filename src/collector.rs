//! Takes a command's output as it arrives: bounded in memory, or passed on.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::output::{Captured, OutputChunk, OutputSink};

/// Where the output of one command goes.
#[derive(Debug)]
pub(crate) struct Collector {
    sink: Option<OutputSink>,
    stdout: HeadTail,
    stderr: HeadTail,
}

impl Collector {
    /// Passes everything to `sink` when there is one; otherwise keeps `limit` bytes of each
    /// stream.
    pub(crate) fn new(sink: Option<OutputSink>, limit: u64) -> Self {
        Collector { sink, stdout: HeadTail::new(limit), stderr: HeadTail::new(limit) }
    }

    /// Takes a chunk; waits only for a slow reader of the sink.
    pub(crate) async fn take(&mut self, chunk: OutputChunk) {
        match (&self.sink, chunk) {
            // Without a reader the output is discarded and the process goes on.
            (Some(sink), chunk) => drop(sink.send(chunk).await),
            (None, OutputChunk::Stdout(bytes)) => self.stdout.push(&bytes),
            (None, OutputChunk::Stderr(bytes)) => self.stderr.push(&bytes),
        }
    }

    /// What was kept: standard output, then standard error.
    pub(crate) fn finish(self) -> (Captured, Captured) {
        (self.stdout.finish(), self.stderr.finish())
    }
}

/// The first and the last bytes of a stream of any length, in bounded memory.
#[derive(Debug)]
struct HeadTail {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    dropped: u64,
}

impl HeadTail {
    fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let tail_limit = limit / 2;
        HeadTail {
            head: Vec::new(),
            head_limit: limit - tail_limit,
            tail: VecDeque::new(),
            tail_limit,
            dropped: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Of a chunk longer than the tail only its end can be kept.
        let (skipped, kept) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(kept);
        self.dropped += (skipped.len() + excess) as u64;
    }

    fn finish(mut self) -> Captured {
        if self.dropped == 0 {
            self.head.extend(self.tail);
            return Captured::whole(self.head);
        }
        Captured::cut(self.head, self.tail.make_contiguous(), self.dropped)
    }
}

/// A chunk of `bytes` from standard error when `stderr`, else from standard output.
pub(crate) fn chunk(stderr: bool, bytes: Bytes) -> OutputChunk {
    if stderr { OutputChunk::Stderr(bytes) } else { OutputChunk::Stdout(bytes) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_and_last_bytes_are_kept_and_the_rest_counted(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            limit in 0u64..40,
        ) {
            let mut kept = HeadTail::new(limit);
            for chunk in &chunks {
                kept.push(chunk);
            }
            let all = chunks.concat();
            let captured = kept.finish();
            prop_assert_eq!(captured.len() as u64 + captured.dropped(), all.len() as u64);
            prop_assert!(captured.len() as u64 <= limit);
            if captured.dropped() == 0 {
                prop_assert_eq!(&*captured, &all[..]);
            } else {
                prop_assert_eq!(captured.len() as u64, limit);
                prop_assert!(all.starts_with(captured.head()) && all.ends_with(captured.tail()));
            }
        }
    }
}
