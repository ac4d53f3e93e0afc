//! Connections that are lost: the client is told, and what it started ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentworkspace::remote::{DialOptions, Listener, RemoteWorkspace};
use agentworkspace::{Error, GoneReason, OpenOptions, Workspace, WorkspaceExt as _, start};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::place::{Place, alive, eventually, marker, name, serve, sh};

fn assert_disconnected<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(
        matches!(result, Err(Error::Gone { why: GoneReason::Disconnected { .. } })),
        "expected a lost connection, got {result:?}"
    );
}

/// Passes bytes on between a client and a server until it is told to stand still: both then have a
/// connection on which nothing comes any more.
async fn proxy(target: String, still: CancellationToken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a client");
        let mut server = TcpStream::connect(target).await.expect("the server");
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            () = still.cancelled() => std::future::pending().await,
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_stands_still_is_noticed_by_both_sides_within_fifteen_seconds() {
    let place = Place::new();
    let server = place.server();
    let listener = Listener::tcp("127.0.0.1:0").await.expect("a port");
    let address = listener.url().trim_start_matches("http://").to_owned();
    let serving = server.clone();
    tokio::spawn(async move { listener.serve(&serving).await });
    let still = CancellationToken::new();
    let url = proxy(address, still.clone()).await;
    let workspace =
        Arc::new(RemoteWorkspace::dial(&url, DialOptions::default()).await.expect("a connection"));
    let marker = marker();
    let (command, running) = (sh(format!("sleep {marker}; :")), workspace.clone());
    let pending = tokio::spawn(async move { running.exec(command).await });
    let process = start(&*workspace, sh(format!("exec sleep {marker}"))).await.expect("a process");
    eventually(Duration::from_secs(10), || alive(&marker) >= 2).await;

    still.cancel();
    let begun = Instant::now();
    let within = |future| tokio::time::timeout(Duration::from_secs(16), future);
    assert_disconnected(within(pending).await.expect("in time").expect("no panic"));
    let ended = tokio::time::timeout(Duration::from_secs(1), process.wait()).await;
    assert_disconnected(ended.expect("at the same time"));
    assert_disconnected(workspace.metadata(&name(".")).await);
    assert_disconnected(workspace.close().await);
    let left = Duration::from_secs(17).saturating_sub(begun.elapsed());
    eventually(left, || alive(&marker) == 0).await;
}

#[tokio::test]
async fn a_connection_that_breaks_ends_calls_and_what_they_started() {
    let place = Place::new();
    std::fs::write(place.path().join("big"), vec![b'a'; 4 << 20]).expect("a file");
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let server = place.server();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(theirs).await }
    });
    let workspace = Arc::new(RemoteWorkspace::connect(ours, "memory").await.expect("a connection"));
    let marker = marker();
    let left = format!("sleep {marker} > /dev/null 2>&1 & setsid sleep {marker} > /dev/null 2>&1 &");
    workspace.exec(sh(left)).await.expect("a command that leaves something");
    let mut reader = workspace.open(&name("big"), OpenOptions::default()).await.expect("a file");
    let (command, running) = (sh(format!("sleep {marker}; :")), workspace.clone());
    let pending = tokio::spawn(async move { running.exec(command).await });
    eventually(Duration::from_secs(10), || alive(&marker) >= 4).await;

    serving.abort();
    let result =
        tokio::time::timeout(Duration::from_secs(5), pending).await.expect("in time").expect("no panic");
    assert_disconnected(result);
    let mut rest = Vec::new();
    let error = reader.read_to_end(&mut rest).await.expect_err("the file is not whole");
    assert_disconnected(Err::<(), _>(Error::from_io("read", "big", error)));
    eventually(Duration::from_secs(5), || alive(&marker) == 0).await;
}

#[tokio::test]
async fn nobody_at_the_other_end_is_said_so() {
    let dialled = RemoteWorkspace::dial("unix:/nonexistent/socket", DialOptions::default()).await;
    assert_disconnected(dialled);
    let (ours, theirs) = tokio::io::duplex(1024);
    drop(theirs);
    assert_disconnected(RemoteWorkspace::connect(ours, "memory").await);
}

#[tokio::test]
async fn a_shutdown_ends_what_clients_started_and_tells_them() {
    let place = Place::new();
    let server = place.server();
    let workspace = Arc::new(place.client(&server).await);
    let marker = marker();
    let left = format!("setsid sleep {marker} > /dev/null 2>&1 &");
    workspace.exec(sh(left)).await.expect("a command that leaves something");
    let (command, running) = (sh(format!("sleep {marker}; :")), workspace.clone());
    let pending = tokio::spawn(async move { running.exec(command).await });
    eventually(Duration::from_secs(10), || alive(&marker) >= 2).await;
    server.shutdown().await;
    assert_eq!(alive(&marker), 0, "right after the shutdown");
    assert_disconnected(pending.await.expect("no panic"));
    assert_disconnected(workspace.read(&name("f"), 1).await);
    let late = RemoteWorkspace::connect(serve(&server), "memory").await;
    assert!(matches!(late, Err(Error::Gone { .. })), "{late:?}");
}
