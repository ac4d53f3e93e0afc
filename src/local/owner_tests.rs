//! What becomes of commands when this process, or their supervisor, is killed.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;

use super::test_support::{Place, needs_root, output, running};
use crate::command::Command;
use crate::error::{Error, GoneReason};
use crate::eventually::eventually;

/// Tells the re-executed test binary that it is the owner to be killed, and what its commands are
/// to sleep for.
const MARKER: &str = "AGENTWORKSPACE_TEST_OWNER_MARKER";

/// Runs in a process of its own, started by the test below.
#[tokio::test]
#[ignore = "it is the victim of another test"]
async fn an_owner_to_be_killed() {
    let marker = std::env::var(MARKER).expect("another test starts this one and says the marker");
    let place = Place::new();
    let script = format!(
        "sleep {marker} & setsid sleep {marker} & (env -i setsid sh -c 'sleep {marker} & :' &) ; sleep {marker}"
    );
    let _process = place.start(Command::shell(&script)).await.unwrap();
    let leftovers = format!("sleep {marker} >/dev/null 2>&1 &");
    place.exec(Command::shell(leftovers)).await.unwrap();
    place.exec(Command::shell(&script)).await.unwrap();
}

#[tokio::test]
async fn killing_the_owner_kills_everything_it_ran() {
    let place = Place::new();
    let marker = place.marker(0);
    let mut owner: Child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "local::owner_tests::an_owner_to_be_killed", "--ignored", "--nocapture"])
        .env(MARKER, &marker)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(Duration::from_secs(20), || async { running(&marker) }, |count| *count == 9).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_loses_everything() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("sleep {marker} & kill -KILL $PPID; sleep {marker}");
    let result = place.exec(Command::shell(&script)).await;
    assert!(matches!(result, Err(Error::Gone { why: GoneReason::SupervisorKilled })), "{result:?}");
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
    // It may be killed before or after the start is known to have worked.
    let end = match place.start(Command::shell(&script)).await {
        Ok(process) => process.wait().await,
        Err(error) => Err(error),
    };
    assert!(matches!(end, Err(Error::Gone { why: GoneReason::SupervisorKilled })), "{end:?}");
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_supervisor_takes_no_other_signal() {
    let place = Place::new();
    let script = "for s in HUP INT TERM USR1 CHLD 33 34 64; do kill -$s $PPID; done; echo alive";
    let result = place.exec(Command::shell(script)).await.unwrap();
    assert_eq!(output(&result.stdout), "alive\n", "{result:?}");
}

#[tokio::test]
async fn a_supervisor_keeps_neither_memory_nor_descriptors_of_its_owner() {
    let place = Place::new();
    let ballast = vec![1u8; 64 << 20];
    let mut process = place.start(Command::shell("echo $PPID; cat")).await.unwrap();
    let mut bytes = Vec::new();
    while bytes.last() != Some(&b'\n') {
        bytes.push(process.stdout().unwrap().read_u8().await.unwrap());
    }
    let supervisor = String::from_utf8(bytes).unwrap().trim_end().to_owned();
    let anonymous_kib = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    };
    eventually(Duration::from_secs(5), || async { anonymous_kib() }, |count| *count < 4096).await;
    println!("a supervisor holds {} KiB of its own, its owner over {}", anonymous_kib(), ballast.len() >> 10);
    if let Ok(descriptors) = std::fs::read_dir(format!("/proc/{supervisor}/fd")) {
        // The socket and the descriptor of its signals.
        assert_eq!(descriptors.count(), 2);
    }
    assert_eq!(process.close().await.unwrap(), crate::output::End::Exited(0));
}

#[tokio::test]
async fn a_stopped_supervisor_is_woken_to_kill() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("kill -STOP $PPID; sleep {marker}");
    let begin = Instant::now();
    let result = place.exec(Command::shell(script).timeout(Duration::from_millis(300))).await.unwrap();
    assert!(result.timed_out && begin.elapsed() < Duration::from_secs(3), "{result:?}");
    assert_eq!(running(&marker), 0);
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_again_and_again_kills_all_the_same() {
    let place = Place::new();
    let marker = place.marker(0);
    // Two of them, in sessions of their own, so that no signal of a shell ends both.
    let stopper = "while :; do kill -STOP $0; done";
    let script = format!(
        "setsid sh -c '{stopper}' $PPID & setsid sh -c '{stopper}' $PPID & setsid sleep {marker} & sleep {marker}"
    );
    let begin = Instant::now();
    let command = Command::shell(&script).timeout(Duration::from_millis(300));
    let result = place.exec(command).await.unwrap();
    assert!(result.timed_out && begin.elapsed() < Duration::from_secs(5), "{result:?}");
    assert_eq!(running(&marker), 0);
    let process = place.start(Command::shell(&script)).await.unwrap();
    eventually(Duration::from_secs(5), || async { running(&marker) }, |count| *count == 2).await;
    place.processes.close().await.unwrap();
    assert_eq!(running(&marker), 0);
    drop(process);
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_command_that_forks_all_the_time_is_ended() {
    let place = Place::new();
    // Each generation starts the next in a session of its own and exits.
    let marker = place.marker(0);
    place.script("hop", &format!("#!/bin/sh\nsleep {marker} &\nsetsid ./hop &\n"));
    let command = Command::shell("./hop; sleep 60").timeout(Duration::from_millis(500));
    let result = place.exec(command).await.unwrap();
    assert!(result.timed_out, "{result:?}");
    assert_eq!(running(&marker), 0);
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    // The limit that protects the machine counts per user, and so wants one of its own.
    needs_root();
    assert!(Path::new("/bin/bash").exists(), "this test needs /bin/bash");
    let place = Place::new();
    place.open_to_all();
    let marker = place.marker(0);
    let bomb = format!("ulimit -u 300; bomb() {{ bomb | bomb & }}; bomb; exec sleep {marker}");
    let command = Command::new("/bin/bash").args(["-c", &bomb]).user("54321:54321");
    let result = place.exec(command.timeout(Duration::from_millis(500)).output_limit(1000)).await.unwrap();
    assert!(result.timed_out, "{result:?}");
    assert_eq!(running(&marker), 0);
    place.assert_no_children().await;
    assert_eq!(owned_by(54321), 0);
}

/// How many processes a user has.
fn owned_by(uid: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(std::result::Result::ok);
    let named = processes.filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit());
    named.filter(|process| process.metadata().is_ok_and(|metadata| metadata.uid() == uid)).count()
}
