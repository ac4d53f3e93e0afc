//! That commands run in the directory that files are in, and end with the workspace.

use std::os::unix::fs::symlink;

use super::{Fixture, path};
use crate::command::Command;
use crate::error::{Error, SpawnErrorKind};
use crate::output::End;
use crate::workspace::{self, Workspace as _};

#[tokio::test]
async fn a_command_runs_in_its_directory_and_sees_the_files() {
    let fixture = Fixture::new();
    fixture.write("d/file", "text").await.unwrap();
    symlink("d", fixture.host("link")).unwrap();
    for dir in ["d", "link", "./d/../d/"] {
        let output = fixture.workspace.exec(Command::shell("cat file; cat >new").dir(dir).stdin("new")).await;
        let output = output.unwrap();
        assert!(output.end.success(), "{output:?}");
        assert_eq!(std::fs::read(fixture.host("d/new")).unwrap(), b"new");
    }
}

#[tokio::test]
async fn a_bad_directory_is_told_apart_from_one_outside() {
    let fixture = Fixture::new();
    fixture.write("file", "").await.unwrap();
    symlink("..", fixture.host("up")).unwrap();
    for dir in ["missing", "file", "file/below"] {
        let error = fixture.workspace.exec(Command::shell("true").dir(dir)).await.unwrap_err();
        assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::BadDirectory, .. }), "{dir}: {error:?}");
    }
    for dir in ["up", "..", "/"] {
        let error = fixture.workspace.exec(Command::shell("true").dir(dir)).await.unwrap_err();
        assert!(error.is_outside(), "{dir}: {error:?}");
    }
}

#[tokio::test]
async fn closing_ends_a_started_process() {
    let fixture = Fixture::new();
    let process = workspace::start(&fixture.workspace, Command::shell("exec cat")).await.unwrap();
    fixture.workspace.close().await.unwrap();
    assert!(matches!(process.wait().await, Ok(End::Signaled(_))));
    assert!(matches!(fixture.workspace.exec(Command::shell("true")).await, Err(Error::Closed)));
    assert!(matches!(fixture.workspace.metadata(&path("a")).await, Err(Error::Closed)));
}
