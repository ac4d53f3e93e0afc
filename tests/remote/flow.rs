//! Flow control: what stands still holds up nothing else.

use std::sync::Arc;
use std::time::Duration;

use agentworkspace::{OpenOptions, Workspace, start};
use futures::future::join_all;
use tokio::io::AsyncReadExt as _;

use crate::place::{Place, name, sh};

const SIZE: usize = 2 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stand_still_hold_up_nothing_else() {
    let place = Place::new();
    std::fs::write(place.path().join("big"), vec![b'a'; SIZE]).expect("a file");
    let server = place.server();
    let workspace = Arc::new(place.client(&server).await);
    let open = |_| async { workspace.open(&name("big"), OpenOptions::default()).await.expect("a file") };
    let readers = join_all((0..200).map(open)).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(start(&*workspace, sh("exec cat /dev/zero")).await.expect("a process"));
    }
    let beside = async {
        for _ in 0..20 {
            let output = workspace.exec(sh("head -c 1000000 /dev/zero")).await.expect("a command");
            assert_eq!(output.stdout.len(), 1_000_000);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), beside).await.expect("in time");
    for mut reader in readers {
        let mut content = Vec::new();
        reader.read_to_end(&mut content).await.expect("the rest of the file");
        assert_eq!(content.len(), SIZE);
    }
    drop(silent);
    workspace.close().await.expect("it closes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_that_nobody_reads_holds_up_nothing_else() {
    let place = Place::new();
    let server = place.server();
    let workspace = Arc::new(place.client(&server).await);
    let sleeping =
        join_all(
            (0..50).map(|_| {
                let workspace = workspace.clone();
                async move {
                    workspace.exec(sh("while [ ! -e go ]; do sleep 0.1; done").stdin(vec![0; SIZE])).await
                }
            }),
        );
    let beside = async {
        let output = workspace.exec(sh("wc -c").stdin(vec![0; SIZE])).await.expect("a command");
        assert_eq!(output.stdout.to_text().trim(), SIZE.to_string());
        workspace.write(&name("go"), "".into(), Default::default()).await.expect("a file");
    };
    let both = futures::future::join(sleeping, beside);
    let (ran, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("in time");
    for output in ran {
        assert!(output.expect("a command").success());
    }
}
