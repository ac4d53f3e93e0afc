//! `run` and `exec` over containers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentworkspace::container::{ContainerOptions, ContainerWorkspace, Engine};

use crate::support::{IMAGE, Kept, image, remove_image, run, run_with_input, wait_for, with_label};

#[test]
fn a_fresh_container_runs_and_goes() {
    let json = run(["run", "--json", "--image", image(), "--", "sh", "-c", "pwd; id -u"]).expect(0).json();
    assert_eq!(json["descriptor"]["kind"], "container");
    let digest = json["descriptor"]["ref"].as_str().unwrap();
    assert!(digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64), "{digest}");
    assert_eq!(json["descriptor"]["root"], "/workspace");
    assert!(json["stdout"].as_str().unwrap().starts_with("/workspace\n"));
    for step in ["pull", "create", "start", "exec"] {
        assert!(json["durations_ms"][step].is_number(), "{step}: {json}");
    }
    assert_eq!(json["details"]["image"]["reference"], image());
    let id = json["details"]["container"]["id"].as_str().unwrap();
    let ran = run(["inspect", &format!("container:{id}")]).expect(125);
    assert!(ran.stderr.contains("there is no container"), "{ran:?}");
}

#[test]
fn the_way_into_a_container_is_chosen_and_told() {
    for (asked, access, reason) in
        [("auto", "helper", None), ("helper", "helper", None), ("engine", "engine", Some("it was asked for"))]
    {
        let ran = run(["run", "--json", "--access", asked, "--image", image(), "--", "true"]);
        let json = ran.expect(0).json();
        let details = &json["details"];
        assert_eq!(details["access"], access, "{asked}");
        assert_eq!(details["access_reason"].as_str(), reason, "{asked}");
    }
}

#[test]
fn the_status_tells_how_it_ended() {
    let cases: [(&[&str], &[&str], i32); 8] = [
        (&[], &["true"], 0),
        (&[], &["sh", "-c", "exit 7"], 7),
        (&[], &["sh", "-c", "kill -TERM $$"], 143),
        (&["--timeout", "1s"], &["sleep", "60"], 124),
        (&["--dir", "missing"], &["true"], 125),
        (&["--user", "nobody-known"], &["true"], 2),
        (&[], &["/etc/passwd"], 126),
        (&[], &["no-such-program"], 127),
    ];
    for (args, command, status) in cases {
        let ran = run(["run", "--image", image()].iter().chain(args).chain(&["--"]).chain(command));
        assert_eq!(ran.status, Some(status), "{args:?} {command:?}: {ran:?}");
    }
}

#[test]
fn a_command_that_uses_too_much_memory_is_told() {
    let script = "a=x; while :; do a=$a$a; done";
    let args = ["run", "--image", image(), "--memory", "32m", "--timeout", "60s", "--", "sh", "-c", script];
    let ran = run(args).expect(137);
    assert!(ran.stderr.contains("memory ran out"), "{ran:?}");
}

#[test]
fn limits_are_reported() {
    let args = [
        "run",
        "--json",
        "--image",
        image(),
        "--memory",
        "64m",
        "--cpus",
        "0.5",
        "--pids",
        "50",
        "--",
        "true",
    ];
    let json = run(args).expect(0).json();
    let limits = json["details"]["limits"].as_array().unwrap();
    for name in ["memory", "cpus", "pids"] {
        assert!(limits.iter().any(|limit| limit["limit"] == name), "{name}: {json}");
    }
}

#[test]
fn an_image_that_is_not_there_is_not_a_failed_command() {
    let args = ["run", "--json", "--pull", "never", "--image", "agentworkspace/missing:test", "--", "true"];
    image();
    let ran = run(args).expect(125);
    assert_eq!(ran.json()["error"]["code"], "image");
    assert!(ran.stderr.contains("hint: pull or build the image first"), "{ran:?}");
}

#[test]
fn exec_runs_in_a_container_and_leaves_it() {
    let kept = Kept::create("exec", &[]);
    let target = kept.target();
    assert_eq!(run(["exec", &target, "--", "pwd"]).expect(0).text(), "/workspace\n");
    assert_eq!(
        run_with_input(["exec", &target, "--stdin", "--", "cat"], b"in\xff").expect(0).stdout,
        b"in\xff"
    );
    let ran = run(["exec", &target, "-e", "B=1 2", "--", "sh", "-c", "echo $B; exit 3"]).expect(3);
    assert_eq!(ran.text(), "1 2\n");
    run(["exec", &target, "--timeout", "1s", "--", "sleep", "60"]).expect(124);
    let inspected = run(["inspect", &target]).expect(0).json();
    assert_eq!(inspected["details"]["container"]["id"], kept.id.as_str());
}

#[test]
fn a_kept_container_keeps_the_variables_it_was_made_with() {
    let kept = Kept::create("env", &["-e", "A=1 2", "-e", "B=x=y"]);
    let script = "echo \"$A|$B|$C\"";
    let args = ["exec", &kept.target(), "-e", "C=3", "--", "sh", "-c", script];
    assert_eq!(run(args).expect(0).text(), "1 2|x=y|3\n");
}

#[test]
fn a_task_that_panics_takes_its_container_along() {
    image();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = Arc::new(Mutex::new(String::new()));
    let task = runtime.spawn({
        let id = id.clone();
        async move {
            let engine = Engine::connect().await.unwrap();
            let workspace =
                ContainerWorkspace::create(&engine, ContainerOptions::new(IMAGE), |_| ()).await.unwrap();
            *id.lock().unwrap() = workspace.container_id().to_owned();
            panic!("on purpose");
        }
    });
    assert!(runtime.block_on(task).unwrap_err().is_panic());
    let id = id.lock().unwrap().clone();
    assert_eq!(id.len(), 64, "it panicked once the container was there");
    let ours = format!("agentworkspace.owner.pid={}", std::process::id());
    wait_for("the container is gone", Duration::from_secs(5), || !with_label(&ours).contains(&id));
}

#[test]
fn a_tree_goes_through_a_fresh_container() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::write(dir.path().join("in/f"), "1").unwrap();
    let copy = format!("{}:.", dir.path().join("in").display());
    let collect = format!("out:{}", dir.path().join("out").display());
    let script = "mkdir out && cp f out/g";
    let args = ["run", "--image", image(), "--copy", &copy, "--collect", &collect, "--", "sh", "-c", script];
    run(args).expect(0);
    assert_eq!(std::fs::read_to_string(dir.path().join("out/g")).unwrap(), "1");
}

#[test]
fn an_image_is_built_from_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Dockerfile"), format!("FROM {}\nCOPY f /built\n", image())).unwrap();
    std::fs::write(dir.path().join("f"), "1").unwrap();
    let context = dir.path().to_str().unwrap();
    let json = run(["run", "--json", "--build", context, "--", "cat", "/built"]).expect(0).json();
    let id = json["details"]["image"]["image_id"].as_str().unwrap();
    remove_image(id);
    assert_eq!(json["stdout"], "1");
    assert!(json["durations_ms"]["build"].is_number(), "{json}");
}
