//! A place for commands of tests, and ways to see what became of them.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::processes::Processes;
use crate::command::Command;
use crate::environment::Environment;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::eventually::eventually;
use crate::output::{Captured, Output};
use crate::process::Process;

/// A temporary directory with a subdirectory `sub`, and the processes in it.
pub(super) struct Place {
    root: tempfile::TempDir,
    env: Environment,
    pub(super) processes: Processes,
}

impl Place {
    pub(super) fn new() -> Place {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        let env = [("PATH", "/usr/bin:/bin"), ("A", "workspace")].into_iter().collect();
        Place { root, env, processes: Processes::new() }
    }

    pub(super) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn dir(&self) -> OwnedFd {
        std::fs::File::open(self.path()).unwrap().into()
    }

    pub(super) async fn exec(&self, command: Command) -> Result<Output> {
        self.processes.exec(self.dir(), &self.env, command).await
    }

    pub(super) async fn start(&self, command: Command) -> Result<Process> {
        self.processes.start(self.dir(), &self.env, command).await
    }

    pub(super) async fn spawn_error(&self, command: Command) -> SpawnErrorKind {
        match self.exec(command).await {
            Err(Error::Spawn { kind, .. }) => kind,
            other => panic!("it was started: {other:?}"),
        }
    }

    pub(super) fn script(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn open_to_all(&self) {
        std::fs::set_permissions(self.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn close_to_others(&self) {
        std::fs::set_permissions(self.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// A number of seconds for `sleep` that no other process on the machine sleeps for.
    pub(super) fn marker(&self, index: usize) -> String {
        // The directory's name is random, and its address in memory differs between tests.
        let unique = self
            .path()
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        format!("{}.{:09}{index:02}", 1000 + std::process::id() % 1000, unique % 1_000_000_000)
    }

    /// Waits until no supervisor of this place is left, dead or alive.
    pub(super) async fn assert_no_children(&self) {
        eventually(Duration::from_secs(3), || async { self.processes.running() }, |count| *count == 0).await;
    }
}

/// Fails unless this process is root's, so that nobody takes a test for passed that did not run.
#[track_caller]
pub(super) fn needs_root() {
    assert!(rustix::process::geteuid().is_root(), "this test needs root; leave it out with `--skip`");
}

/// Kept bytes as text.
pub(super) fn output(captured: &Captured) -> String {
    String::from_utf8(captured.to_vec()).unwrap()
}

/// How many processes sleep for `marker` seconds.
pub(super) fn running(marker: &str) -> usize {
    let arguments = format!("sleep\0{marker}\0");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(std::result::Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| *line == arguments.as_bytes()).count()
}
