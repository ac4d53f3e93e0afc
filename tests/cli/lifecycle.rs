//! `create`, `list`, `inspect`, `diff`, `close` and `prune`.

use std::process::Command;

use crate::support::{Kept, image, local, run, unique, with_label};

fn listed(id: &str) -> Option<serde_json::Value> {
    let all = run(["list", "--json"]).expect(0).json();
    all.as_array().unwrap().iter().find(|container| container["id"] == id).cloned()
}

#[test]
fn a_kept_container_lives_until_it_is_closed() {
    let kept = Kept::create("life", &["--memory", "64m"]);
    let found = listed(&kept.id).expect("it is listed");
    assert_eq!(found["name"], kept.name.as_str());
    assert_eq!(found["kept"], true);
    assert!(run(["list"]).expect(0).text().contains(&kept.name));
    // Only what it would do: other owners may be looking at what they left on this engine.
    let due = |args: &[&str]| {
        let report = run(["prune", "--dry-run", "--json"].iter().chain(args)).expect(0).json();
        report["containers"].as_array().unwrap().contains(&kept.name.as_str().into())
    };
    assert!(!due(&[]), "prune removes no kept container");
    assert!(due(&["--kept"]), "its owner is dead");
    run(["close", &kept.target()]).expect(0);
    assert!(listed(&kept.id).is_none());
    let ran = run(["close", &kept.name]).expect(125);
    assert!(ran.stderr.contains("there is no container"), "{ran:?}");
}

#[test]
fn run_keeps_a_container_when_asked() {
    let name = unique("keep");
    run(["run", "--image", image(), "--keep", &name, "--", "sh", "-c", "echo 1 > f"]).expect(0);
    let target = format!("container:{name}");
    assert_eq!(run(["read", &target, "f"]).expect(0).text(), "1\n");
    run(["close", &target]).expect(0);
}

#[test]
fn a_taken_name_is_refused() {
    let kept = Kept::create("taken", &[]);
    let ran = run(["create", "--image", image(), "--name", &kept.name]).expect(2);
    assert!(ran.stderr.contains("taken"), "{ran:?}");
    assert_eq!(with_label(&format!("agentworkspace.owner.pid={}", std::process::id())), [""; 0]);
}

#[test]
fn what_changed_is_listed() {
    let kept = Kept::create("diff", &[]);
    let target = kept.target();
    run(["exec", &target, "--", "sh", "-c", "echo 1 > new; mkdir -p d; echo 2 > d/f"]).expect(0);
    let ran = run(["diff", &target]).expect(0);
    for line in ["A /workspace/new", "A /workspace/d/f"] {
        assert!(ran.text().lines().any(|found| found == line), "{line}: {ran:?}");
    }
    let json = run(["diff", "--json", &target]).expect(0).json();
    let added = serde_json::json!({"kind": "added", "path": "/workspace/new"});
    assert!(json.as_array().unwrap().contains(&added), "{json}");
}

#[test]
fn a_directory_has_no_diff() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(["diff", &local(dir.path())]).expect(1);
    assert!(ran.stderr.contains("not supported by this local workspace"), "{ran:?}");
}

#[test]
fn a_foreign_container_is_not_closed() {
    let name = unique("foreign");
    let docker = |args: &[&str]| Command::new("docker").args(args).output().expect("the docker command runs");
    docker(&["run", "-d", "--network", "none", "--name", &name, image(), "sleep", "1000"]);
    let ran = run(["close", &format!("container:{name}")]);
    let still_there = docker(&["inspect", &name]).status.success();
    docker(&["rm", "-fv", &name]);
    let ran = ran.expect(2);
    assert!(still_there && ran.stderr.contains("was not made by agentworkspace"), "{ran:?}");
}

#[test]
fn prune_says_what_it_would_remove() {
    image();
    assert!(run(["prune", "--dry-run", "--json"]).expect(0).json()["containers"].is_array());
}
