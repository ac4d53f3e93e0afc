//! What becomes of processes that a command leaves behind.

use std::time::{Duration, Instant};

use super::place::{Must as _, Place};
use crate::eventually::eventually;
use crate::{End, Leftovers};

cases!("leftovers" {
    what_is_left_goes_on_by_default;
    what_is_left_is_ended_when_asked [Kill];
    output_held_open_is_awaited_for_two_seconds;
    output_that_ends_in_time_is_whole;
    what_is_left_may_print_for_ever [LeftoverOutput];
    closing_ends_what_is_left as Spent;
});

/// A server started in one command serves the next; what it does not hold open is not waited for.
pub async fn what_is_left_goes_on_by_default(at: &Place) {
    let marker = at.marker();
    let begun = Instant::now();
    let script =
        format!("sleep {marker} > /dev/null 2>&1 & setsid sleep {marker} > /dev/null 2>&1 & echo started");
    let ran = at.run(at.sh(script)).await;
    assert_eq!(
        (ran.end, ran.out().as_str(), ran.output_detached),
        (End::Exited(0), "started\n", false),
        "{ran}"
    );
    assert!(begun.elapsed() < Duration::from_secs(10), "{ran}");
    at.await_alive(&marker, |alive| alive == 2, Duration::from_secs(5)).await;
    assert_eq!(at.done("echo next").await, "next\n");
    assert_eq!(at.fixture.alive(&at.site, &marker).await, 2, "they outlive the next command too");
}

/// Everything is gone soon after the command has exited, and the status is its own.
pub async fn what_is_left_is_ended_when_asked(at: &Place) {
    let marker = at.marker();
    let script =
        format!("sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); echo done; exit 3");
    let begun = Instant::now();
    let ran = at.run(at.sh(script).leftovers(Leftovers::Kill)).await;
    assert_eq!((ran.end, ran.out().as_str()), (End::Exited(3), "done\n"), "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{ran}");
    at.await_none(&marker, Duration::from_secs(3)).await;
}

/// Then the output so far comes back, and says that it is not all.
pub async fn output_held_open_is_awaited_for_two_seconds(at: &Place) {
    let marker = at.marker();
    let begun = Instant::now();
    let ran = at.run(at.sh(format!("sleep {marker} & echo out; echo err >&2; exit 5"))).await;
    assert_eq!((ran.end, ran.output_detached), (End::Exited(5), true), "{ran}");
    assert_eq!((ran.out().as_str(), ran.err().as_str()), ("out\n", "err\n"), "{ran}");
    let waited = begun.elapsed();
    assert!((Duration::from_millis(1900)..Duration::from_secs(10)).contains(&waited), "{waited:?}\n{ran}");
    assert!(at.fixture.alive(&at.site, &marker).await > 0, "it goes on");
}

/// What a child prints within the two seconds is in the output.
pub async fn output_that_ends_in_time_is_whole(at: &Place) {
    let ran = at.run(at.sh("(sleep 0.5; echo late) & echo early; exit 0")).await;
    assert_eq!((ran.out().as_str(), ran.output_detached), ("early\nlate\n", false), "{ran}");
}

/// Its output is read and discarded, so that it neither blocks nor dies of a closed pipe.
pub async fn what_is_left_may_print_for_ever(at: &Place) {
    let marker = at.marker();
    let script = format!(
        "(i=0; while [ $i -lt 300 ]; do head -c 65536 /dev/zero || exit 1; echo $i > progress.new; \
         mv progress.new progress; i=$((i+1)); sleep 0.02; done; echo all > finished; : {marker}) & echo out"
    );
    let ran = at.run(at.sh(script).output_limit(100)).await;
    assert!(ran.output_detached, "{ran}");
    let progress = || at.done("cat progress finished 2>/dev/null || true");
    eventually(Duration::from_secs(40), progress, |progress| progress.ends_with("all\n")).await;
}

/// They live no longer than the workspace.
pub async fn closing_ends_what_is_left(at: &Place) {
    let marker = at.marker();
    let quiet = "> /dev/null 2>&1";
    at.done(&format!(
        "sleep {marker} {quiet} & setsid sleep {marker} {quiet} & (setsid sleep {marker} {quiet} &)"
    ))
    .await;
    at.await_alive(&marker, |alive| alive >= 3, Duration::from_secs(5)).await;
    at.ws().close().await.must("close");
    at.await_none(&marker, Duration::from_secs(5)).await;
}
