//! The contract that every backend keeps.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::descriptor::{Descriptor, Details};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;

/// A place to act: a file tree, processes, a working directory and an environment.
///
/// # Names
///
/// Every name is a [`WorkspacePath`], so a malformed one never gets here. Links inside the root
/// are followed, an absolute one excepted. A name that leaves the root through a link in any component is
/// [`Error::OutsideWorkspace`], for every operation; so is one through an absolute link, even if
/// its target is inside. With [`Capabilities::confined_under_races`] that holds while another
/// process swaps directories for links: what is outside is never read, changed, made or removed. A
/// command's directory is never outside, whatever is swapped; where that cannot be made certain, as
/// [`Capabilities::command_dir_beside_processes`] says, the command is refused.
///
/// # Errors
///
/// Every method may report, besides what it lists: [`Error::OutsideWorkspace`];
/// [`Error::NotADirectory`] when a component of the name is not one; [`Error::TooManyLinks`] after 40
/// links; [`Error::PermissionDenied`] and [`Error::ReadOnly`]; [`Error::Closed`] after
/// [`close`](Self::close); [`Error::Gone`] when the workspace has died; [`Error::Unsupported`]
/// when its [`capabilities`](Self::capabilities) do not reach that far; and [`Error::Io`] for
/// what has no variant.
///
/// # Cancel safety
///
/// Dropping a future begins to stop what it stood for, and does not wait. No new step begins; one
/// that has begun may still finish. A write leaves the old content or the new, or a part of the
/// new where [`Capabilities::atomic_write`] does not hold; its temporary file is removed. An
/// operation on a tree may have got part of the way. A command gets SIGKILL with everything it
/// started, and [`close`](Self::close) waits for that. A drop outside of a runtime does not panic.
///
/// # Implementing
///
/// There are no default bodies, and a wrapper must forward every method; a minor version may add
/// some. Convenience lives in [`WorkspaceExt`](crate::WorkspaceExt). The suite in `conformance` checks each sentence
/// here.
#[async_trait]
pub trait Workspace: Debug + Send + Sync + 'static {
    /// What a session records about where its tools ran.
    fn descriptor(&self) -> Descriptor;

    /// More about it: image, engine, limits as enforced, warnings.
    fn details(&self) -> Details;

    /// What it can do and how far its promises reach.
    fn capabilities(&self) -> Capabilities;

    /// The environment every command starts with, as a copy: exactly what the constructor was
    /// given, in a container over the image's own and what the engine adds, such as `HOME`. Never
    /// this process's environment. A backend may add variables of its own whose names begin with
    /// `AGENTWORKSPACE_`.
    fn env(&self) -> Environment;

    /// Opens a regular file for reading, whole or in part.
    ///
    /// Opening never blocks: a FIFO or a device fails at once. Links are followed. A file larger
    /// than [`OpenOptions::max_size`] is refused, and one that grows past it fails while it is
    /// read. An offset beyond the end reads nothing. A file that grows is read to the size it had
    /// or beyond; one that shrinks ends where it ends.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::IsADirectory`], [`Error::NotAFile`], [`Error::TooLarge`]; in a
    /// container without a shell also [`Error::SpoolFull`].
    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader>;

    /// What a name stands for, following links.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], also for a dangling link.
    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata>;

    /// What a name stands for, not following a link in the last component.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`].
    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata>;

    /// The target of a link, byte for byte as the link holds it, wherever it leads.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotALink`].
    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget>;

    /// A page of a directory: the smallest names after [`ListOptions::after`], sorted by their
    /// bytes, each with its kind. A name that is not UTF-8 is there with its raw bytes. A link to
    /// a directory is followed. Memory is bounded by [`ListOptions::limit`]. A container without a
    /// shell lists no sockets, which [`metadata`](Self::metadata) finds by their names.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotADirectory`].
    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage>;

    /// Creates or replaces a regular file with `content`, read to its end.
    ///
    /// - Missing parents are made with mode 0755, unless [`WriteOptions::parents`] says otherwise.
    /// - The file is replaced in one step: a temporary file in the same directory is written,
    ///   flushed to disk and renamed. Where that is impossible the content is written in place,
    ///   and [`Written::method`] says so.
    /// - A link inside the root stays a link; its target is what is replaced. A dangling one makes
    ///   its target.
    /// - An existing file keeps its mode and its owner; one whose owner the workspace's user may
    ///   not give away is written in place. Other hard links keep the old content. A new file gets [`WriteOptions::mode`], under no umask, and
    ///   the workspace's user as owner.
    /// - A FIFO, device, socket or directory is refused without blocking.
    /// - When `content` fails, nothing is replaced and the error is returned. To write in place it
    ///   is first read whole, into a temporary file of this machine if need be; only a full disk
    ///   can then leave a part.
    ///
    /// # Errors
    ///
    /// [`Error::IsADirectory`], [`Error::NotAFile`], [`Error::NotFound`] without parents,
    /// [`Error::StorageFull`], [`Error::SpoolFull`], [`Error::InvalidArgument`] for a mode above
    /// `0o7777`.
    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written>;

    /// Removes a file, a link (not its target) or an empty directory.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::DirectoryNotEmpty`], [`Error::InvalidArgument`] for the root.
    async fn remove(&self, path: &WorkspacePath) -> Result<()>;

    /// Removes whatever has the name, with everything below it; links are removed, not followed.
    /// A file system mounted below it is emptied, and then [`Error::Io`] says that it is busy.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::InvalidArgument`] for the root.
    async fn remove_all(&self, path: &WorkspacePath) -> Result<()>;

    /// Renames a file, link or directory in one step. A file there is replaced, an empty
    /// directory by a directory. Parents are not made. Links in the last component are renamed,
    /// not followed.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::IsADirectory`], [`Error::NotADirectory`],
    /// [`Error::DirectoryNotEmpty`], [`Error::CrossesDevices`], [`Error::InvalidArgument`] for the
    /// root and for a directory into itself.
    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()>;

    /// Makes a directory and its missing parents, mode 0755 under no umask. That it exists
    /// already is no error.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] when something else has the name.
    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()>;

    /// Sets the permission bits of a file or directory, following links, under no umask.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::InvalidArgument`] for a mode above `0o7777`.
    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()>;

    /// Copies a regular file to another name, as [`write`](Self::write) would, without its
    /// content leaving the workspace where that can be. A new file gets the mode of the first; an
    /// existing one keeps its own.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open) for `from` and of [`write`](Self::write) for `to`;
    /// [`Error::InvalidArgument`] for a file onto itself.
    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written>;

    /// Unpacks a tar stream below a directory, which is made if it is missing.
    ///
    /// - Files, directories, symbolic and hard links; modes; modification times to the second or
    ///   better; empty directories; long and sparse names (PAX, GNU). The owner is the
    ///   workspace's user, whatever the archive says.
    /// - An entry replaces a file or link of the same name. A directory merges with one that is
    ///   there. A file does not replace a directory, nor a directory a file.
    /// - An entry that would land outside by its name or through a link is refused and nothing of
    ///   it is written; a symbolic link may point anywhere, it is what comes through it that is
    ///   refused. A device, FIFO or socket is refused. Entries before it stay.
    /// - A compressed stream is refused.
    ///
    /// # Errors
    ///
    /// [`Error::Archive`] naming the entry; [`Error::StorageFull`]; [`Error::TooLarge`] past the
    /// bounds in `options`. Of a container, also [`Error::Unsupported`] for an entry on a mount that
    /// archives do not reach, [`Error::SpoolFull`], and [`Error::Timeout`] when nothing moves for a
    /// minute.
    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport>;

    /// A directory and everything below it, or one file, as a tar stream.
    ///
    /// Names are relative to the directory; a file is one entry under its own last element. Links
    /// are archived as links; a link given as `path` itself is followed. FIFOs, devices and
    /// sockets are left out. Entries come in the order of their names, a directory before what is
    /// in it. Nothing outside is read.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::InvalidArgument`] for a malformed pattern; while reading,
    /// [`Error::TooLarge`] and [`Error::Changed`]. Of a container, also [`Error::Unsupported`] for a
    /// tree with a mount in it that archives do not reach and [`ArchiveOptions::exclude`] does not
    /// leave out, [`Error::SpoolFull`], and [`Error::Timeout`] when nothing moves for a minute.
    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader>;

    /// Runs a command to its end, in its own session and process group.
    ///
    /// - A status other than 0 is not an error.
    /// - Each output stream is kept up to [`Command::output_limit`], first and last part, and
    ///   what was dropped is counted; or it goes to [`Command::stream`].
    /// - When [`Command::timeout`] or [`Command::idle_timeout`] passes, the command and all it
    ///   started are ended and the output so far is returned.
    /// - After the command has exited, output that a process left behind still holds open is
    ///   awaited 2 s at most; then [`Output::output_detached`] is set.
    /// - A command that does not read its input does not block: what it leaves is discarded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`], [`Error::OutsideWorkspace`] for the directory, and
    /// [`Error::Cancelled`] before anything starts; [`Error::Spawn`] when it could not be
    /// started; [`Error::Cancelled`] when the token ended it; [`Error::Gone`] when the workspace
    /// died under it.
    async fn exec(&self, command: Command) -> Result<Output>;

    /// The workspace as one that can start processes with pipes to them; `None` when it cannot,
    /// as [`Capabilities::start`] says. [`start`] wraps it. A wrapper returns itself, never what
    /// it wraps.
    fn as_starter(&self) -> Option<&dyn Starter>;

    /// Ends every process and releases everything the workspace holds; what it made in an engine
    /// is removed, what it only attached to is left as it was. Every other call is
    /// [`Error::Closed`] from then on, those in flight and readers still open included; a started
    /// process ends as [`End::Signaled`](crate::End::Signaled).
    ///
    /// Several callers wait for the same end, and once everything is released another call does
    /// nothing. One that failed or was dropped leaves the workspace closed, and the next goes on
    /// with what is left. Dropping the last handle does the same in the background.
    ///
    /// # Errors
    ///
    /// What could not be released.
    async fn close(&self) -> Result<()>;
}

