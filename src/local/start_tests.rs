//! What `start` promises.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::test_support::{Place, running};
use crate::CancellationToken;
use crate::command::{Command, TtySize};
use crate::error::{Error, SpawnErrorKind};
use crate::eventually::eventually;
use crate::output::{End, output_channel};
use crate::process::Process;
use crate::signal::Signal;

/// The rest of its standard output, as text.
async fn rest(process: &mut Process) -> String {
    let mut bytes = Vec::new();
    process.stdout().unwrap().read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The next line of its standard output.
async fn line(process: &mut Process) -> String {
    let mut line = String::new();
    loop {
        match char::from(process.stdout().unwrap().read_u8().await.unwrap()) {
            '\n' => return line,
            next => line.push(next),
        }
    }
}

/// Waits until a line that contains `text` was printed.
async fn expect(process: &mut Process, text: &str) {
    let mut seen = String::new();
    let mut byte = [0];
    while !seen.contains(text) {
        let read = process.stdout().unwrap().read(&mut byte).await.unwrap();
        assert!(read > 0, "`{text}` is not in {seen:?}");
        seen.push(char::from(byte[0]));
    }
}

#[tokio::test]
async fn a_conversation_ends_with_the_input() {
    let place = Place::new();
    let mut process = place.start(Command::new("cat")).await.unwrap();
    let mut stdin = process.take_stdin().unwrap();
    let mut lines = BufReader::new(process.take_stdout().unwrap()).lines();
    for word in ["one", "two", "three"] {
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(word));
    }
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(process.wait().await.unwrap(), End::Exited(0));
    assert!(matches!(process.signal(Signal::TERM).await, Err(Error::ProcessDone)));
}

#[tokio::test]
async fn standard_error_is_complete_when_waiting_ends() {
    let place = Place::new();
    let (sink, mut receiver) = output_channel();
    let command = Command::shell("cd sub; echo $A >&2; exit 3").stream(sink);
    let process = place.start(command).await.unwrap();
    let (first, second) = tokio::join!(process.wait(), process.wait());
    assert_eq!((first.unwrap(), second.unwrap()), (End::Exited(3), End::Exited(3)));
    let mut text = Vec::new();
    while let Some(chunk) = receiver.recv().await {
        text.extend_from_slice(chunk.bytes());
    }
    assert_eq!(text, b"workspace\n");
}

#[tokio::test]
async fn a_reader_of_standard_error_that_fails_or_sleeps_blocks_nobody() {
    let place = Place::new();
    let flood = "head -c 1048576 /dev/zero >&2; echo done";
    let (sink, receiver) = output_channel();
    drop(receiver);
    let mut process = place.start(Command::shell(flood).stream(sink)).await.unwrap();
    assert_eq!(rest(&mut process).await, "done\n");
    assert_eq!(process.wait().await.unwrap(), End::Exited(0));
    let (sink, receiver) = output_channel();
    let mut process = place.start(Command::shell("echo $$; exec yes >&2").stream(sink)).await.unwrap();
    let pid = line(&mut process).await;
    // It sleeps only in front of a full pipe.
    let stat = || async { std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap() };
    eventually(Duration::from_secs(10), stat, |stat| stat.contains("(yes) S")).await;
    process.signal(Signal::KILL).await.unwrap();
    let begin = Instant::now();
    assert_eq!(process.wait().await.unwrap(), End::Signaled(Signal::KILL));
    assert!(begin.elapsed() < Duration::from_secs(4));
    drop(receiver);
}

