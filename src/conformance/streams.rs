//! Output: kept within bounds, or passed on as it arrives.

use std::time::{Duration, Instant};

use super::place::{Must as _, Place};
use crate::{End, OutputChunk, OutputReceiver, output_channel};

cases!("streams" {
    a_sink_gets_both_streams_and_the_output_neither;
    chunks_arrive_while_the_command_runs;
    a_slow_reader_slows_its_own_command_only;
    a_reader_that_is_dropped_does_not_stop_the_command;
    the_first_and_the_last_bytes_are_kept_and_the_rest_counted;
    no_limit_means_the_default_and_zero_counts_all;
    both_streams_may_be_full_at_the_same_time;
});

/// Everything that comes, one stream after the other.
async fn drain(receiver: &mut OutputReceiver) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(chunk) = receiver.recv().await {
        match chunk {
            OutputChunk::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            OutputChunk::Stderr(bytes) => stderr.extend_from_slice(&bytes),
        }
    }
    (stdout, stderr)
}

/// In the order in which they were printed; the `Output` is empty.
pub async fn a_sink_gets_both_streams_and_the_output_neither(at: &Place) {
    let (sink, mut receiver) = output_channel();
    let script = "for i in 1 2 3; do echo out $i; sleep 0.3; echo err $i >&2; sleep 0.3; done; exit 4";
    let collect = async {
        let mut order = String::new();
        while let Some(chunk) = receiver.recv().await {
            order.push(if matches!(chunk, OutputChunk::Stdout(_)) { 'o' } else { 'e' });
            order.push_str(&String::from_utf8_lossy(chunk.bytes()));
        }
        order
    };
    let (ran, order) = tokio::join!(at.run(at.sh(script).stream(sink)), collect);
    assert_eq!(order, "oout 1\neerr 1\noout 2\neerr 2\noout 3\neerr 3\n", "{ran}");
    assert_eq!(ran.end, End::Exited(4), "{ran}");
    assert!(ran.stdout.is_empty() && ran.stderr.is_empty() && ran.stdout.dropped() == 0, "{ran}");
}

/// The first line is there before the second is printed.
pub async fn chunks_arrive_while_the_command_runs(at: &Place) {
    let (sink, mut receiver) = output_channel();
    let script = "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo went";
    let follow = async {
        let first =
            tokio::time::timeout(Duration::from_secs(20), receiver.recv()).await.must("arrive in time");
        assert_eq!(first.map(|chunk| chunk.bytes().to_vec()), Some(b"ready\n".to_vec()));
        let go = at.run(at.sh(": > go")).await;
        assert!(go.success(), "{go}");
        drain(&mut receiver).await.0
    };
    let (ran, rest) = tokio::join!(at.run(at.sh(script).stream(sink)), follow);
    assert_eq!(rest, b"went\n", "{ran}");
}

/// The command waits for its reader; another command does not; nothing is lost.
pub async fn a_slow_reader_slows_its_own_command_only(at: &Place) {
    let (sink, mut receiver) = output_channel();
    let size = 16 << 20;
    let slow = async {
        let first = receiver.recv().await.map_or(0, |chunk| chunk.bytes().len());
        let begun = Instant::now();
        let ran = at.run(at.sh("echo quick")).await;
        assert!(ran.out() == "quick\n" && begun.elapsed() < Duration::from_secs(20), "{ran}");
        let (rest, _) = drain(&mut receiver).await;
        assert!(rest.iter().all(|byte| *byte == 0));
        first + rest.len()
    };
    let command = at.sh(format!("head -c {size} /dev/zero")).stream(sink);
    let (ran, received) = tokio::join!(at.run(command), slow);
    assert_eq!(received, size, "{ran}");
}

/// The process goes on to its end and its output is discarded.
pub async fn a_reader_that_is_dropped_does_not_stop_the_command(at: &Place) {
    let (sink, receiver) = output_channel();
    drop(receiver);
    let ran =
        at.run(at.sh("head -c 8000000 /dev/zero; echo err >&2; echo done > done; exit 5").stream(sink)).await;
    assert_eq!(ran.end, End::Exited(5), "{ran}");
    assert_eq!(at.done("cat done").await, "done\n");
}

/// Half of the limit from the front, half from the back, for each stream apart.
pub async fn the_first_and_the_last_bytes_are_kept_and_the_rest_counted(at: &Place) {
    let script = "printf aaaa; head -c 100000 /dev/zero; printf zzzz; printf short >&2";
    let ran = at.run(at.sh(script).output_limit(8)).await;
    assert_eq!((ran.stdout.head(), ran.stdout.tail()), (&b"aaaa"[..], &b"zzzz"[..]), "{ran}");
    assert_eq!(ran.stdout.dropped(), 100_000, "{ran}");
    assert!(ran.out().contains("100000 bytes dropped"), "{ran}");
    assert_eq!((ran.err().as_str(), ran.stderr.dropped()), ("short", 0), "{ran}");
    let ran = at.run(at.sh("printf 12345678").output_limit(8)).await;
    assert_eq!((ran.out().as_str(), ran.stdout.dropped()), ("12345678", 0), "{ran}");
    let ran = at.run(at.sh("printf 123456789").output_limit(8)).await;
    assert_eq!((&*ran.stdout, ran.stdout.dropped()), (&b"12346789"[..], 1), "{ran}");
}

/// The default holds 16 MiB.
pub async fn no_limit_means_the_default_and_zero_counts_all(at: &Place) {
    let limit = crate::DEFAULT_OUTPUT_LIMIT;
    let ran = at.run(at.sh(format!("head -c {} /dev/zero", limit + 1000))).await;
    assert_eq!((ran.stdout.len() as u64, ran.stdout.dropped()), (limit, 1000), "{}", ran.end);
    let ran = at.run(at.sh("printf 12345; printf 123 >&2").output_limit(0)).await;
    assert!(ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran}");
    assert_eq!((ran.stdout.dropped(), ran.stderr.dropped()), (5, 3), "{ran}");
}

/// Neither waits for the other.
pub async fn both_streams_may_be_full_at_the_same_time(at: &Place) {
    let script = "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2";
    let ran = at.run(at.sh(script)).await;
    assert_eq!((ran.stdout.len(), ran.stderr.len()), (3_000_000, 6_000_000), "{}", ran.end);
}