/// A [`Workspace`] that can run a process for longer than one call, with pipes to it: an MCP
/// server over stdio, a persistent shell.
#[async_trait]
pub trait Starter: Workspace {
    /// Starts a command and returns once its program runs. See [`Process`] for how it is used and
    /// how it ends.
    ///
    /// Its standard error goes to [`Command::stream`], or nowhere. The end of
    /// [`Command::cancel`], [`Command::timeout`] and [`Command::idle_timeout`] end it and
    /// everything it started: SIGTERM, [`Command::kill_grace`] or 2 s, SIGKILL.
    ///
    /// # Errors
    ///
    /// Before anything starts: [`Error::InvalidArgument`] for no program and for
    /// [`Command::stdin`], [`Error::OutsideWorkspace`] for the directory, [`Error::Cancelled`],
    /// [`Error::Closed`]. [`Error::Spawn`] when it could not be started.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, what was started gets SIGKILL.
    async fn start(&self, command: Command) -> Result<Process>;
}

/// Starts `command` in `workspace` if that can start processes.
///
/// # Errors
///
/// Those of [`Starter::start`]; [`Error::Unsupported`] naming the kind of workspace when it is no
/// [`Starter`].
///
/// # Cancel safety
///
/// As [`Starter::start`].
pub async fn start(workspace: &dyn Workspace, command: Command) -> Result<Process> {
    match workspace.as_starter() {
        Some(starter) => starter.start(command).await,
        None => Err(Error::Unsupported {
            operation: "starting a process".to_owned(),
            backend: workspace.descriptor().kind,
            reason: "it runs one command at a time; use `exec`".to_owned(),
        }),
    }
}