#[tokio::test]
async fn what_is_left_running_goes_with_the_process() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("setsid sleep {marker} & sleep {marker} & echo up");
    let mut process = place.start(Command::shell(script)).await.unwrap();
    // The output ends although the children have it open.
    assert_eq!(rest(&mut process).await, "up\n");
    assert_eq!(process.wait().await.unwrap(), End::Exited(0));
    assert_eq!(running(&marker), 0);
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_polite_process_is_closed_by_the_end_of_its_input() {
    let place = Place::new();
    let mut process = place.start(Command::shell("cat; exit 4")).await.unwrap();
    let _stdin = process.take_stdin().unwrap();
    let begin = Instant::now();
    assert_eq!(process.close().await.unwrap(), End::Exited(4));
    assert!(begin.elapsed() < Duration::from_secs(1));
    assert_eq!(process.close().await.unwrap(), End::Exited(4));
}

#[tokio::test]
async fn a_stubborn_process_is_closed_in_the_end_even_if_nobody_waits() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("trap '' TERM; echo up; sleep {marker} & while :; do wait; sleep 0.1; done");
    let mut process = place.start(Command::shell(script)).await.unwrap();
    expect(&mut process, "up\n").await;
    let begin = Instant::now();
    // Only the first step is awaited; the others go on.
    assert!(tokio::time::timeout(Duration::from_millis(100), process.close()).await.is_err());
    assert_eq!(process.wait().await.unwrap(), End::Signaled(Signal::KILL));
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(3900) && took < Duration::from_secs(6), "{took:?}");
    assert_eq!(running(&marker), 0);
}

#[tokio::test]
async fn a_signal_reaches_grandchildren() {
    let place = Place::new();
    let child = "trap 'echo child >>mark; exit' USR1; echo up >>ready; while :; do sleep 0.05; done";
    let script = format!(
        "trap 'echo parent >>mark' USR1; setsid sh -c \"{child}\" & sh -c \"sh -c \\\"{child}\\\"; :\" & \
         echo up; while :; do sleep 0.05; done"
    );
    let mut process = place.start(Command::shell(script)).await.unwrap();
    expect(&mut process, "up\n").await;
    let read = |file| {
        let path = place.path().join(file);
        async move { std::fs::read_to_string(path).unwrap_or_default() }
    };
    eventually(Duration::from_secs(5), || read("ready"), |ready| ready == "up\nup\n").await;
    process.signal(Signal::USR1).await.unwrap();
    eventually(
        Duration::from_secs(3),
        || read("mark"),
        |marks| marks.matches("child").count() == 2 && marks.contains("parent"),
    )
    .await;
    process.signal(Signal::KILL).await.unwrap();
    assert_eq!(process.wait().await.unwrap(), End::Signaled(Signal::KILL));
}

#[tokio::test]
async fn cancellation_and_timeouts_end_it_in_their_own_ways() {
    let place = Place::new();
    let token = CancellationToken::new();
    let cancelled = place.start(Command::new("sleep").arg("60").cancel(token.clone())).await.unwrap();
    let late = Command::new("sleep").arg("60").timeout(Duration::from_millis(300));
    let late = place.start(late).await.unwrap();
    let silent = Command::shell("echo a; sleep 60").idle_timeout(Duration::from_millis(300));
    let mut silent = place.start(silent).await.unwrap();
    assert_eq!(rest(&mut silent).await, "a\n");
    token.cancel();
    assert_eq!(cancelled.wait().await.unwrap(), End::Cancelled);
    assert_eq!(late.wait().await.unwrap(), End::TimedOut);
    assert_eq!(silent.wait().await.unwrap(), End::IdleTimedOut);
    assert!(matches!(cancelled.signal(Signal::TERM).await, Err(Error::ProcessDone)));
}

#[tokio::test]
async fn unread_output_is_not_silence() {
    let place = Place::new();
    let command = Command::shell("echo a; sleep 60").idle_timeout(Duration::from_millis(200));
    let mut process = place.start(command).await.unwrap();
    let early = tokio::time::timeout(Duration::from_secs(1), process.wait()).await;
    assert!(early.is_err(), "{early:?}");
    expect(&mut process, "a\n").await;
    assert_eq!(process.wait().await.unwrap(), End::IdleTimedOut);
}

