//! The end of a pause.

use std::future::pending;
use std::time::{Duration, Instant};

use crate::Command;
use crate::Workspace as _;
use crate::container::files::paused::paused;
use crate::container::test_container::{BUSYBOX, STATIC, TestContainer, docker};
use crate::container::{AttachOptions, ContainerWorkspace, Engine};
use crate::error::Result;

fn is_paused(container: &str) -> bool {
    docker(&["inspect", "-f", "{{.State.Paused}}", container]) == "true"
}

async fn until_paused(container: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_paused(container) {
        assert!(Instant::now() < deadline, "it is not paused");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn closing_waits_for_the_end_of_a_pause() {
    let container = TestContainer::run(STATIC, &[]);
    let engine = Engine::connect().await.unwrap();
    let workspace =
        ContainerWorkspace::attach(&engine, &container.id, AttachOptions::default()).await.unwrap();
    let shared = workspace.shared().clone();
    let working = tokio::spawn(async move { paused(&shared, pending::<Result<()>>()).await });
    until_paused(&container.id).await;
    working.abort();
    workspace.close().await.unwrap();
    assert!(!is_paused(&container.id));
}

#[test]
fn closing_waits_for_the_end_of_a_pause_whose_runtime_is_gone() {
    let container = TestContainer::run(STATIC, &[]);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let workspace = first.block_on(async {
        let engine = Engine::connect().await.unwrap();
        let workspace =
            ContainerWorkspace::attach(&engine, &container.id, AttachOptions::default()).await.unwrap();
        let shared = workspace.shared().clone();
        tokio::spawn(async move { paused(&shared, pending::<Result<()>>()).await });
        until_paused(&container.id).await;
        workspace
    });
    drop(first);
    runtime().block_on(workspace.close()).unwrap();
    assert!(!is_paused(&container.id));
}

#[tokio::test]
async fn work_whose_pause_somebody_else_ended_fails() {
    let container = TestContainer::run(STATIC, &[]);
    let shared = container.attach("/").await;
    let id = container.id.clone();
    let work = async move {
        docker(&["unpause", &id]);
        Ok(())
    };
    let error = paused(&shared, work).await.unwrap_err();
    assert!(error.to_string().contains("resumed"), "{error}");
}

#[tokio::test]
async fn a_pause_does_not_use_up_the_time_of_a_command() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let bound = Duration::from_secs(3);
    let command = Command::shell("touch up; sleep 1; echo over").timeout(bound).idle_timeout(bound);
    let pause = async {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !docker(&["exec", &container.id, "ls", "/tmp"]).contains("up") {
            assert!(Instant::now() < deadline, "the command does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let work = async move {
            tokio::time::sleep(bound).await;
            Ok(())
        };
        paused(&shared, work).await.unwrap();
    };
    let (output, ()) = tokio::join!(crate::container::exec::exec(&shared, command), pause);
    let output = output.unwrap();
    assert!(output.success() && output.stdout.to_text() == "over\n", "{output:?}");
}
