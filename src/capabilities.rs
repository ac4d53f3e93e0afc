//! What a workspace can do, as data.

use serde::{Deserialize, Serialize};

/// What a workspace can do and how far its promises reach.
///
/// A request beyond them is [`Error::Unsupported`](crate::Error::Unsupported), never ignored. A
/// test or a caller reads this rather than asking which backend it has. The default is none of
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Capabilities {
    /// It can start processes with pipes to them: [`as_starter`](crate::Workspace::as_starter) gives one.
    pub start: bool,
    /// A started process may have a terminal, and it can be resized.
    pub tty: bool,
    /// A command may run as another user.
    pub user: bool,
    /// A command can be ended before it exits by itself: by timeout, cancellation, signal or by
    /// dropping it. Without it a command with a timeout is refused.
    pub kill: bool,
    /// A command's descendants are ended with it even if they change their session, parent,
    /// environment and arguments. Without it the last of these can hide one until the workspace
    /// closes.
    pub kill_is_complete: bool,
    /// Exit by a signal is told apart from an exit status of 128 and more. Without it such a
    /// status is reported as the signal.
    pub exact_signals: bool,
    /// What processes left behind print is read and discarded for as long as they run. Without it
    /// their output is closed 2 s after the command has exited.
    pub leftover_output: bool,
    /// `remove`, `remove_all`, `rename` and `set_mode` work.
    pub change_tree: bool,
    /// `write` replaces a file in one step, so that a reader sees the old or the new content.
    /// Without it [`Written::method`](crate::Written::method) says in place.
    pub atomic_write: bool,
    /// Permissions of the workspace's user apply to reads and writes. Without it they are made
    /// with the engine's own rights.
    pub files_as_user: bool,
    /// `metadata` knows owner and group.
    pub owners: bool,
    /// Files below a tmpfs mount can be reached.
    pub tmpfs: bool,
    /// [`put_archive`](crate::Workspace::put_archive) and
    /// [`get_archive`](crate::Workspace::get_archive) reach below a tmpfs mount. Without it a tree
    /// on one or with one in it is [`Error::Unsupported`](crate::Error::Unsupported), and goes in or
    /// out by a command, such as `tar` in the workspace. What is mounted after the workspace was
    /// opened is not known: a tree has what is below the mount.
    pub archives_on_tmpfs: bool,
    /// A symbolic link in an archive may lead out of the root. Without it such a link is refused by
    /// name, and the archive with it.
    pub leaving_archive_links: bool,
    /// Confinement of file operations holds while another process swaps directories for links.
    /// Without it names are checked just before they are used.
    pub confined_under_races: bool,
    /// A command may start in a directory below the root while other processes run. Without it such
    /// a command starts when it is certain that nothing else runs in the workspace, and is refused
    /// otherwise; in the root it always starts.
    pub command_dir_beside_processes: bool,
    /// A write is flushed to disk before it is acknowledged.
    pub durable_write: bool,
}