#[tokio::test]
async fn dropping_a_process_kills_it_and_what_it_started() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("setsid sleep {marker} & sleep {marker}");
    let process = place.start(Command::shell(script)).await.unwrap();
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 2).await;
    drop(process);
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
    place.assert_no_children().await;
}

#[test]
fn a_drop_outside_of_a_runtime_kills_as_well() {
    let place = Place::new();
    let marker = place.marker(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let process = runtime.block_on(place.start(Command::new("sleep").arg(&marker))).unwrap();
    let sleeping = || async { running(&marker) };
    runtime.block_on(eventually(Duration::from_secs(3), sleeping, |count| *count == 1));
    drop(process);
    runtime.block_on(eventually(Duration::from_secs(3), sleeping, |count| *count == 0));
}

#[tokio::test]
async fn closing_the_workspace_ends_every_process() {
    let place = Place::new();
    let marker = place.marker(0);
    let polite = place.start(Command::new("sleep").arg(&marker)).await.unwrap();
    let stubborn = Command::shell(format!("trap '' TERM; sleep {marker} & echo up; wait; sleep 60"));
    let mut stubborn = place.start(stubborn).await.unwrap();
    expect(&mut stubborn, "up\n").await;
    place.processes.close().await.unwrap();
    assert_eq!(running(&marker), 0);
    assert_eq!(polite.wait().await.unwrap(), End::Signaled(Signal::TERM));
    assert_eq!(stubborn.wait().await.unwrap(), End::Signaled(Signal::KILL));
    assert!(matches!(place.start(Command::new("true")).await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_terminal_has_a_size_that_can_be_changed() {
    let place = Place::new();
    let script = "trap 'stty size' WINCH; stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; \
                  echo 1>/dev/tty ctty; while read line; do echo \"got $line\"; done; echo over";
    let command = Command::shell(script).tty(TtySize::new(7, 33));
    let mut process = place.start(command).await.unwrap();
    expect(&mut process, "7 33\r\n").await;
    expect(&mut process, "tty\r\n").await;
    expect(&mut process, "ctty\r\n").await;
    process.resize(TtySize::new(9, 44)).await.unwrap();
    process.stdin().unwrap().write_all(b"x\n").await.unwrap();
    expect(&mut process, "9 44\r\n").await;
    drop(process.take_stdin());
    assert!(rest(&mut process).await.ends_with("over\r\n"));
    assert_eq!(process.wait().await.unwrap(), End::Exited(0));
    assert!(matches!(process.resize(TtySize::new(1, 1)).await, Err(Error::ProcessDone)));
    let plain = place.start(Command::new("cat")).await.unwrap();
    assert!(matches!(plain.resize(TtySize::new(1, 1)).await, Err(Error::InvalidArgument { .. })));
}

#[tokio::test]
async fn eight_processes_talk_at_once() {
    let place = Place::new();
    let talks = (0..8).map(|index| {
        let place = &place;
        async move {
            let mut process = place.start(Command::new("cat")).await.unwrap();
            let text = format!("{index}").repeat(100_000);
            let mut stdin = process.take_stdin().unwrap();
            let write = async {
                stdin.write_all(text.as_bytes()).await.unwrap();
                drop(stdin);
            };
            let (back, ()) = tokio::join!(rest(&mut process), write);
            assert_eq!(back, text);
            assert_eq!(process.wait().await.unwrap(), End::Exited(0));
        }
    });
    futures::future::join_all(talks).await;
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_process_that_cannot_be_started_is_an_error() {
    let place = Place::new();
    let error = place.start(Command::new("missing")).await.unwrap_err();
    assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::NotFound, .. }), "{error:?}");
    let error = place.start(Command::new("missing").tty(TtySize::new(1, 1))).await.unwrap_err();
    assert!(matches!(error, Error::Spawn { kind: SpawnErrorKind::NotFound, .. }), "{error:?}");
}
