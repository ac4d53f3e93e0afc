//! What reaches beyond one workspace: listing and pruning, changes and builds, on a real engine.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;

use bollard::models::{ContainerCreateBody, VolumeCreateRequest};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveImageOptions};

use super::labels::Marks;
use super::life_tests::{create, engine, options, run, test_image};
use super::test_container::{BUSYBOX, TestContainer, docker};
use super::{
    AttachOptions, BuildOptions, Change, ChangeKind, ChangeScope, ContainerOptions, ContainerWorkspace,
    Engine, Progress, PruneOptions, list, prune, removal,
};
use crate::error::{Error, GoneReason, ImageErrorKind};
use crate::workspace::Workspace as _;

/// Labels of a workspace whose owner was a process of this machine that has ended.
fn dead(id: &str, kept: bool) -> HashMap<String, String> {
    let mut labels = Marks::new(id, "/workspace", None, kept).labels(&Default::default());
    // No process but the first can have started within the first hundredth of a second.
    labels.insert("agentworkspace.owner.started".into(), "1".into());
    labels
}

async fn make_container(engine: &Engine, name: &str, labels: HashMap<String, String>) {
    let body = ContainerCreateBody {
        image: Some(test_image()),
        cmd: Some(vec!["true".into()]),
        labels: Some(labels),
        ..Default::default()
    };
    let query = CreateContainerOptionsBuilder::default().name(name).build();
    engine.docker().create_container(Some(query), body).await.unwrap();
}

#[tokio::test]
async fn pruning_removes_what_dead_owners_left_and_nothing_else() {
    let _alone = PRUNING.lock().await;
    let engine = engine().await;
    let live = create(&engine, options()).await;
    let id = super::labels::new_id();
    let (left, kept) = (format!("agentworkspace-left-{id}"), format!("agentworkspace-kept-{id}"));
    make_container(&engine, &left, dead(&id, false)).await;
    make_container(&engine, &kept, dead(&id, true)).await;
    let request = VolumeCreateRequest {
        name: Some(left.clone()),
        labels: Some(dead(&id, false)),
        ..Default::default()
    };
    engine.docker().create_volume(request).await.unwrap();

    let listed = list(&engine).await.unwrap();
    let find = |name: &str| listed.iter().find(|workspace| workspace.name == name).unwrap();
    let live_name = live.facts().details.container.as_ref().unwrap().name.clone();
    assert_eq!((find(&live_name).owner_alive, find(&live_name).kept), (Some(true), false));
    assert_eq!((find(&left).owner_alive, find(&kept).kept), (Some(false), true));

    let dry = prune(&engine, PruneOptions::default().dry_run(true)).await.unwrap();
    assert!(dry.containers.contains(&left) && dry.volumes.contains(&left));
    let report = prune(&engine, PruneOptions::default()).await.unwrap();
    assert!(report.containers.contains(&left) && report.volumes.contains(&left), "{report:?}");
    assert!(!report.containers.contains(&kept) && !report.containers.contains(&live_name));
    let report = prune(&engine, PruneOptions::default().kept(true)).await.unwrap();
    assert!(report.containers.contains(&kept) && !report.containers.contains(&live_name));

    let label = format!("{}={id}", super::labels::WORKSPACE);
    assert!(removal::containers(&engine, &label).await.unwrap().is_empty());
    assert_eq!(run(&live, &["true"]).await.1, 0);
    live.close().await.unwrap();
}

/// Held by a test that prunes kept containers, and by one that has such a container.
static PRUNING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn status(container: &str) -> String {
    docker(&["inspect", "-f", "{{.State.Status}}", container])
}

#[tokio::test]
async fn a_kept_container_that_was_left_paused_is_resumed() {
    let _alone = PRUNING.lock().await;
    let engine = engine().await;
    let labels =
        dead(&super::labels::new_id(), true).into_iter().map(|(name, value)| format!("{name}={value}"));
    let labels: Vec<String> = labels.flat_map(|label| ["--label".to_owned(), label]).collect();
    let left = TestContainer::run(BUSYBOX, &labels.iter().map(String::as_str).collect::<Vec<_>>());
    docker(&["pause", &left.id]);
    let options = AttachOptions::default().root("/");
    let again = ContainerWorkspace::attach(&engine, &left.id, options).await.unwrap();
    assert_eq!(status(&left.id), "running");
    again.close().await.unwrap();
}

