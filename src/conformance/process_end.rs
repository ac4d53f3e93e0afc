//! How started processes end: by themselves, politely, by timeout, by being dropped.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;

use super::place::{Must as _, Place, assert_error};
use super::process::{ended, first_line, output, started};
use crate::{CLOSE_GRACE, CancellationToken, End, Error, Signal};

cases!("process" {
    a_polite_process_is_closed_at_once [Start];
    closing_closes_input_that_was_taken [Start];
    a_process_that_ignores_its_input_gets_sigterm [Start];
    a_stubborn_process_is_killed_with_all_it_started [Start];
    closing_twice_gives_the_same [Start];
    closing_goes_on_when_it_is_dropped [Start];
    its_exit_ends_what_it_left_running [Start];
    a_timeout_ends_it_and_all_it_started [Start];
    silence_ends_it [Start];
    a_cancelled_token_ends_it_and_all_it_started [Start];
    a_grace_of_its_own_is_kept [Start];
    dropping_it_kills_all_it_started [Start];
    dropping_it_outside_of_a_runtime_does_not_panic [Start];
});

/// A family that ignores every polite signal.
fn stubborn(marker: &str) -> String {
    format!(
        "trap '' TERM HUP; sleep {marker} & setsid sleep {marker} & echo ready; while :; do sleep 0.1; done; : {marker}"
    )
}

/// The end of its input is enough.
pub async fn a_polite_process_is_closed_at_once(at: &Place) {
    let process = started(at, at.program("cat", [])).await;
    let begun = Instant::now();
    assert_eq!(process.close().await.must("close"), End::Exited(0));
    assert!(begun.elapsed() < CLOSE_GRACE, "{:?}", begun.elapsed());
}

