//! What a backend brings so that the suite can be run over it.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::Workspace;

/// Opens workspaces of one kind, and looks at them by a way that is independent of the code under
/// test.
#[async_trait]
pub trait Fixture: Debug + Send + Sync + 'static {
    /// Opens a workspace with an empty root, which no other case uses at the same time. Its
    /// directory outside of the root exists, is empty, and may be written by the workspace's user.
    async fn open(&self) -> Site;

    /// Lets go of a workspace; a spent one is not used again. Panics when something is left of it.
    async fn release(&self, site: Site, spent: bool);

    /// The arguments that run a POSIX shell script given as one more argument.
    fn shell(&self) -> Vec<String> {
        vec!["/bin/sh".to_owned(), "-c".to_owned()]
    }

    /// The arguments that run one of the usual programs, such as `cat` or `env`.
    fn program(&self, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    /// The absolute path of an executable file in the workspace's surroundings that `program`
    /// runs when it is called `cat`: `cat` itself, or a multi-call binary.
    fn cat_path(&self) -> String {
        "/bin/cat".to_owned()
    }

    /// The numbers of the user and the group that commands run as.
    fn ids(&self) -> (u32, u32);

    /// Writes a file at an absolute path of the workspace's machine, as its user; parents exist.
    async fn plant(&self, site: &Site, path: &str, data: &[u8]);

    /// Names, kinds, modes, sizes and contents below an absolute path, as comparable text.
    async fn snapshot(&self, site: &Site, path: &str) -> String;

    /// Makes user `uid` the owner of an absolute path; `false` when this fixture may not.
    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool;

    /// How many processes in the workspace's surroundings have `marker` in their arguments.
    async fn alive(&self, site: &Site, marker: &str) -> usize;

    /// Whether the root is on a tmpfs.
    fn root_on_tmpfs(&self) -> bool {
        false
    }

    /// The size of the file that is streamed up and down, in bytes.
    fn big_file(&self) -> u64 {
        256 << 20
    }

    /// How many commands run at the same time in the concurrency case.
    fn concurrent_execs(&self) -> usize {
        200
    }
}

/// One open workspace and what surrounds it.
#[derive(Clone, Debug)]
pub struct Site {
    /// The workspace.
    pub workspace: Arc<dyn Workspace>,
    /// The absolute path of a directory outside of the root.
    pub outside: String,
    /// What the fixture knows it by.
    pub key: String,
}

impl Site {
    /// A workspace with a directory outside of it; `key` is the fixture's own.
    pub fn new(workspace: Arc<dyn Workspace>, outside: impl Into<String>, key: impl Into<String>) -> Self {
        Site { workspace, outside: outside.into(), key: key.into() }
    }
}
