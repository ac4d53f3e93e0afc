//! The life of containers, on a real engine.

use std::time::{Duration, Instant};

use bollard::query_parameters::{
    KillContainerOptionsBuilder, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};

use super::labels;
use super::options::{Access, AttachOptions, ContainerOptions, Mount, Profile};
use super::removal;
use super::{ContainerWorkspace, Engine, Progress};
use crate::error::{Error, GoneReason, ImageErrorKind, Result};
use crate::workspace::Workspace as _;

pub(super) async fn engine() -> Engine {
    match Engine::connect().await {
        Ok(engine) => engine,
        Err(error) => panic!("{error}; `make engine` starts one"),
    }
}

pub(super) fn test_image() -> String {
    std::env::var("AGENTWORKSPACE_TEST_IMAGE").unwrap_or_else(|_| "agentworkspace/busybox:test".to_owned())
}

/// An image of nothing but one program, which is no shell.
const STATIC_IMAGE: &str = "agentworkspace/static:test";

pub(super) fn options() -> ContainerOptions {
    ContainerOptions::new(test_image()).access(Access::Engine)
}

pub(super) async fn create(engine: &Engine, options: ContainerOptions) -> ContainerWorkspace {
    ContainerWorkspace::create(engine, options, |_| {}).await.unwrap()
}

/// Waits for a condition, for at most 20 s.
async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How many containers and volumes carry a label.
async fn count(engine: &Engine, label: &str) -> usize {
    let containers = removal::containers(engine, label).await.unwrap();
    containers.len() + removal::volumes(engine, label).await.unwrap().len()
}

async fn count_of(engine: &Engine, workspace: &ContainerWorkspace) -> usize {
    count(engine, &format!("{}={}", labels::WORKSPACE, workspace.facts().details.workspace_id)).await
}

/// Options with a label by which a test finds what it made.
fn labelled(test: &str) -> (ContainerOptions, String) {
    let value = labels::new_id();
    let label = format!("agentworkspace-test-{test}");
    let own = [(label.clone(), value.clone())].into();
    (options().labels(own), format!("{label}={value}"))
}

/// Runs a command as root in a container, to its end.
pub(super) async fn run(workspace: &ContainerWorkspace, args: &[&str]) -> (String, i64) {
    use futures::StreamExt as _;
    let exec = super::raw_exec::RawExec {
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        user: workspace.shared().user.to_string(),
        dir: workspace.shared().root.clone(),
        stdin: false,
    };
    let engine = &workspace.shared().engine;
    let mut streams = engine.start_exec(&workspace.shared().id, exec).await.unwrap();
    let mut text = String::new();
    while let Some(part) = streams.output.next().await {
        text.push_str(&String::from_utf8_lossy(part.unwrap().bytes()));
    }
    let state = engine.exec_state(&streams.id).await.unwrap();
    (text, state.exit_code.unwrap())
}

#[tokio::test]
async fn a_closed_workspace_leaves_nothing() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    assert_eq!(count_of(&engine, &workspace).await, 1);
    let (first, second) = tokio::join!(workspace.close(), workspace.close());
    first.and(second).unwrap();
    assert_eq!(count_of(&engine, &workspace).await, 0);
    assert!(matches!(workspace.shared().monitor.check_open(), Err(Error::Closed)));
    workspace.close().await.unwrap();
}

