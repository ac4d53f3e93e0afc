//! The tar format: what an archive holds, and how one is written. No file is touched here.
//!
//! The reader is this crate's own because it must be bounded in memory, keep holes as holes, and
//! take every name as bytes: POSIX pax, GNU and old formats, with sparse files of all four kinds.

mod header;
mod member;
mod pax;
mod reader;
mod sparse;
mod writer;

pub(crate) use member::{Member, MemberKind};
pub(crate) use reader::TarReader;
pub(crate) use writer::{Entry, TarWriter};

/// The unit of a tar archive in bytes.
const BLOCK: usize = 512;

/// A point in time: seconds since 1970 and nanoseconds after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}
