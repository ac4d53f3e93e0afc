//! Many things at the same time.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::AsyncWriteExt as _;

use super::place::{Must as _, Place, name};
use super::process::{ended, first_line, started};
use crate::{End, WorkspaceExt as _, WriteMethod};

cases!("concurrency" {
    many_commands_run_at_the_same_time;
    eight_processes_start_at_the_same_time [Start];
    writers_of_one_file_never_mix [Files];
    writers_of_many_files_make_their_parents_once [Files];
    a_long_command_blocks_nothing [Files];
    every_kind_of_call_runs_beside_the_others [Files, Archives];
});

/// Each gets its own output, status and input.
pub async fn many_commands_run_at_the_same_time(at: &Place) {
    let count = at.fixture.concurrent_execs();
    let runs = join_all((0..count).map(|number| async move {
        let script =
            format!("read -r line; echo out {number} $line; echo err {number} >&2; exit {}", number % 100);
        (number, at.run(at.sh(script).stdin(format!("in {number}\n"))).await)
    }));
    for (number, ran) in runs.await {
        assert_eq!(ran.end, End::Exited((number % 100) as i32), "{ran}");
        assert_eq!(ran.out(), format!("out {number} in {number}\n"), "{ran}");
        assert_eq!(ran.err(), format!("err {number}\n"), "{ran}");
    }
}

/// And each talks to its own caller.
pub async fn eight_processes_start_at_the_same_time(at: &Place) {
    let talks = join_all((0..8).map(|number| async move {
        let mut process =
            started(at, at.sh(format!("echo ready {number}; read -r l; echo $l {number}; exit {number}")))
                .await;
        assert_eq!(first_line(&mut process).await, format!("ready {number}\n"));
        let Some(stdin) = process.stdin() else { panic!("standard input is there") };
        stdin.write_all(b"hello\n").await.must("write");
        stdin.flush().await.must("flush");
        assert_eq!(first_line(&mut process).await, format!("hello {number}\n"));
        assert_eq!(ended(&process).await, End::Exited(number));
    }));
    talks.await;
}

/// What is there in the end is what one of them wrote.
pub async fn writers_of_one_file_never_mix(at: &Place) {
    for _ in 0..3 {
        let writes = join_all((b'a'..b'a' + 24).map(|letter| at.put("f", vec![letter; 20_000])));
        let atomic = writes.await.iter().all(|written| written.method == WriteMethod::Atomic);
        let content = at.get("f").await;
        if atomic {
            assert_eq!(content.len(), 20_000);
            assert!(content.iter().all(|byte| *byte == content[0]), "two writes are mixed");
        }
    }
    assert_eq!(at.done("ls -A").await, "f\n");
}

/// Racing for a directory is no error.
pub async fn writers_of_many_files_make_their_parents_once(at: &Place) {
    join_all(
        (0..20).map(|number| async move { at.put(&format!("a/b/c/{number}"), number.to_string()).await }),
    )
    .await;
    join_all((0..10).map(|_| async { at.ws().create_dir_all(&name("x/y/z")).await.must("make") })).await;
    assert_eq!(at.ws().read_dir_all(&name("a/b/c")).await.must("list").len(), 20);
}

/// Files can be used while a command runs.
pub async fn a_long_command_blocks_nothing(at: &Place) {
    let begun = Instant::now();
    let (ran, ()) = tokio::join!(at.run(at.sh("while [ ! -e go ]; do sleep 0.05; done; cat go")), async {
        at.put("other", "x").await;
        assert_eq!(at.done("cat other").await, "x");
        at.put("go", "went").await;
    });
    assert!(ran.out().is_empty() || ran.out() == "went", "{ran}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// No call waits for ever for another.
pub async fn every_kind_of_call_runs_beside_the_others(at: &Place) {
    at.put("t/f", vec![b'x'; 100_000]).await;
    let round = |number: usize| async move {
        let file = format!("own/{number}");
        at.put(&file, vec![b'y'; 50_000]).await;
        assert_eq!(at.get(&file).await.len(), 50_000);
        assert!(at.ws().metadata(&name("t/f")).await.must("stat").is_file());
        at.ws().read_dir_all(&name("t")).await.must("list");
        let ran = at.run(at.sh(format!("wc -c < {file}"))).await;
        assert_eq!(ran.out().trim(), "50000", "{ran}");
        at.ws().copy(&name("t/f"), &name(&format!("own/{number}.copy"))).await.must("copy");
        assert_eq!(
            super::tarball::pack(at, "t", Default::default()).await.iter().filter(|e| e.name == "f").count(),
            1
        );
    };
    let all = join_all((0..10).map(round));
    tokio::time::timeout(Duration::from_secs(100), all).await.must("end in time");
}
