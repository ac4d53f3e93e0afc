//! Containers that a helper serves.

use std::process::{Command as Host, Stdio};
use std::time::Duration;

use super::Engine;
use super::life_tests::{create, engine, run, test_image};
use super::options::{Access, AttachOptions, ContainerOptions, Profile};
use super::removal::{containers, volumes};
use super::test_container::{BUSYBOX, STATIC, TestContainer};
use super::workspace::ContainerWorkspace;
use crate::eventually::eventually;
use crate::{Command, Error, Kind, Workspace as _};

fn options() -> ContainerOptions {
    ContainerOptions::new(test_image()).access(Access::Helper)
}

async fn shell(workspace: &ContainerWorkspace, script: &str) -> String {
    let output = workspace.exec(Command::from_args(["/bin/sh", "-c", script])).await.unwrap();
    format!("{}{}", output.stdout.to_text(), output.stderr.to_text())
}

#[tokio::test]
async fn it_is_the_first_process_reaps_and_cannot_be_killed_from_inside() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    assert_eq!(workspace.details().access, "helper");
    // By the engine, so that no supervisor adopts what is left.
    let (text, code) = run(&workspace, &["sh", "-c", "(sleep 0 & sleep 0 &) ; kill -9 1; kill -9 -1"]).await;
    assert!(code == 0 || code == 137, "{code}: {text}");
    let (text, _) = run(&workspace, &["sh", "-c", "(sleep 0.1 &); sleep 0.5; ps -o stat,comm"]).await;
    assert!(!text.contains('Z'), "{text}");
    assert_eq!(shell(&workspace, "kill -9 1; kill -STOP 1; echo here").await, "here\n");
    assert_eq!(shell(&workspace, "cat /proc/1/environ /proc/1/fd/0 2>&1 | grep -c denied").await, "2\n");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_strict_container_is_served_without_any_right() {
    let engine = engine().await;
    for image in [test_image(), STATIC.to_owned()] {
        let options = ContainerOptions::new(image).access(Access::Helper).profile(Profile::Strict);
        let workspace = create(&engine, options.root("/work/here")).await;
        assert_eq!(workspace.details().user, "65534:65534");
        let file = "a/b".parse().unwrap();
        workspace.write(&file, "x".into(), crate::WriteOptions::default()).await.unwrap();
        assert_eq!(workspace.metadata(&file).await.unwrap().size, 1);
        let id = workspace.details().workspace_id;
        workspace.close().await.unwrap();
        assert_eq!(left(&engine, &format!("agentworkspace={id}")).await, 0);
    }
}

/// How many containers and volumes carry a label.
async fn left(engine: &Engine, label: &str) -> usize {
    containers(engine, label).await.unwrap().len() + volumes(engine, label).await.unwrap().len()
}

#[tokio::test]
async fn what_a_helper_cannot_serve_is_refused_when_it_is_asked_for() {
    let engine = engine().await;
    let made = ContainerWorkspace::create(&engine, options().keep(true), |_| {}).await;
    let error = made.unwrap_err();
    assert!(matches!(error, Error::Unsupported { backend: Kind::Container, .. }), "{error}");
    let container = TestContainer::run(BUSYBOX, &[]);
    let options = AttachOptions::default().access(Access::Helper);
    let error = ContainerWorkspace::attach(&engine, &container.id, options).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { backend: Kind::Container, .. }), "{error}");
}

/// How the victim is told the label of what it makes.
const VICTIM: &str = "AGENTWORKSPACE_TEST_VICTIM";

#[tokio::test]
async fn everything_goes_with_an_owner_that_is_killed() {
    let engine = engine().await;
    for read_only in ["false", "true"] {
        let label = super::labels::new_id();
        let mut owner = Host::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "container::helper_tests::an_owner_to_be_killed"])
            .env(VICTIM, format!("{label} {read_only}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let label = format!("agentworkspace-test-victim={label}");
        let runs = async || {
            let found = containers(&engine, &label).await.unwrap();
            let Some(id) = found.first().and_then(|one| one.id.clone()) else { return false };
            engine.count_processes(&id).await.is_ok_and(|count| count >= 3)
        };
        eventually(Duration::from_secs(20), runs, |runs| *runs).await;
        owner.kill().unwrap();
        owner.wait().unwrap();
        eventually(Duration::from_secs(5), || left(&engine, &label), |left| *left == 0).await;
    }
}

#[tokio::test]
#[ignore = "it is the victim of another test"]
async fn an_owner_to_be_killed() {
    let told = std::env::var(VICTIM).unwrap();
    let (label, read_only) = told.split_once(' ').unwrap();
    let own = [("agentworkspace-test-victim".to_owned(), label.to_owned())].into();
    let options = options().labels(own).read_only(read_only == "true").user("1234:1235");
    let workspace = create(&engine().await, options).await;
    let _ = workspace.exec(Command::new("sh").args(["-c", "setsid sleep 300 & sleep 300"])).await;
}
