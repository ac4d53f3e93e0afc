//! Processes with a terminal.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::place::{Must as _, Place, assert_error};
use super::process::{ended, started};
use crate::{End, Error, Process, Signal, TtySize, output_channel, start};

cases!("tty" {
    a_terminal_is_one_stream_of_the_asked_size [Tty];
    a_resize_is_seen [Tty];
    control_c_interrupts_what_runs_in_front [Tty];
    control_d_is_end_of_file [Tty];
    closing_hangs_up [Tty];
    a_terminal_takes_no_sink [Tty];
    only_a_terminal_can_be_resized [Start];
});

fn size() -> TtySize {
    TtySize::new(33, 101)
}

/// Reads until `wanted` was printed, and gives all that was.
async fn until(process: &mut Process, wanted: &str) -> String {
    let (mut text, begun) = (String::new(), Instant::now());
    let Some(stdout) = process.stdout() else { panic!("standard output is there") };
    while !text.contains(wanted) {
        let mut buffer = [0; 1024];
        let left = Duration::from_secs(20).saturating_sub(begun.elapsed());
        let read = match tokio::time::timeout(left, stdout.read(&mut buffer)).await {
            Ok(read) => read.must("read the terminal"),
            Err(_) => 0,
        };
        assert!(read > 0, "{wanted:?} was not printed, only {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    text
}

async fn send(process: &mut Process, text: &str) {
    let Some(stdin) = process.stdin() else { panic!("standard input is there") };
    stdin.write_all(text.as_bytes()).await.must("write to the terminal");
    stdin.flush().await.must("flush");
}

/// Input, output and errors are the same terminal, with rows and columns.
pub async fn a_terminal_is_one_stream_of_the_asked_size(at: &Place) {
    let script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; stty size; echo err >&2; read -r l; echo got $l; exit 3";
    let mut process = started(at, at.sh(script).tty(size())).await;
    let text = until(&mut process, "err").await;
    assert!(text.contains("all three") && text.contains("33 101"), "{text:?}");
    send(&mut process, "word\n").await;
    until(&mut process, "got word").await;
    assert_eq!(ended(&process).await, End::Exited(3));
}

/// The size changes, and who asks to be told is told.
pub async fn a_resize_is_seen(at: &Place) {
    let script = "trap 'echo changed; stty size' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut process = started(at, at.sh(script).tty(size())).await;
    until(&mut process, "ready").await;
    process.resize(TtySize::new(50, 140)).await.must("resize");
    until(&mut process, "50 140").await;
    process.signal(Signal::KILL).await.must("kill");
    ended(&process).await;
    assert_error!(process.resize(TtySize::new(1, 1)).await, Error::ProcessDone);
}

/// A byte becomes a signal, as a terminal does it.
pub async fn control_c_interrupts_what_runs_in_front(at: &Place) {
    let script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    let mut process = started(at, at.sh(script).tty(size())).await;
    until(&mut process, "ready").await;
    send(&mut process, "\x03").await;
    until(&mut process, "interrupted").await;
    assert_eq!(ended(&process).await, End::Exited(5));
}

/// At the start of a line.
pub async fn control_d_is_end_of_file(at: &Place) {
    let mut process = started(at, at.sh("echo ready; cat; echo over; exit 4").tty(size())).await;
    until(&mut process, "ready").await;
    send(&mut process, "line\n\x04").await;
    until(&mut process, "over").await;
    assert_eq!(ended(&process).await, End::Exited(4));
}

/// A shell at a prompt ends soon when its terminal goes.
pub async fn closing_hangs_up(at: &Place) {
    let marker = at.marker();
    let mut process =
        started(at, at.sh(format!("sleep {marker} & echo ready; cat; : {marker}")).tty(size())).await;
    until(&mut process, "ready").await;
    let closing = tokio::time::timeout(Duration::from_secs(12), process.close()).await;
    closing.must("close in time").must("close");
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// There is no standard error to pass on.
pub async fn a_terminal_takes_no_sink(at: &Place) {
    let (sink, _receiver) = output_channel();
    let refused = start(at.ws(), at.sh("exit 0").tty(size()).stream(sink)).await;
    assert_error!(refused, Error::InvalidArgument { .. });
}

/// A process with pipes has no size.
pub async fn only_a_terminal_can_be_resized(at: &Place) {
    let process = started(at, at.program("cat", [])).await;
    assert_error!(process.resize(size()).await, Error::InvalidArgument { .. });
    process.close().await.must("close");
}
