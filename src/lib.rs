//! A place for an AI agent to act.

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "container")]
pub mod container;
#[cfg(target_os = "linux")]
pub mod local;

mod capabilities;
mod collector;
mod command;
mod descriptor;
mod environment;
mod error;
mod files;
mod output;
mod path;
mod process;
mod signal;
mod target;
mod workspace;

pub use capabilities::Capabilities;
pub use command::{Command, DEFAULT_OUTPUT_LIMIT, Leftovers, TtySize};
pub use descriptor::{ContainerDetails, Descriptor, Details, EngineDetails, ImageDetails, Kind, LimitReport};
pub use environment::Environment;
pub use error::{BoxError, Error, GoneReason, ImageErrorKind, Result, SpawnErrorKind};
pub use files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DEFAULT_LIST_LIMIT, DirEntry, DirPage, EntryName,
    FileKind, FileReader, LinkTarget, ListOptions, Metadata, OpenOptions, UnpackOptions, WriteMethod,
    WriteOptions, Written,
};
#[cfg(target_os = "linux")]
pub use local::LocalWorkspace;
pub use output::{Captured, End, Output, OutputChunk, OutputReceiver, OutputSink, output_channel};
pub use path::{MAX_ELEMENT_BYTES, MAX_PATH_BYTES, WorkspacePath};
pub use process::{CLOSE_GRACE, Process, ProcessControl, ProcessStdin, ProcessStdout};
pub use signal::Signal;
pub use target::{Target, open};
pub use tokio_util::sync::CancellationToken;
pub use workspace::{Starter, Workspace, WorkspaceExt, start};