#[test]
fn a_workspace_dropped_outside_of_a_runtime_is_removed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (engine, workspace) = runtime.block_on(async {
        let engine = engine().await;
        let workspace = create(&engine, options().read_only(true)).await;
        (engine, workspace)
    });
    let id = format!("{}={}", labels::WORKSPACE, workspace.facts().details.workspace_id);
    drop(runtime);
    drop(workspace);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(eventually("the container is removed", || async { count(&engine, &id).await == 0 }));
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let engine = engine().await;
    let (options, label) = labelled("failed");
    let wrong_digest = options.clone().require_digest(format!("sha256:{}", "0".repeat(64)));
    let error = ContainerWorkspace::create(&engine, wrong_digest, |_| {}).await.unwrap_err();
    let is_wrong = matches!(error, Error::Image { kind: ImageErrorKind::WrongDigest { .. }, .. });
    assert!(is_wrong, "{error}");
    let no_user = options.clone().user("nobody-of-that-name").read_only(true);
    let error = ContainerWorkspace::create(&engine, no_user, |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let bad_source = options.mounts(vec![Mount::bind("/nowhere/at/all", "/mnt")]);
    let error = ContainerWorkspace::create(&engine, bad_source, |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    assert_eq!(count(&engine, &label).await, 0);
}

#[tokio::test]
async fn a_create_dropped_at_any_point_leaves_nothing() {
    let engine = engine().await;
    let (options, label) = labelled("dropped");
    for millis in [0, 5, 20, 60, 120, 250, 400] {
        let create = ContainerWorkspace::create(&engine, options.clone().read_only(millis % 20 == 0), |_| {});
        let made = tokio::time::timeout(Duration::from_millis(millis), create).await;
        drop(made);
    }
    // A create that the engine had begun appears a moment after it was given up.
    let quiet = async || {
        for _ in 0..10 {
            if count(&engine, &label).await != 0 {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        true
    };
    eventually("nothing is left", quiet).await;
}

#[tokio::test]
async fn an_image_without_a_shell_starts() {
    let engine = engine().await;
    let workspace = create(&engine, ContainerOptions::new(STATIC_IMAGE).access(Access::Engine)).await;
    assert_eq!(workspace.shared().shell, None);
    assert!(!workspace.capabilities().kill && workspace.as_starter().is_none());
    let root = workspace.metadata(&crate::WorkspacePath::root()).await.unwrap();
    assert_eq!(root.kind, crate::FileKind::Directory);
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn the_first_process_reaps_and_cannot_be_killed_from_inside() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    let (text, code) = run(&workspace, &["sh", "-c", "(sleep 0 & sleep 0 &) ; kill -9 1; kill -9 -1"]).await;
    assert!(code == 0 || code == 137, "{code}: {text}");
    let (text, code) = run(&workspace, &["sh", "-c", "(sleep 0.1 &); sleep 0.5; ps -o stat,comm"]).await;
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains('Z'), "{text}");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_read_only_container_has_a_root_that_can_be_written() {
    let engine = engine().await;
    let workspace = create(&engine, options().read_only(true).user("1234:1235").root("/work/here")).await;
    let script = "touch /etc/x; touch a && touch /tmp/b && stat -c %u:%g . && rm -rf /.agentworkspace/pause; \
                  ls /.agentworkspace";
    let (text, code) = run(&workspace, &["sh", "-c", script]).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("/etc/x: Read-only file system"), "{text}");
    assert!(text.contains("1234:1235") && text.contains("pause\n"), "{text}");
    assert_eq!(count_of(&engine, &workspace).await, 3);
    workspace.close().await.unwrap();
    assert_eq!(count_of(&engine, &workspace).await, 0);
}

#[tokio::test]
async fn a_strict_container_has_no_capability_and_is_not_root() {
    let engine = engine().await;
    let workspace = create(&engine, options().profile(Profile::Strict)).await;
    let script =
        "id -u; id -g; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status; touch a && echo wrote";
    let (text, code) = run(&workspace, &["sh", "-c", script]).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("65534\n65534\n") && text.ends_with("wrote\n"), "{text}");
    assert!(text.contains("CapBnd:\t0000000000000000") && text.contains("NoNewPrivs:\t1"), "{text}");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn the_root_belongs_to_the_user_and_links_in_it_are_refused() {
    let engine = engine().await;
    let workspace = create(&engine, options().user("77").root("/opt/a/b")).await;
    let (text, _) = run(&workspace, &["stat", "-c", "%u %a %n", "/opt/a", "/opt/a/b"]).await;
    assert_eq!(text, "0 755 /opt/a\n77 755 /opt/a/b\n");
    workspace.close().await.unwrap();
    let whole = create(&engine, options().root("/")).await;
    whole.close().await.unwrap();
    // In every Linux image busybox' applets are links.
    let error = ContainerWorkspace::create(&engine, options().root("/bin/sh/x"), |_| {}).await.unwrap_err();
    let is_refused = matches!(error, Error::InvalidArgument { .. } | Error::NotADirectory { .. });
    assert!(is_refused, "{error}");
}

#[tokio::test]
async fn limits_are_set_and_reported() {
    let engine = engine().await;
    let limited = options().memory(64 << 20).cpus(0.5).pids(99).shm(1 << 20);
    let workspace = create(&engine, limited).await;
    let limits = &workspace.facts().details.limits;
    let value = |name: &str| {
        let limit = limits.iter().find(|limit| limit.limit == name).unwrap_or_else(|| panic!("{name}"));
        (limit.value.as_str(), limit.enforced_by.as_str())
    };
    assert_eq!(value("memory").0, "67108864 bytes");
    assert!(value("memory").1.starts_with("cgroup v"));
    assert_eq!((value("swap").0, value("cpus").0, value("pids").0), ("none", "0.5 cores", "99"));
    assert_eq!((value("nofile").0, value("core").0), ("16384", "0"));
    assert_eq!((value("shm").0, value("disk")), ("1048576 bytes", ("unlimited", "nothing")));
    let script =
        "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; ulimit -n";
    let (text, _) = run(&workspace, &["sh", "-c", script]).await;
    assert_eq!(text, "67108864\n16384\n");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_disk_limit_that_cannot_be_enforced_is_refused() {
    let engine = engine().await;
    let (options, label) = labelled("disk");
    match ContainerWorkspace::create(&engine, options.disk(1 << 30), |_| {}).await {
        Err(Error::Limit { limit, .. }) => assert_eq!(limit, "disk"),
        Err(error) => panic!("{error}"),
        // With quotas it is enforced, and then reported.
        Ok(workspace) => {
            let limits = &workspace.facts().details.limits;
            assert!(limits.iter().any(|limit| limit.limit == "disk" && limit.value == "1073741824 bytes"));
            workspace.close().await.unwrap();
        }
    }
    assert_eq!(count(&engine, &label).await, 0);
}

#[tokio::test]
async fn an_attached_container_is_left() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    let id = workspace.container_id().to_owned();
    let attached = ContainerWorkspace::attach(&engine, &id, AttachOptions::default()).await.unwrap();
    assert_eq!(attached.shared().root, "/workspace");
    assert_eq!(attached.facts().reference, workspace.facts().reference);
    attached.close().await.unwrap();
    let (_, code) = run(&workspace, &["true"]).await;
    assert_eq!(code, 0);
    workspace.close().await.unwrap();
    let error = ContainerWorkspace::attach(&engine, &id, AttachOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::NoContainer { .. }), "{error}");
}

#[tokio::test]
async fn the_reference_is_what_the_engine_says() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    let inspected = engine.docker().inspect_container(workspace.container_id(), None).await.unwrap();
    let manifest = inspected.image_manifest_descriptor.and_then(|manifest| manifest.digest);
    let reference = workspace.facts().reference.clone();
    assert_eq!(Some(&reference), manifest.as_ref().or(inspected.image.as_ref()));
    assert!(reference.starts_with("sha256:") && reference.len() == 71);
    workspace.close().await.unwrap();
    let again = create(&engine, options().require_digest(reference)).await;
    again.close().await.unwrap();
}

