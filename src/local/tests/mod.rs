//! What is particular to this backend; the behaviour common to all is tested by the conformance
//! suite.

mod archives;
mod commands;
mod confinement;
mod mounts;
mod races;
mod special;
mod writing;

use std::path::PathBuf;

use super::LocalWorkspace;
use crate::environment::Environment;
use crate::path::WorkspacePath;
use crate::workspace::Workspace as _;

/// A workspace below a directory that holds something else too.
struct Fixture {
    outer: tempfile::TempDir,
    workspace: LocalWorkspace,
}

impl Fixture {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("root")).unwrap();
        let workspace = LocalWorkspace::open(outer.path().join("root"), Environment::empty()).unwrap();
        Fixture { outer, workspace }
    }

    /// The path on this machine of a name in the workspace.
    fn host(&self, name: &str) -> PathBuf {
        self.outer.path().join("root").join(name)
    }

    /// The path of a name beside the workspace.
    fn outside(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    /// The names of temporary files that were left in the root.
    fn leftovers(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.host(".")).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|n| n.into_string().unwrap()).filter(|n| n.starts_with(".agentworkspace")).collect()
    }

    async fn write(&self, name: &str, content: &str) -> crate::Result<crate::Written> {
        self.workspace.write(&path(name), content.into(), crate::WriteOptions::default()).await
    }
}

fn path(name: &str) -> WorkspacePath {
    WorkspacePath::parse(name).unwrap()
}
