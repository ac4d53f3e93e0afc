//! Where one case acts, and how it says what went wrong.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, Site};
use crate::eventually::eventually;
use crate::{Command, Content, Output, Result, Workspace, WorkspaceExt as _, WorkspacePath, Written};

/// The most that `get` reads.
const GET_LIMIT: u64 = 64 << 20;

/// The workspace of one case, with what surrounds it.
#[derive(Debug)]
pub struct Place {
    /// Who opened the workspace.
    pub fixture: Arc<dyn Fixture>,
    /// The workspace.
    pub site: Site,
}

impl Place {
    /// A place at `site`.
    pub fn new(fixture: Arc<dyn Fixture>, site: Site) -> Self {
        Place { fixture, site }
    }

    /// The site, when the case is over.
    pub fn into_site(self) -> Site {
        self.site
    }

    /// The workspace.
    pub fn ws(&self) -> &dyn Workspace {
        &*self.site.workspace
    }

    /// The workspace, to move into a task.
    pub fn shared(&self) -> Arc<dyn Workspace> {
        self.site.workspace.clone()
    }

    /// The absolute path of `below` in the directory outside of the root.
    pub fn outside(&self, below: &str) -> String {
        format!("{}/{below}", self.site.outside)
    }

    /// The same as a path relative to the root, which climbs.
    pub fn climbing(&self, below: &str) -> String {
        let root = self.ws().descriptor().root;
        let depth = root.split('/').filter(|element| !element.is_empty()).count();
        format!("{}{}", "../".repeat(depth), &self.outside(below)[1..])
    }

    /// The absolute path of a name below the root.
    pub fn absolute(&self, below: &str) -> String {
        format!("{}/{below}", self.ws().descriptor().root.trim_end_matches('/'))
    }

    /// What the directory outside holds.
    pub async fn outside_snapshot(&self) -> String {
        self.fixture.snapshot(&self.site, &self.site.outside).await
    }

    /// Writes a file.
    pub async fn put(&self, file: &str, content: impl Into<Content>) -> Written {
        let written = self.ws().write(&name(file), content.into(), Default::default()).await;
        written.must(&format!("write {file:?}"))
    }

    /// The content of a file.
    pub async fn get(&self, file: &str) -> Vec<u8> {
        self.ws().read(&name(file), GET_LIMIT).await.must(&format!("read {file:?}"))
    }

    /// The content of a file as text.
    pub async fn text(&self, file: &str) -> String {
        String::from_utf8_lossy(&self.get(file).await).into_owned()
    }

    /// A command that runs `script` in a shell.
    pub fn sh(&self, script: impl Into<String>) -> Command {
        Command::from_args(self.fixture.shell()).arg(script)
    }

    /// A command that runs one of the usual programs.
    pub fn program<const N: usize>(&self, program: &str, args: [&str; N]) -> Command {
        Command::from_args(self.fixture.program(program)).args(args)
    }

    /// Runs a command that must not fail to run.
    pub async fn run(&self, command: Command) -> Ran {
        let text = command.to_string();
        let output = self.ws().exec(command).await.must(&format!("run {text}"));
        Ran { command: text, output }
    }

    /// Runs a script that must succeed, and gives what it printed.
    pub async fn done(&self, script: &str) -> String {
        let ran = self.run(self.sh(script)).await;
        assert!(ran.success(), "the script failed\n{ran}");
        ran.out()
    }

    /// A number that no other process on this machine has among its arguments, fit for `sleep`: as
    /// seconds it is years.
    pub fn marker(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("1{:05}{:04}", std::process::id() % 100_000, next % 10_000)
    }

    /// Waits until `count` holds for the number of processes that carry `marker`; panics when that takes longer than
    /// `within`.
    pub async fn await_alive(&self, marker: &str, count: impl Fn(usize) -> bool, within: Duration) {
        let alive = || self.fixture.alive(&self.site, marker);
        eventually(within, alive, |alive| count(*alive)).await;
    }

    /// Waits until no process carries `marker`.
    pub async fn await_none(&self, marker: &str, within: Duration) {
        self.await_alive(marker, |alive| alive == 0, within).await;
    }

    /// Waits until some process carries `marker`.
    pub async fn await_some(&self, marker: &str) {
        self.await_alive(marker, |alive| alive > 0, Duration::from_secs(20)).await;
    }

    /// Waits until a name exists.
    pub async fn await_file(&self, file: &str) {
        let file = name(file);
        let found = || async { (file.as_str(), self.ws().exists(&file).await.must("look for a file")) };
        eventually(Duration::from_secs(20), found, |(_, there)| *there).await;
    }
}

/// What a command did, which prints as one report.
#[derive(Debug)]
pub struct Ran {
    command: String,
    output: Output,
}

impl Ran {
    /// Standard output as text.
    pub fn out(&self) -> String {
        self.output.stdout.to_text()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        self.output.stderr.to_text()
    }
}

impl Deref for Ran {
    type Target = Output;

    fn deref(&self) -> &Output {
        &self.output
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = |text: String| text.chars().take(2000).collect::<String>();
        write!(
            f,
            "command: {}\nend: {} after {:?}\nstdout: {}\nstderr: {}",
            cut(self.command.clone()),
            self.output.end,
            self.output.duration,
            cut(self.out()),
            cut(self.err())
        )
    }
}

/// A name that is known to be well formed.
pub(super) fn name(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).must(&format!("parse {text:?}"))
}

/// Takes the value out of a result, or says what failed and why.
pub(super) trait Must<T> {
    fn must(self, what: &str) -> T;
}

impl<T, E: StdError> Must<T> for Result<T, E> {
    #[track_caller]
    fn must(self, what: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => {
                let mut text = format!("failed to {what}: {error}");
                let mut source = error.source();
                while let Some(error) = source {
                    text.push_str(&format!(": {error}"));
                    source = error.source();
                }
                panic!("{text}")
            }
        }
    }
}

/// Checks that a result is an error of this form.
macro_rules! assert_error {
    ($result:expr, $($pattern:tt)+) => {
        match $result {
            Err($($pattern)+) => {}
            other => panic!(
                "{} must give {}, and gave {other:?}",
                stringify!($result),
                stringify!($($pattern)+)
            ),
        }
    };
}
pub(super) use assert_error;
