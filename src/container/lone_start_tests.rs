//! Directories of commands in an image that has nothing but a static program.

use std::time::{Duration, Instant};

use super::life_tests::{create, engine};
use super::options::{Access, ContainerOptions};
use super::test_container::{STATIC, TestContainer};
use super::workspace::ContainerWorkspace;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::output::Output;
use crate::{Command, Workspace as _};

/// Runs a script with the image's own program, which the workspace does not know for a shell.
async fn script(workspace: &ContainerWorkspace, text: &str) -> String {
    let command = Command::from_args(["/busybox", "sh", "-c", text]);
    workspace.exec(command).await.unwrap().stdout.to_text()
}

async fn pwd(workspace: &ContainerWorkspace, dir: &str) -> Result<Output> {
    workspace.exec(Command::from_args(["/busybox", "pwd"]).dir(dir)).await
}

async fn made() -> ContainerWorkspace {
    create(&engine().await, ContainerOptions::new(STATIC).access(Access::Engine)).await
}

#[tokio::test]
async fn a_directory_is_entered_only_inside_the_root() {
    let workspace = made().await;
    let error = pwd(&workspace, "missing").await.unwrap_err();
    assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::BadDirectory, .. }), "{error:?}");
    let tree = "cd /workspace; for l in 'a/b in' '/workspace/a abs' '../etc out' 'loop loop'; do \
                /busybox ln -s ${l% *} ${l#* }; done; /busybox mkdir -p a/b 'sp ace'; : > file";
    script(&workspace, tree).await;
    for (dir, at) in [("a/b", "a/b"), ("in", "a/b"), ("sp ace", "sp ace")] {
        let output = pwd(&workspace, dir).await.unwrap();
        assert_eq!(output.stdout.to_text(), format!("/workspace/{at}\n"), "{dir}");
    }
    for dir in ["abs", "out", "abs/b"] {
        let error = pwd(&workspace, dir).await.unwrap_err();
        assert!(error.is_outside(), "{dir}: {error:?}");
    }
    for dir in ["missing", "file", "loop", "file/x"] {
        let error = pwd(&workspace, dir).await.unwrap_err();
        let told = matches!(error, Error::Spawn { kind: SpawnErrorKind::BadDirectory, .. });
        assert!(told, "{dir}: {error:?}");
    }
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_directory_is_not_entered_beside_another_process() {
    let workspace = made().await;
    script(&workspace, "/busybox mkdir d; until [ -e stop ]; do /busybox sleep 0.1; done >/dev/null 2>&1 &")
        .await;
    let error = pwd(&workspace, "d").await.unwrap_err();
    assert!(error.is_unsupported(), "{error:?}");
    assert!(pwd(&workspace, ".").await.unwrap().success(), "the root is always there");
    script(&workspace, ": > stop").await;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match pwd(&workspace, "d").await {
            Ok(output) => break assert_eq!(output.stdout.to_text(), "/workspace/d\n"),
            Err(error) => assert!(error.is_unsupported() && Instant::now() < deadline, "{error:?}"),
        }
    }
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_process_that_forks_all_the_time_is_seen() {
    let workspace = made().await;
    script(&workspace, "/busybox mkdir d; f() { [ -e stop ] || f & }; f >/dev/null 2>&1").await;
    for _ in 0..20 {
        let error = pwd(&workspace, "d").await.unwrap_err();
        assert!(error.is_unsupported(), "{error:?}");
    }
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn commands_at_once_enter_their_directory_or_are_refused() {
    let workspace = made().await;
    script(&workspace, "/busybox mkdir d").await;
    let runs = futures::future::join_all((0..8).map(|_| pwd(&workspace, "d"))).await;
    for run in &runs {
        match run {
            Ok(output) => assert_eq!(output.stdout.to_text(), "/workspace/d\n"),
            Err(error) => assert!(error.is_unsupported(), "{error:?}"),
        }
    }
    assert!(runs.iter().any(Result::is_ok), "the first one is alone");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_directory_of_a_container_that_others_use_is_not_entered() {
    let container = TestContainer::run(STATIC, &[]);
    let shared = container.attach("/").await;
    let command = |dir: &str| Command::from_args(["/busybox", "pwd"]).dir(dir);
    assert!(super::exec::exec(&shared, command("etc")).await.unwrap_err().is_unsupported());
    assert!(super::exec::exec(&shared, command(".")).await.unwrap().success());
}