#[tokio::test]
async fn progress_and_timings_are_told() {
    let engine = engine().await;
    let stages = std::sync::Mutex::new(Vec::new());
    let told = |step| {
        if let Progress::Stage(stage) = step {
            stages.lock().unwrap().push(stage);
        }
    };
    let workspace = ContainerWorkspace::create(&engine, options(), told).await.unwrap();
    use super::Stage::{Creating, Preparing, Ready, Starting};
    assert_eq!(*stages.lock().unwrap(), [Creating, Preparing, Starting, Ready]);
    let timings = workspace.timings();
    assert!(timings.pull.is_zero() && !timings.create.is_zero() && !timings.start.is_zero());
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_missing_image_is_told_apart() {
    let engine = engine().await;
    let absent = ContainerOptions::new("agentworkspace/no-such-image:test").pull(super::PullPolicy::Never);
    let error = ContainerWorkspace::create(&engine, absent, |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::Image { kind: ImageErrorKind::NotPresent, .. }), "{error}");
    let other = options().platform("linux/s390x").pull(super::PullPolicy::Never);
    let error = ContainerWorkspace::create(&engine, other, |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::Image { kind: ImageErrorKind::WrongPlatform { .. }, .. }), "{error}");
}

/// What an operation in flight hears when `end` happens to its container.
async fn reason_of(end: impl AsyncFnOnce(&Engine, &str) -> Result<(), bollard::errors::Error>) -> GoneReason {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    end(&engine, workspace.container_id()).await.unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(10), workspace.shared().monitor.lost()).await;
    let reason = match lost.expect("told within 10 s") {
        Error::Gone { why } => why,
        error => panic!("{error}"),
    };
    workspace.close().await.unwrap();
    reason
}

