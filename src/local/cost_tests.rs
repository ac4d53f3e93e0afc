//! What the supervisor costs. Run by hand: `cargo test --lib local::cost_tests -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use super::test_support::Place;
use crate::command::Command;

const RUNS: usize = 200;

#[tokio::test]
#[ignore = "it measures and checks nothing"]
async fn exec_of_true_against_a_plain_child() {
    let place = Place::new();
    // What a host of some size has written; a fork copies the page tables of it.
    for host_bytes in [0usize, 256 << 20] {
        let ballast = vec![1u8; host_bytes];
        let ours = measure(async || drop(place.exec(Command::new("/bin/true")).await.unwrap())).await;
        let plain = measure(async || {
            let output = tokio::process::Command::new("/bin/true").env_clear().output().await;
            assert!(output.unwrap().status.success());
        })
        .await;
        println!("host of {} MiB: exec {ours:?}, plain {plain:?} (median of {RUNS})", ballast.len() >> 20);
    }
}

async fn measure(run: impl AsyncFn()) -> Duration {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        run().await;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    times[RUNS / 2]
}