#[tokio::test]
async fn a_paused_container_is_left_so_while_somebody_may_hold_it_and_can_be_removed() {
    let engine = engine().await;
    let workspace = create(&engine, options().keep(true)).await;
    let id = workspace.container_id().to_owned();
    workspace.close().await.unwrap();
    docker(&["pause", &id]);
    let error = ContainerWorkspace::attach(&engine, &id, AttachOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Gone { why: GoneReason::ContainerPaused }), "{error}");
    assert_eq!(status(&id), "paused");
    super::remove(&engine, &id).await.unwrap();
    let label = format!("{}={}", super::labels::WORKSPACE, workspace.facts().details.workspace_id);
    assert!(removal::containers(&engine, &label).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_kept_container_outlives_its_workspace_and_is_opened_again() {
    let engine = engine().await;
    let workspace = create(&engine, options().keep(true).root("/srv/here").user("5:6")).await;
    let id = workspace.container_id().to_owned();
    workspace.close().await.unwrap();
    let again = ContainerWorkspace::attach(&engine, &id, AttachOptions::default()).await.unwrap();
    assert_eq!(
        (again.shared().root.as_str(), again.shared().user.to_string().as_str()),
        ("/srv/here", "5:6")
    );
    assert_eq!(again.facts().details.workspace_id, workspace.facts().details.workspace_id);
    again.close().await.unwrap();
    removal::remove_container(&engine, &id).await.unwrap();
}

#[tokio::test]
async fn changes_are_those_of_the_caller() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    assert_eq!(workspace.changes(ChangeScope::Root).await.unwrap(), []);
    run(&workspace, &["sh", "-c", "mkdir d; echo x >d/f; echo y >/etc/mine; rm /etc/passwd"]).await;
    let change = |kind, path: &str| Change { kind, path: path.to_owned() };
    let added = [change(ChangeKind::Added, "/workspace/d"), change(ChangeKind::Added, "/workspace/d/f")];
    assert_eq!(workspace.changes(ChangeScope::Root).await.unwrap(), added);
    let whole = workspace.changes(ChangeScope::Whole).await.unwrap();
    assert!(whole.contains(&change(ChangeKind::Added, "/etc/mine")), "{whole:?}");
    assert!(!whole.iter().any(|change| change.path.starts_with("/.agentworkspace")), "{whole:?}");
    workspace.close().await.unwrap();
    let error = workspace.changes(ChangeScope::Root).await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
}

#[tokio::test]
async fn an_image_is_built_from_a_directory() {
    let engine = engine().await;
    let context = tempfile::tempdir().unwrap();
    let dockerfile =
        format!("FROM {}\nARG WORD\nCOPY . /ctx\nRUN echo built $WORD && ls /ctx\n", test_image());
    fs::write(context.path().join("Dockerfile"), dockerfile).unwrap();
    fs::write(context.path().join("kept"), "x").unwrap();
    fs::write(context.path().join("secret"), "x").unwrap();
    fs::write(context.path().join(".dockerignore"), "secret\n").unwrap();
    let lines = Mutex::new(Vec::new());
    let told = |step| {
        if let Progress::Build(line) = step {
            lines.lock().unwrap().push(line);
        }
    };
    let args = [("WORD".to_owned(), "here".to_owned())].into();
    let build = BuildOptions::default().args(args).network("none").no_cache(true);
    let id = engine.build(context.path(), build, told).await.unwrap();
    let lines = lines.into_inner().unwrap();
    assert!(lines.iter().any(|line| line == "built here") && lines.iter().any(|line| line == "kept"));
    assert!(!lines.iter().any(|line| line == "secret"), "{lines:?}");
    let workspace = create(&engine, ContainerOptions::new(&id)).await;
    assert_eq!(workspace.facts().details.image.as_ref().unwrap().image_id, id);
    workspace.close().await.unwrap();
    engine.docker().remove_image(&id, None::<RemoveImageOptions>, None).await.unwrap();
}

#[tokio::test]
async fn a_build_that_fails_says_what_the_builder_said() {
    let engine = engine().await;
    let context = tempfile::tempdir().unwrap();
    let dockerfile = format!("FROM {}\nRUN echo about to fail; exit 7\n", test_image());
    fs::write(context.path().join("Dockerfile"), dockerfile).unwrap();
    let error =
        engine.build(context.path(), BuildOptions::default().network("none"), |_| {}).await.unwrap_err();
    let Error::Image { kind: ImageErrorKind::BuildFailed { detail }, .. } = error else { panic!("{error}") };
    assert!(detail.contains("about to fail") && detail.contains('7'), "{detail}");
}
