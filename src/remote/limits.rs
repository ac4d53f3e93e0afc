//! What bounds each side of a connection, whatever its peer does.

use std::time::Duration;

/// The generation of the protocol that this build speaks.
pub(super) const GENERATION: u32 = 1;

/// The oldest generation that this build still speaks.
pub(super) const OLDEST_GENERATION: u32 = 1;

/// How many exchanges one connection carries at the same time.
pub(super) const MAX_STREAMS: u32 = 1024;

/// How many of them the client leaves free for calls that end at once, so that a close, a signal or
/// a cancellation never waits behind commands and readers.
pub(super) const RESERVED_STREAMS: u32 = 64;

/// How many bytes of one exchange the peer sends ahead of its reader, unless told otherwise. At 1 ms of round trip that is
/// 250 MiB/s.
pub(super) const STREAM_WINDOW: u32 = 256 << 10;

/// How many bytes of one exchange wait on the sending side.
pub(super) const SEND_BUFFER_BYTES: usize = 256 << 10;

/// The largest list of headers or trailers: a name of 4095 bytes takes 12 KiB escaped, and an error
/// may hold some.
pub(super) const MAX_HEADER_BYTES: u32 = 128 << 10;

/// A peer that does not answer a ping is given up after the sum of these: 15 s.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(5);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(9);

/// The largest JSON document: a command's arguments and environment, of which Linux takes 2 MiB
/// unless told otherwise and never more than 6 MiB.
pub(super) const MAX_JSON_BYTES: usize = 4 << 20;

/// How many variables an environment has, since each is compared with the others.
pub(super) const MAX_VARIABLES: usize = 8192;

/// The largest JSON document of an error, in a body or a trailer.
pub(super) const MAX_ERROR_BYTES: usize = 64 << 10;

/// The longest text in an error; what is longer is cut.
pub(super) const MAX_ERROR_TEXT: usize = 4096;

/// The most data in one frame.
pub(super) const MAX_FRAME_BYTES: usize = 64 << 10;

/// How many frames wait between a command and the connection.
pub(super) const FRAME_QUEUE: usize = 4;

/// How much of a file is read at once, the first time and later.
pub(super) const FIRST_READ_BYTES: usize = 16 << 10;
pub(super) const READ_BYTES: usize = 128 << 10;

/// The most output of a command that the server keeps of each stream.
pub(super) const MAX_OUTPUT_LIMIT: u64 = 64 << 20;

/// How many entries of a directory the server holds for one call.
pub(super) const MAX_LIST_PAGE: usize = 1_000_000;

/// How many entries of a directory the client holds for one call.
pub(super) const MAX_LIST: usize = 8_000_000;

/// How many entries are in one frame.
pub(super) const LIST_FRAME_ENTRIES: usize = 1000;

// An entry takes 255 bytes of name, escaped six-fold at the worst, and its kind.
const _: () = assert!(LIST_FRAME_ENTRIES * (255 * 6 + 64) <= MAX_JSON_BYTES);

/// The longest timeout the server counts; a longer one is as good as none, and must not overflow
/// its clock.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How many sessions one server holds.
pub(super) const MAX_SESSIONS: usize = 1024;

/// How long whoever ends a session waits for the last frames of its calls to be taken.
pub(super) const LAST_FRAMES: Duration = Duration::from_secs(2);

/// How many operations are in one batch.
pub(super) const MAX_BATCH: usize = 1000;

/// How many bytes of file content go into a batch and come out of one.
pub(super) const MAX_BATCH_BYTES: u64 = 16 << 20;
