//! How far one side of a connection lets the other run ahead.

use super::limits::{MAX_STREAMS, STREAM_WINDOW};

/// How many bytes the peer may send before they are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Of one exchange.
    pub(super) stream: u32,
    /// Of all of them together.
    pub(super) connection: u32,
}

/// The smallest and the largest window of an exchange. HTTP/2 allows 2 GiB - 1 for a connection.
const RANGE: (u32, u32) = (1, (1 << 21) - 1);

// The connection's window must hold the others even then.
const _: () = assert!(RANGE.1 * MAX_STREAMS < 1 << 31);

impl Windows {
    /// As many bytes for each exchange, and so many for all together that readers which stand still
    /// never use them up and stall the others.
    pub(super) fn new(stream: u32) -> Self {
        let stream = stream.clamp(RANGE.0, RANGE.1);
        Windows { stream, connection: stream * MAX_STREAMS }
    }
}

impl Default for Windows {
    fn default() -> Self {
        Windows::new(STREAM_WINDOW)
    }
}
