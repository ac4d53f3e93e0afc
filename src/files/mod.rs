//! What file operations take and give: kinds, metadata, listings, content, archives.

mod archive;
mod content;
mod listing;
mod metadata;
mod patterns;
mod reader;

pub use archive::{ArchiveOptions, ArchiveReader, ArchiveReport, UnpackOptions};
pub use content::{Content, WriteMethod, WriteOptions, Written};
pub(crate) use listing::escape_bytes;
pub use listing::{DEFAULT_LIST_LIMIT, DirEntry, DirPage, EntryName, ListOptions};
pub use metadata::{FileKind, LinkTarget, Metadata};
pub(crate) use patterns::Patterns;
pub use reader::{FileReader, OpenOptions};
