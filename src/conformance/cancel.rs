//! Stopping by token and by dropping the future.

use std::time::{Duration, Instant};

use futures::FutureExt as _;

use super::place::{Must as _, Place, assert_error, name};
use super::tarball::Tarball;
use crate::eventually::eventually;
use crate::{CancellationToken, Content, Error, UnpackOptions, WorkspaceExt as _};

cases!("cancel" {
    a_token_ends_a_command_and_all_it_started [Kill];
    a_token_lets_a_command_use_its_grace [Kill];
    dropping_an_exec_kills_all_it_started [Kill];
    dropping_an_exec_outside_of_a_runtime_does_not_panic [Kill];
    dropping_an_exec_before_it_is_polled_starts_nothing;
    closing_waits_for_what_was_dropped [Kill] as Spent;
    dropped_operations_leave_a_workspace_that_answers [Files];
});

/// The exec is an error then, and what it was is gone.
pub async fn a_token_ends_a_command_and_all_it_started(at: &Place) {
    let marker = at.marker();
    let token = CancellationToken::new();
    let script =
        format!("sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); sleep {marker}; :");
    let cancelling = async {
        at.await_alive(&marker, |alive| alive >= 4, Duration::from_secs(20)).await;
        token.cancel();
        Instant::now()
    };
    let (result, begun) = tokio::join!(at.ws().exec(at.sh(script).cancel(token.clone())), cancelling);
    assert_error!(result, Error::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// SIGTERM first, when the command asks for it.
pub async fn a_token_lets_a_command_use_its_grace(at: &Place) {
    let token = CancellationToken::new();
    let script = "trap 'echo > cleaned; exit 0' TERM; echo > ready; while :; do sleep 0.1; done";
    let cancelling = async {
        while !at.done("ls").await.contains("ready") {}
        token.cancel();
    };
    let command = at.sh(script).cancel(token.clone()).kill_grace(Duration::from_secs(8));
    let (result, ()) = tokio::join!(at.ws().exec(command), cancelling);
    assert_error!(result, Error::Cancelled);
    assert!(at.done("ls").await.contains("cleaned"), "the trap ran");
}

/// Dropping is cancelling.
pub async fn dropping_an_exec_kills_all_it_started(at: &Place) {
    let marker = at.marker();
    let script =
        format!("sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); sleep {marker}; :");
    tokio::select! {
        result = at.ws().exec(at.sh(script)) => panic!("it cannot end by itself: {result:?}"),
        () = at.await_alive(&marker, |alive| alive >= 4, Duration::from_secs(20)) => {}
    }
    at.await_none(&marker, Duration::from_secs(5)).await;
    assert_eq!(at.done("echo still here").await, "still here\n");
}

/// A future may end its life on any thread.
pub async fn dropping_an_exec_outside_of_a_runtime_does_not_panic(at: &Place) {
    let marker = at.marker();
    let (workspace, command) = (at.shared(), at.sh(format!("sleep {marker}; :")));
    let mut exec = async move { workspace.exec(command).await.map(|_| ()) }.boxed();
    tokio::select! {
        result = &mut exec => panic!("it cannot end by itself: {result:?}"),
        () = at.await_some(&marker) => {}
    }
    let dropped = std::thread::spawn(move || drop(exec)).join();
    assert!(dropped.is_ok(), "the drop panicked");
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// A future that was never polled did nothing.
pub async fn dropping_an_exec_before_it_is_polled_starts_nothing(at: &Place) {
    drop(at.ws().exec(at.sh("echo > ran")));
    assert_eq!(at.done("ls -A").await, "");
}

/// After it nothing of a dropped command is left.
pub async fn closing_waits_for_what_was_dropped(at: &Place) {
    let marker = at.marker();
    tokio::select! {
        result = at.ws().exec(at.sh(format!("sleep {marker} & setsid sleep {marker} & sleep {marker}; :"))) => {
            panic!("it cannot end by itself: {result:?}")
        }
        () = at.await_some(&marker) => {}
    }
    at.ws().close().await.must("close");
    assert_eq!(at.fixture.alive(&at.site, &marker).await, 0, "right after the close");
}

/// Every kind of call is dropped at many moments; the tree is whole and no temporary file stays.
pub async fn dropped_operations_leave_a_workspace_that_answers(at: &Place) {
    at.put("d/f", vec![b'a'; 1 << 20]).await;
    for round in 0..30u64 {
        let moment = Duration::from_micros(50 * round * round);
        let (file, copy) = (name("d/f"), name("d/copy"));
        let content = Content::from(vec![b'a'; 1 << 20]);
        let tar = Tarball::new().file("t", b"x", 0o644).content();
        let _ = tokio::time::timeout(moment, at.ws().write(&file, content, Default::default())).await;
        let _ = tokio::time::timeout(moment, at.ws().read(&file, 1 << 20)).await;
        let dir = name("d");
        let _ = tokio::time::timeout(moment, at.ws().read_dir_all(&dir)).await;
        let _ = tokio::time::timeout(moment, at.ws().copy(&file, &copy)).await;
        let tree = name("tree");
        let unpacking = at.ws().put_archive(&tree, tar, UnpackOptions::default());
        let _ = tokio::time::timeout(moment, unpacking).await;
    }
    if at.ws().capabilities().atomic_write {
        assert!(at.get("d/f").await == vec![b'a'; 1 << 20], "the old content or the new");
    }
    // No temporary file is left.
    let expected = |listed: &String| listed.split_whitespace().all(|file| file == "f" || file == "copy");
    eventually(Duration::from_secs(10), || at.done("ls -A d"), expected).await;
    at.put("d/f", "again").await;
    assert_eq!(at.text("d/f").await, "again");
}
