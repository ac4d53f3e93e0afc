//! Started processes in real containers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::exec::exec;
use super::process::start;
use super::shared::Shared;
use super::test_container::{BUSYBOX, DEBIAN, TestContainer, docker};
use crate::error::{Error, SpawnErrorKind};
use crate::output::{End, output_channel};
use crate::signal::Signal;
use crate::{CancellationToken, Command, Process, TtySize};

async fn shell(shared: &Arc<Shared>, script: &str) -> Process {
    start(shared, Command::shell(script)).await.unwrap()
}

#[tokio::test]
async fn a_process_converses() {
    for image in [BUSYBOX, DEBIAN] {
        let container = TestContainer::run(image, &[]);
        let shared = container.attach("/tmp").await;
        let (sink, mut errors) = output_channel();
        let mut process =
            start(&shared, Command::shell("echo to-err >&2; exec cat").stream(sink)).await.unwrap();
        let mut stdin = process.take_stdin().unwrap();
        let mut lines = BufReader::new(process.take_stdout().unwrap()).lines();
        for n in 0..20 {
            stdin.write_all(format!("line {n}\n").as_bytes()).await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), format!("line {n}"));
        }
        drop(stdin);
        assert_eq!(lines.next_line().await.unwrap(), None);
        let (first, second) = tokio::join!(process.wait(), process.wait());
        assert_eq!((first.unwrap(), second.unwrap()), (End::Exited(0), End::Exited(0)));
        assert_eq!(errors.recv().await.unwrap().bytes().as_ref(), b"to-err\n");
        assert!(matches!(process.signal(Signal::TERM).await, Err(Error::ProcessDone)));
        assert_eq!(process.close().await.unwrap(), End::Exited(0));
    }
}

#[tokio::test]
async fn a_process_closes_politely_or_not() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    assert_eq!(shell(&shared, "cat; exit 3").await.close().await.unwrap(), End::Exited(3));
    let polite = shell(&shared, "trap 'exit 5' TERM; while :; do sleep 0.1; done").await;
    let began = Instant::now();
    assert_eq!(polite.close().await.unwrap(), End::Exited(5));
    assert!(began.elapsed() > Duration::from_secs(2));
    let stubborn = shell(&shared, "trap '' TERM; setsid sleep 1000 & while :; do sleep 0.1; done").await;
    assert_eq!(stubborn.close().await.unwrap(), End::Signaled(Signal::KILL));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn what_a_process_leaves_behind_goes_with_it() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let process = shell(&shared, "setsid sleep 1000 >/dev/null 2>&1 & exit 4").await;
    assert_eq!(process.wait().await.unwrap(), End::Exited(4));
    assert_eq!(container.processes(), [""; 0]);
    let dropped = shell(&shared, "setsid sleep 1000 & sleep 1001").await;
    drop(dropped);
    let deadline = Instant::now() + Duration::from_secs(5);
    while !container.processes().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", container.processes());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn tokens_timeouts_and_signals_end_a_process() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let token = CancellationToken::new();
    let process = start(&shared, Command::from_args(["sleep", "1000"]).cancel(token.clone())).await.unwrap();
    token.cancel();
    assert_eq!(process.wait().await.unwrap(), End::Cancelled);
    let process =
        start(&shared, Command::from_args(["sleep", "1000"]).timeout(Duration::from_secs(1))).await.unwrap();
    assert_eq!(process.wait().await.unwrap(), End::TimedOut);
    let idle = Command::from_args(["sleep", "1000"]).idle_timeout(Duration::from_secs(1));
    assert_eq!(start(&shared, idle).await.unwrap().wait().await.unwrap(), End::IdleTimedOut);
    let process = shell(&shared, "sleep 1000").await;
    process.signal(Signal::TERM).await.unwrap();
    assert_eq!(process.wait().await.unwrap(), End::Signaled(Signal::TERM));
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn output_that_nobody_reads_does_not_hide_the_exit() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let mut process = shell(&shared, "head -c 150000 /dev/zero; exit 6").await;
    let end = tokio::time::timeout(Duration::from_secs(5), process.wait()).await.unwrap().unwrap();
    assert_eq!(end, End::Exited(6));
    let mut data = Vec::new();
    process.stdout().unwrap().read_to_end(&mut data).await.unwrap();
    assert_eq!(data.len(), 150_000);
}

#[tokio::test]
async fn what_cannot_be_started_fails_at_start() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    for command in [
        Command::new("no-such"),
        Command::new("no-such").env("a.b", "c"),
        Command::new("no-such").tty(TtySize::new(24, 80)),
    ] {
        let error = start(&shared, command).await.unwrap_err();
        assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::NotFound, .. }), "{error:?}");
    }
    assert!(start(&shared, Command::new("pwd").dir("../..")).await.unwrap_err().is_outside());
}

#[tokio::test]
async fn a_terminal_passes_every_byte_and_is_resized() {
    let container = TestContainer::run(DEBIAN, &[]);
    let shared = container.attach("/tmp").await;
    let script = "stty raw -echo; printf ready; head -c 12 | od -An -tx1; printf '\\001\\002abc'; stty size; stty sane; read x; stty size";
    let command = Command::shell(script).tty(TtySize::new(31, 97));
    let mut process = start(&shared, command).await.unwrap();
    let mut stdin = process.take_stdin().unwrap();
    let mut stdout = process.take_stdout().unwrap();
    let mut seen = Vec::new();
    let mut until = async |seen: &mut Vec<u8>, wanted: &[u8]| {
        let mut buffer = [0; 1024];
        while !seen.windows(wanted.len()).any(|window| window == wanted) {
            let read = tokio::time::timeout(Duration::from_secs(5), stdout.read(&mut buffer));
            let count = read.await.unwrap_or_else(|_| panic!("{}", seen.escape_ascii())).unwrap();
            assert!(count > 0, "{}", seen.escape_ascii());
            seen.extend(&buffer[..count]);
        }
    };
    until(&mut seen, b"ready").await;
    stdin.write_all(b"\x01\x02\x10\x11\x00\x00\x00\x04abcd").await.unwrap();
    until(&mut seen, b"01 02 10 11 00 00 00 04 61 62 63 64").await;
    until(&mut seen, b"\x01\x02abc31 97").await;
    process.resize(TtySize::new(40, 100)).await.unwrap();
    stdin.write_all(b"\n").await.unwrap();
    until(&mut seen, b"40 100").await;
    assert_eq!(process.wait().await.unwrap(), End::Exited(0));
    let ended = start(&shared, Command::new("cat").tty(TtySize::new(24, 80))).await.unwrap();
    assert_eq!(ended.close().await.unwrap(), End::Exited(0));
    assert!(matches!(process.resize(TtySize::new(1, 1)).await, Err(Error::ProcessDone)));
}

#[tokio::test]
async fn a_process_whose_container_dies_is_gone() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let process = shell(&shared, "sleep 1000").await;
    docker(&["kill", &container.id]);
    let error = process.wait().await.unwrap_err();
    assert!(matches!(error, Error::Gone { .. }), "{error:?}");
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_timeout() {
    let container = TestContainer::run(BUSYBOX, &["--pids-limit", "64"]);
    let shared = container.attach("/tmp").await;
    // A shell that can fork no more exits, so the first one stays out of it.
    let bomb = "b() { b | b & b | b & while :; do :; done; }; b & while :; do :; done";
    let begun = Instant::now();
    let output = exec(&shared, Command::shell(bomb).timeout(Duration::from_secs(2))).await.unwrap();
    assert_eq!(output.end, End::TimedOut, "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let left = container.processes();
    assert!(left.is_empty(), "{left:?}");
}
