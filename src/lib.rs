//! A place for an AI agent to act: a file tree, processes, a working directory and an environment
//! behind one trait, [`Workspace`]. The same tools run unchanged over a directory on this machine and over a
//! container.
//!
//! ```
//! use agentworkspace::{Command, Environment, LocalWorkspace, Workspace, WorkspaceExt, WriteOptions};
//!
//! # async fn example() -> agentworkspace::Result<()> {
//! let workspace = LocalWorkspace::temporary(Environment::from_host_basics())?;
//! let notes = "notes/todo.md".parse()?;
//! workspace.write(&notes, "- ship it\n".into(), WriteOptions::default()).await?;
//! let output = workspace.exec(Command::new("wc").args(["-l", "notes/todo.md"])).await?;
//! assert!(output.success());
//! assert_eq!(workspace.read(&notes, 1024).await?, b"- ship it\n");
//! workspace.close().await
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Workspaces
//!
//! | type | where | `kind`, `ref` |
//! | --- | --- | --- |
//! | [`LocalWorkspace`] | a directory on this machine; commands are not isolated | `local`, empty |
//! | [`container::ContainerWorkspace`] | a container, through the Docker Engine API | `container`, the image digest |
//! | `remote::RemoteWorkspace` | any workspace that a `remote::Server` has | `remote`, its address |
//!
//! [`open`] makes one of the first two from a string, as the command line does.
//!
//! # What holds
//!
//! - A name never leads outside of the root, whatever links are there and whoever swaps them meanwhile.
//! - What a command started ends with it on timeout, cancellation and drop, and with the workspace in any case.
//! - What a workspace made in an engine is removed when it is closed or dropped.
//! - A file is replaced in one step; output that was cut says how much is missing.
//! - Memory stays bounded, whatever a command prints and however large a file is.
//! - A workspace that died, a command that never started and a command that failed are three different answers.
//!
//! How far each promise reaches in one workspace is in its [`Capabilities`].
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `container` (default) | [`container`]: workspaces in containers |
//! | `cli` (default) | the `agentworkspace` command; for a library, leave it out |
//! | `helper` (default) | containers through a helper in them, which makes a call about 30 times faster; its program is built along |
//! | `protocol` | `remote`: a server and a client of workspaces over any byte stream |
//! | `remote` | the same over unix sockets, TCP and TLS, with tokens, and as an axum router |
//! | `conformance` | `conformance`: the suite that every backend passes, for backends of your own; it deletes data and is not covered by semver |
//!
//! Linux only. The library logs through [`tracing`] and never prints.

#[cfg(not(target_os = "linux"))]
compile_error!("agentworkspace supports Linux only: build it there, or in a container");

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "container")]
pub mod container;
#[cfg(any(feature = "helper", feature = "helper-program"))]
#[doc(hidden)]
pub mod helper;
pub mod local;
#[cfg(feature = "protocol")]
pub mod remote;

mod accounts;
mod capabilities;
mod collector;
mod command;
mod deadline;
mod descriptor;
mod environment;
mod error;
#[cfg(any(test, feature = "conformance"))]
mod eventually;
mod files;
mod output;
mod path;
mod process;
mod random;
mod signal;
mod tar;
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
pub use local::LocalWorkspace;
pub use output::{Captured, End, Output, OutputChunk, OutputReceiver, OutputSink, output_channel};
pub use path::{MAX_ELEMENT_BYTES, MAX_PATH_BYTES, WorkspacePath};
pub use process::{CLOSE_GRACE, Process, ProcessControl, ProcessStdin, ProcessStdout};
pub use signal::Signal;
pub use target::{Target, open};
pub use tokio_util::sync::CancellationToken;
pub use workspace::{Starter, Workspace, WorkspaceExt, start};

/// The examples of the readme, as tests.
#[cfg(all(doctest, feature = "container"))]
#[doc = include_str!("../README.md")]
struct Readme;