/// Also when another task holds it; a write is broken then.
pub async fn closing_closes_input_that_was_taken(at: &Place) {
    let mut process = started(at, at.program("cat", [])).await;
    let Some(mut stdin) = process.take_stdin() else { panic!("standard input is there") };
    assert_eq!(process.close().await.must("close"), End::Exited(0));
    let error = stdin.write_all(b"x").await.expect_err("it is closed");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// After the first grace, so that it can clean up.
pub async fn a_process_that_ignores_its_input_gets_sigterm(at: &Place) {
    let mut process =
        started(at, at.sh("trap 'echo cleaned; exit 6' TERM; echo ready; while :; do sleep 0.1; done")).await;
    first_line(&mut process).await;
    let begun = Instant::now();
    assert_eq!(process.close().await.must("close"), End::Exited(6));
    assert!((CLOSE_GRACE..2 * CLOSE_GRACE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(output(&mut process).await, "cleaned\n");
}

/// After both graces.
pub async fn a_stubborn_process_is_killed_with_all_it_started(at: &Place) {
    let marker = at.marker();
    let mut process = started(at, at.sh(stubborn(&marker))).await;
    first_line(&mut process).await;
    let begun = Instant::now();
    assert_eq!(process.close().await.must("close"), End::Signaled(Signal::KILL));
    let took = begun.elapsed();
    assert!((2 * CLOSE_GRACE..Duration::from_secs(12)).contains(&took), "{took:?}");
    at.await_none(&marker, Duration::from_secs(3)).await;
}

/// Also at the same time.
pub async fn closing_twice_gives_the_same(at: &Place) {
    let process = started(at, at.sh("read -r line; exit 3")).await;
    let (one, two) = tokio::join!(process.close(), process.close());
    assert_eq!((one.must("close"), two.must("close")), (End::Exited(3), End::Exited(3)));
    assert_eq!(process.close().await.must("close"), End::Exited(3));
}

/// The steps do not need their caller.
pub async fn closing_goes_on_when_it_is_dropped(at: &Place) {
    let mut process = started(at, at.sh(stubborn(&at.marker()))).await;
    first_line(&mut process).await;
    let dropped = tokio::time::timeout(Duration::from_millis(200), process.close()).await;
    assert!(dropped.is_err(), "it is stubborn");
    let end = tokio::time::timeout(Duration::from_secs(12), process.wait()).await;
    assert_eq!(end.must("end by itself").must("wait"), End::Signaled(Signal::KILL));
}

/// Then its output ends too, since nobody holds it open.
pub async fn its_exit_ends_what_it_left_running(at: &Place) {
    let marker = at.marker();
    let script =
        format!("sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); echo out; exit 2");
    let mut process = started(at, at.sh(script)).await;
    assert_eq!(ended(&process).await, End::Exited(2));
    assert_eq!(output(&mut process).await, "out\n");
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// SIGTERM first, then SIGKILL; the end says that it timed out.
pub async fn a_timeout_ends_it_and_all_it_started(at: &Place) {
    let marker = at.marker();
    let begun = Instant::now();
    let process = started(at, at.sh(stubborn(&marker)).timeout(Duration::from_secs(1))).await;
    let end = ended(&process).await;
    assert_eq!((end, end.exit_code()), (End::TimedOut, -1));
    let took = begun.elapsed();
    assert!(
        (Duration::from_millis(2900)..Duration::from_secs(12)).contains(&took),
        "1 s and the grace: {took:?}"
    );
    at.await_none(&marker, Duration::from_secs(3)).await;
    let mut process = started(
        at,
        at.sh("trap 'echo cleaned; exit 1' TERM; while :; do sleep 0.1; done")
            .timeout(Duration::from_secs(1)),
    )
    .await;
    assert_eq!(ended(&process).await, End::TimedOut, "whatever status it then exits with");
    assert_eq!(output(&mut process).await, "cleaned\n");
}

/// Output on either stream breaks it.
pub async fn silence_ends_it(at: &Place) {
    let script = "for i in 1 2 3; do echo $i; sleep 0.6; echo $i >&2; sleep 0.6; done; exec sleep 60";
    let mut process = started(at, at.sh(script).idle_timeout(Duration::from_secs(2))).await;
    assert_eq!(output(&mut process).await, "1\n2\n3\n");
    assert_eq!(ended(&process).await, End::IdleTimedOut);
}

/// The end is cancelled; a signal afterwards finds nobody.
pub async fn a_cancelled_token_ends_it_and_all_it_started(at: &Place) {
    let marker = at.marker();
    let token = CancellationToken::new();
    let script = format!("sleep {marker} & setsid sleep {marker} & echo ready; exec sleep {marker}");
    let mut process = started(at, at.sh(script).cancel(token.clone())).await;
    first_line(&mut process).await;
    token.cancel();
    let end = ended(&process).await;
    assert_eq!((end, end.exit_code()), (End::Cancelled, -1));
    assert_error!(process.signal(Signal::TERM).await, Error::ProcessDone);
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// Instead of the usual one.
pub async fn a_grace_of_its_own_is_kept(at: &Place) {
    let begun = Instant::now();
    let command =
        at.sh(stubborn(&at.marker())).timeout(Duration::from_secs(1)).kill_grace(Duration::from_millis(200));
    let process = started(at, command).await;
    assert_eq!(ended(&process).await, End::TimedOut);
    assert!(begun.elapsed() < Duration::from_millis(1000) + CLOSE_GRACE, "{:?}", begun.elapsed());
}

/// Without a word.
pub async fn dropping_it_kills_all_it_started(at: &Place) {
    let marker = at.marker();
    let mut process = started(at, at.sh(stubborn(&marker))).await;
    first_line(&mut process).await;
    at.await_some(&marker).await;
    drop(process);
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// A handle may end its life on any thread.
pub async fn dropping_it_outside_of_a_runtime_does_not_panic(at: &Place) {
    let marker = at.marker();
    let mut process = started(at, at.sh(stubborn(&marker))).await;
    first_line(&mut process).await;
    let dropped = std::thread::spawn(move || drop(process)).join();
    assert!(dropped.is_ok(), "the drop panicked");
    at.await_none(&marker, Duration::from_secs(5)).await;
}
