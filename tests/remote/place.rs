//! A directory behind a server, and ways to see what became of what ran there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agentworkspace::remote::{FreshSource, RemoteWorkspace, Server};
use agentworkspace::{Command, Environment, LocalWorkspace, Workspace, WorkspacePath};
use tokio::io::DuplexStream;

/// A directory that every session of a server gets as its workspace.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { dir: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn source(&self) -> FreshSource {
        let path = self.path().to_owned();
        FreshSource::new(move || {
            let path = path.clone();
            async move {
                let env: Environment =
                    [("PATH", "/usr/bin:/bin"), ("SECRET", "hunter2")].into_iter().collect();
                Ok(Arc::new(LocalWorkspace::open(path, env)?) as Arc<dyn Workspace>)
            }
        })
    }

    pub(crate) fn server(&self) -> Server {
        Server::new(self.source())
    }

    /// A client of `server` through memory.
    pub(crate) async fn client(&self, server: &Server) -> RemoteWorkspace {
        RemoteWorkspace::connect(serve(server), "memory").await.expect("a connection")
    }
}

/// A stream at whose other end `server` serves.
pub(crate) fn serve(server: &Server) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let server = server.clone();
    tokio::spawn(async move { server.serve(theirs).await });
    ours
}

pub(crate) fn name(text: &str) -> WorkspacePath {
    text.parse().expect("a name")
}

pub(crate) fn sh(script: impl Into<String>) -> Command {
    Command::shell(script)
}

/// A number that no other process on this machine has among its arguments, fit for `sleep`.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("2{:05}{:04}", std::process::id() % 100_000, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many processes on this machine have `marker` among their arguments.
pub(crate) fn alive(marker: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("a process table").filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(marker)).count()
}

/// Waits for a condition, and fails when it does not come true in time.
#[track_caller]
pub(crate) fn eventually(within: Duration, condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + within;
        while !condition() {
            assert!(Instant::now() < deadline, "{caller}: not so within {within:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