#[tokio::test]
async fn a_command_in_flight_hears_why_its_container_is_gone() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    let running = workspace.exec(crate::Command::new("sleep").arg("60"));
    let kill = async {
        let busy = async || run(&workspace, &["ps"]).await.0.contains("sleep 60");
        eventually("the command runs", busy).await;
        removal::remove_container(&engine, workspace.container_id()).await.unwrap();
    };
    let (result, ()) = tokio::join!(running, kill);
    let error = result.unwrap_err();
    let is_told =
        matches!(error, Error::Gone { why: GoneReason::ContainerRemoved | GoneReason::ContainerKilled });
    assert!(is_told, "{error}");
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn a_killed_container_is_told() {
    let options = KillContainerOptionsBuilder::default().signal("KILL").build();
    let kill = async |engine: &Engine, id: &str| engine.docker().kill_container(id, Some(options)).await;
    assert_eq!(reason_of(kill).await, GoneReason::ContainerKilled);
}

#[tokio::test]
async fn a_stopped_container_is_told() {
    let options = StopContainerOptionsBuilder::default().t(1).build();
    let stop = async |engine: &Engine, id: &str| engine.docker().stop_container(id, Some(options)).await;
    assert_eq!(reason_of(stop).await, GoneReason::ContainerExited { exit_code: Some(137) });
}

#[tokio::test]
async fn a_removed_container_is_told() {
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    let remove = async |engine: &Engine, id: &str| engine.docker().remove_container(id, Some(options)).await;
    assert_eq!(reason_of(remove).await, GoneReason::ContainerRemoved);
}

#[tokio::test]
async fn a_paused_container_is_told() {
    let pause = async |engine: &Engine, id: &str| engine.docker().pause_container(id).await;
    assert_eq!(reason_of(pause).await, GoneReason::ContainerPaused);
}

#[tokio::test]
async fn a_restarted_container_is_told() {
    let restart = async |engine: &Engine, id: &str| engine.docker().restart_container(id, None).await;
    // The end is told at once, and what came of it as soon as it is known.
    let reason = reason_of(restart).await;
    let is_told = matches!(reason, GoneReason::ContainerRestarted | GoneReason::ContainerExited { .. });
    assert!(is_told, "{reason}");
}

#[tokio::test]
async fn our_own_pause_is_not_somebody_elses() {
    let engine = engine().await;
    let workspace = create(&engine, options()).await;
    let shared = workspace.shared();
    let gate = shared.pause_gate.write().await;
    shared.monitor.own_pauses().begin();
    engine.docker().pause_container(&shared.id).await.unwrap();
    // Longer than events take, and shorter than the grace.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!shared.monitor.is_paused());
    engine.docker().unpause_container(&shared.id).await.unwrap();
    shared.monitor.own_pauses().end();
    drop(gate);
    shared.monitor.when_running().await.unwrap();
    workspace.close().await.unwrap();
}

#[tokio::test]
async fn running_out_of_memory_and_exits_of_execs_are_noted() {
    let engine = engine().await;
    let workspace = create(&engine, options().memory(16 << 20)).await;
    let monitor = &workspace.shared().monitor;
    let before = Instant::now();
    let (_, code) = run(&workspace, &["sh", "-c", "exec tail /dev/zero"]).await;
    assert_eq!(code, 137);
    eventually("the engine tells of the oom", || async { monitor.oom_since(before) }).await;
    assert!(monitor.check_open().is_ok());
    workspace.close().await.unwrap();
}
