//! Signals end the command, remove what was made, and show in the status.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::support::{command, containers_of, image, wait_for, wait_for_exit};

/// How long everything may take that should take no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the command with every signal at its default, whatever started these tests.
fn spawn(args: &[&str]) -> Child {
    let inner = command(args);
    let mut outer = Command::new("env");
    outer.arg("--default-signal=INT,TERM,HUP").arg(inner.get_program()).args(inner.get_args());
    outer
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts")
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the signal is sent");
}

/// The first line that a child prints.
fn first_line(child: &mut Child) -> String {
    use std::io::BufRead as _;
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn exists(pid: &str) -> bool {
    test_kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap()).is_ok()
}

#[test]
fn a_local_command_and_its_directory_go() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let script = "sleep 1000 & echo $! $(pwd); wait";
        let mut child = spawn(&["run", "-q", "--", "sh", "-c", script]);
        let line = first_line(&mut child);
        let (pid, dir) = line.split_once(' ').unwrap();
        assert!(exists(pid));
        send(&child, signal);
        assert_eq!(wait_for_exit(&mut child, PATIENCE).code(), Some(status));
        assert!(!exists(pid), "{line}");
        assert!(!PathBuf::from(dir).exists(), "{line}");
    }
}

#[test]
fn a_command_that_ignores_signals_goes_as_well() {
    let mut child = spawn(&["run", "-q", "--", "sh", "-c", "trap '' INT TERM HUP; echo $$; sleep 1000"]);
    let pid = first_line(&mut child);
    send(&child, Signal::TERM);
    assert_eq!(wait_for_exit(&mut child, PATIENCE).code(), Some(143));
    assert!(!exists(&pid));
}

#[test]
fn a_container_goes() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = spawn(&["run", "-q", "--image", image(), "--", "sh", "-c", "echo up; sleep 1000"]);
        assert_eq!(first_line(&mut child), "up");
        assert_eq!(containers_of(child.id()).len(), 1);
        send(&child, signal);
        assert_eq!(wait_for_exit(&mut child, PATIENCE).code(), Some(status));
        let pid = child.id();
        wait_for("no container is left", Duration::from_secs(5), || containers_of(pid).is_empty());
    }
}

#[test]
fn a_container_that_is_just_being_made_goes() {
    let mut child = spawn(&["run", "-q", "--image", image(), "--", "sleep", "1000"]);
    let pid = child.id();
    wait_for("the container is there", PATIENCE, || !containers_of(pid).is_empty());
    send(&child, Signal::TERM);
    assert_eq!(wait_for_exit(&mut child, PATIENCE).code(), Some(143));
    wait_for("no container is left", Duration::from_secs(5), || containers_of(pid).is_empty());
}

#[test]
fn a_hang_up_that_is_ignored_stays_ignored() {
    let script = "pwd; while [ ! -e go ]; do sleep 0.05; done; exit 5";
    let inner = command(["run", "-q", "--timeout", "20s", "--", "sh", "-c", script]);
    let mut outer = Command::new("env");
    outer.arg("--ignore-signal=HUP").arg(inner.get_program()).args(inner.get_args());
    let mut child = outer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let dir = PathBuf::from(first_line(&mut child));
    send(&child, Signal::HUP);
    std::fs::write(dir.join("go"), "").unwrap();
    assert_eq!(wait_for_exit(&mut child, PATIENCE).code(), Some(5));
}
