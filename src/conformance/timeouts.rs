//! Timeouts of commands, in all and for silence, and what they end.

use std::time::{Duration, Instant};

use super::place::Place;
use crate::{End, output_channel};

cases!("timeouts" {
    a_timeout_ends_the_command_and_keeps_its_output [Kill];
    a_timeout_ends_everything_the_command_started [Kill];
    twenty_commands_time_out_and_leave_nothing [Kill];
    a_grace_lets_the_command_clean_up [Kill];
    without_a_grace_it_is_killed_at_once [Kill];
    a_stubborn_command_is_killed_after_its_grace [Kill];
    silence_ends_a_command [Kill];
    output_on_either_stream_breaks_the_silence [Kill];
    a_slow_reader_is_not_silence [Kill];
    a_timeout_that_is_not_reached_changes_nothing [Kill];
});

/// Well after it a command counts as never ended.
const SOON: Duration = Duration::from_secs(10);

/// A script with a child, one in a session of its own and one whose parent is gone, all marked.
fn family(marker: &str) -> String {
    format!("sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} & ); sleep {marker}; :")
}

/// The output so far comes back, with the end and without an error.
pub async fn a_timeout_ends_the_command_and_keeps_its_output(at: &Place) {
    let begun = Instant::now();
    let ran = at.run(at.sh("echo out; echo err >&2; sleep 60").timeout(Duration::from_secs(1))).await;
    assert_eq!((ran.end, ran.exit_code, ran.timed_out), (End::TimedOut, -1, true), "{ran}");
    assert_eq!((ran.out().as_str(), ran.err().as_str()), ("out\n", "err\n"), "{ran}");
    assert!(ran.duration >= Duration::from_millis(950) && begun.elapsed() < SOON, "{ran}");
}

/// A child, a setsid child and a double fork; none is alive soon after.
pub async fn a_timeout_ends_everything_the_command_started(at: &Place) {
    let marker = at.marker();
    let begun = Instant::now();
    let ran = at.run(at.sh(family(&marker)).timeout(Duration::from_secs(1))).await;
    assert_eq!(ran.end, End::TimedOut, "{ran}");
    assert!(begun.elapsed() < SOON, "{ran}");
    at.await_none(&marker, Duration::from_secs(3)).await;
}

/// Many at a time, and the workspace still answers.
pub async fn twenty_commands_time_out_and_leave_nothing(at: &Place) {
    let marker = at.marker();
    let commands = (0..20).map(|_| at.run(at.sh(family(&marker)).timeout(Duration::from_secs(1))));
    for ran in futures::future::join_all(commands).await {
        assert_eq!(ran.end, End::TimedOut, "{ran}");
    }
    at.await_none(&marker, Duration::from_secs(3)).await;
    assert_eq!(at.done("echo still here").await, "still here\n");
}

/// SIGTERM comes first, and what the command prints then is kept.
pub async fn a_grace_lets_the_command_clean_up(at: &Place) {
    let script = "trap 'echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    let command = at.sh(script).timeout(Duration::from_secs(1)).kill_grace(Duration::from_secs(8));
    let ran = at.run(command).await;
    assert_eq!((ran.end, ran.out().as_str()), (End::TimedOut, "ready\ncleaned\n"), "{ran}");
    assert!(ran.duration < Duration::from_secs(7), "it need not wait for the end of the grace\n{ran}");
}

/// The default is SIGKILL.
pub async fn without_a_grace_it_is_killed_at_once(at: &Place) {
    let script = "trap 'echo cleaned' TERM; echo ready; while :; do sleep 0.1; done";
    let ran = at.run(at.sh(script).timeout(Duration::from_secs(1))).await;
    assert_eq!((ran.end, ran.out().as_str()), (End::TimedOut, "ready\n"), "{ran}");
}

/// One that does not listen gets SIGKILL, with all it started.
pub async fn a_stubborn_command_is_killed_after_its_grace(at: &Place) {
    let marker = at.marker();
    let script =
        format!("trap '' TERM; sleep {marker} & setsid sleep {marker} & while :; do sleep 0.1; done");
    let command = at.sh(script).timeout(Duration::from_secs(1)).kill_grace(Duration::from_secs(1));
    let ran = at.run(command).await;
    assert_eq!(ran.end, End::TimedOut, "{ran}");
    assert!((Duration::from_millis(1900)..SOON).contains(&ran.duration), "{ran}");
    at.await_none(&marker, Duration::from_secs(3)).await;
}

/// The end says which of the two timeouts it was.
pub async fn silence_ends_a_command(at: &Place) {
    let command =
        at.sh("echo out; sleep 60").idle_timeout(Duration::from_secs(1)).timeout(Duration::from_secs(50));
    let ran = at.run(command).await;
    assert_eq!((ran.end, ran.exit_code, ran.timed_out), (End::IdleTimedOut, -1, true), "{ran}");
    assert!(ran.out() == "out\n" && ran.duration < SOON, "{ran}");
}

/// Both count.
pub async fn output_on_either_stream_breaks_the_silence(at: &Place) {
    let script = "for i in 1 2 3 4; do echo $i; sleep 0.7; echo $i >&2; sleep 0.7; done";
    let ran = at.run(at.sh(script).idle_timeout(Duration::from_secs(3))).await;
    assert_eq!(ran.end, End::Exited(0), "{ran}");
    let ran =
        at.run(at.sh(script).timeout(Duration::from_secs(2)).idle_timeout(Duration::from_secs(30))).await;
    assert_eq!(ran.end, End::TimedOut, "talking does not move the total timeout\n{ran}");
}

/// While the reader is behind, the time for silence does not count.
pub async fn a_slow_reader_is_not_silence(at: &Place) {
    let (sink, mut receiver) = output_channel();
    let command = at.sh("head -c 20000000 /dev/zero").stream(sink).idle_timeout(Duration::from_secs(1));
    let slow = async {
        // Three times what would be taken for silence.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let mut received = 0;
        while let Some(chunk) = receiver.recv().await {
            received += chunk.bytes().len();
        }
        received
    };
    let (ran, received) = tokio::join!(at.run(command), slow);
    assert_eq!((ran.end, received), (End::Exited(0), 20_000_000), "{ran}");
}

/// A command that ends in time ends as it would without.
pub async fn a_timeout_that_is_not_reached_changes_nothing(at: &Place) {
    let limit = Duration::from_secs(60);
    let begun = Instant::now();
    let ran = at.run(at.sh("echo out; exit 3").timeout(limit).idle_timeout(limit).kill_grace(limit)).await;
    assert_eq!((ran.end, ran.timed_out, ran.out().as_str()), (End::Exited(3), false, "out\n"), "{ran}");
    assert!(begun.elapsed() < SOON, "{ran}");
}
