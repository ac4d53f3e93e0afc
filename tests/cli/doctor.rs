//! `doctor` and what is said without an engine.

use crate::support::{command, finish, image, run};

#[test]
fn without_an_engine_it_says_what_to_do() {
    let mut doctor = command(["doctor"]);
    doctor.env("DOCKER_HOST", "unix:///nonexistent");
    let ran = finish(doctor, b"").expect(1);
    let line = ran.text().lines().position(|line| line.starts_with("FAIL  engine")).expect("a failing line");
    let mend = ran.text().lines().nth(line + 1).unwrap();
    assert!(mend.contains("make engine") && mend.contains("DOCKER_HOST"), "{ran:?}");
    assert!(ran.text().contains("ok    local"), "{ran:?}");
}

#[test]
fn an_address_that_is_no_engine_fails() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "").unwrap();
    let mut doctor = command(["doctor", "--json"]);
    doctor.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let report = finish(doctor, b"").expect(1).json();
    assert_eq!(report["verdict"], "fail");
}

#[test]
fn with_an_engine_every_check_is_shown() {
    image();
    let report = run(["doctor", "--json"]).expect(0).json();
    let names: Vec<_> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in [
        "machine",
        "local",
        "engine",
        "api",
        "platform",
        "storage",
        "limits",
        "init",
        "security",
        "leftovers",
    ] {
        assert!(names.contains(&name), "{name}: {report}");
    }
}

#[test]
fn without_an_engine_a_container_is_refused_with_a_hint() {
    for args in [&["run", "--image", "x", "--", "true"][..], &["ls", "container:x"], &["list"]] {
        let mut without = command(args);
        without.env("DOCKER_HOST", "unix:///nonexistent");
        let ran = finish(without, b"").expect(125);
        assert!(ran.stderr.contains("no container engine answers at `unix:///nonexistent`"), "{ran:?}");
        assert!(ran.stderr.contains("hint: start an engine"), "{ran:?}");
    }
}

#[test]
fn completions_name_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(["completions", shell]).expect(0);
        assert!(ran.text().contains("collect"), "{shell}");
    }
}
