//! Closing a workspace, and everything afterwards.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;

use super::place::{Must as _, Place, assert_error, name};
use super::process::{first_line, started};
use super::tarball::Tarball;
use crate::eventually::eventually;
use crate::{Error, OpenOptions, Signal, start};

cases!("close" {
    every_call_after_it_is_closed as Spent;
    it_ends_every_process_and_command [Start, Kill] as Spent;
    calls_in_flight_end_as_closed [Kill] as Spent;
    a_reader_still_open_ends [Files] as Spent;
    several_callers_wait_for_the_same_end as Spent;
    a_close_that_is_dropped_leaves_it_closed as Spent;
    dropping_the_last_handle_closes_it as Spent;
});

/// Whatever the call, it does nothing and says why; what only describes still answers.
pub async fn every_call_after_it_is_closed(at: &Place) {
    let (f, g) = (name("f"), name("g"));
    let ws = at.ws();
    let descriptor = ws.descriptor();
    ws.close().await.must("close");
    ws.close().await.must("close again");
    assert_error!(ws.open(&f, OpenOptions::default()).await, Error::Closed);
    assert_error!(ws.metadata(&f).await, Error::Closed);
    assert_error!(ws.symlink_metadata(&f).await, Error::Closed);
    assert_error!(ws.read_link(&f).await, Error::Closed);
    assert_error!(ws.read_dir(&f, Default::default()).await, Error::Closed);
    assert_error!(ws.write(&f, "x".into(), Default::default()).await, Error::Closed);
    assert_error!(ws.remove(&f).await, Error::Closed);
    assert_error!(ws.remove_all(&f).await, Error::Closed);
    assert_error!(ws.rename(&f, &g).await, Error::Closed);
    assert_error!(ws.create_dir_all(&f).await, Error::Closed);
    assert_error!(ws.set_mode(&f, 0o600).await, Error::Closed);
    assert_error!(ws.copy(&f, &g).await, Error::Closed);
    assert_error!(ws.put_archive(&f, Tarball::new().content(), Default::default()).await, Error::Closed);
    assert_error!(ws.get_archive(&f, Default::default()).await, Error::Closed);
    assert_error!(ws.exec(at.sh("exit 0")).await, Error::Closed);
    if ws.as_starter().is_some() {
        assert_error!(start(ws, at.sh("exit 0")).await, Error::Closed);
    }
    assert!(ws.exec(at.sh("exit 0")).await.is_err_and(|error| error.is_gone()));
    assert_eq!(ws.descriptor(), descriptor);
    let _ = (ws.details(), ws.capabilities(), ws.env());
}

/// Two processes and a command, with children of every kind.
pub async fn it_ends_every_process_and_command(at: &Place) {
    let marker = at.marker();
    let script = format!("sleep {marker} & setsid sleep {marker} & echo ready; exec sleep {marker}");
    let mut one = started(at, at.sh(script.as_str())).await;
    let mut two = started(at, at.sh(script.as_str())).await;
    first_line(&mut one).await;
    first_line(&mut two).await;
    let closing = async {
        at.await_alive(&marker, |alive| alive >= 9, Duration::from_secs(20)).await;
        at.ws().close().await
    };
    let (exec, closed) = tokio::join!(at.ws().exec(at.sh(script.as_str())), closing);
    closed.must("close");
    assert_error!(exec, Error::Closed);
    assert_eq!(at.fixture.alive(&at.site, &marker).await, 0, "right after the close");
    for process in [one, two] {
        let end = tokio::time::timeout(Duration::from_secs(10), process.wait()).await.must("end in time");
        assert!(matches!(end, Ok(crate::End::Signaled(_))), "{end:?}");
        assert_error!(process.signal(Signal::TERM).await, Error::ProcessDone);
    }
}

/// A command that runs while the workspace is closed is not a result.
pub async fn calls_in_flight_end_as_closed(at: &Place) {
    let marker = at.marker();
    let begun = Instant::now();
    let closing = async {
        at.await_some(&marker).await;
        at.ws().close().await.must("close");
    };
    let (result, ()) = tokio::join!(at.ws().exec(at.sh(format!("sleep {marker}; :"))), closing);
    assert_error!(result, Error::Closed);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(at.fixture.alive(&at.site, &marker).await, 0);
}

/// It does not give what looks like the end of the file.
pub async fn a_reader_still_open_ends(at: &Place) {
    at.put("f", vec![b'a'; 32 << 20]).await;
    let mut reader = at.ws().open(&name("f"), OpenOptions::default()).await.must("open");
    reader.read_exact(&mut [0; 10]).await.must("read the first bytes");
    at.ws().close().await.must("close");
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), reader.read_to_end(&mut rest)).await;
    match read.must("end in time") {
        Ok(count) => panic!("{count} bytes were read after the close as if that were the whole file"),
        Err(error) => assert_error!(Err::<(), _>(Error::from_io("read", "f", error)), Error::Closed),
    }
}

/// They all get an answer once everything is released.
pub async fn several_callers_wait_for_the_same_end(at: &Place) {
    let marker = at.marker();
    at.done(&format!("setsid sleep {marker} > /dev/null 2>&1 &")).await;
    let closes = futures::future::join_all((0..5).map(|_| async {
        at.ws().close().await.must("close");
        assert_eq!(at.fixture.alive(&at.site, &marker).await, 0, "whoever returns, it is done");
    }));
    tokio::time::timeout(Duration::from_secs(30), closes).await.must("end in time");
}

/// The next close finishes it.
pub async fn a_close_that_is_dropped_leaves_it_closed(at: &Place) {
    let marker = at.marker();
    at.done(&format!("setsid sleep {marker} > /dev/null 2>&1 &")).await;
    let _ = tokio::time::timeout(Duration::from_micros(100), at.ws().close()).await;
    assert_error!(at.ws().exec(at.sh("exit 0")).await, Error::Closed);
    at.ws().close().await.must("close");
    assert_eq!(at.fixture.alive(&at.site, &marker).await, 0);
}

/// In the background, within a short time.
pub async fn dropping_the_last_handle_closes_it(at: &Place) {
    let site = at.fixture.open().await;
    let marker = at.marker();
    let script =
        format!("sleep {marker} > /dev/null 2>&1 & setsid sleep {marker} > /dev/null 2>&1 & echo ready");
    let ran = site.workspace.exec(at.sh(script)).await.must("run");
    assert_eq!(ran.stdout.to_text(), "ready\n");
    assert!(at.fixture.alive(&site, &marker).await > 0);
    let crate::conformance::Site { workspace, outside, key } = site;
    drop(workspace);
    let rest = crate::conformance::Site::new(at.shared(), outside, key);
    eventually(Duration::from_secs(8), || at.fixture.alive(&rest, &marker), |alive| *alive == 0).await;
    at.fixture.release(rest, true).await;
}
