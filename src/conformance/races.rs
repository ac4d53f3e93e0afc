//! Confinement while another process swaps what the names stand for.

use std::sync::atomic::{AtomicBool, Ordering};

use super::place::{Must as _, Place, name};
use super::tarball::Tarball;
use crate::{Error, Result, WorkspaceExt as _};

cases!("races" {
    a_directory_swapped_for_a_link_is_never_left_through [Files];
    a_file_swapped_for_a_link_is_never_left_through [Files];
    a_command_never_starts_outside_while_its_directory_is_swapped;
});

/// Runs `operations` again and again while `script` swaps in the workspace; what is outside must
/// be the same afterwards, where the workspace promises that.
async fn swapped(at: &Place, script: &str, operations: impl AsyncFn(u32)) {
    for file in ["f", "victim", "d/f"] {
        if file == "d/f" {
            at.fixture.plant(&at.site, &at.outside("keep"), b"outside").await;
        } else {
            at.fixture.plant(&at.site, &at.outside(file), b"outside").await;
        }
    }
    let before = at.outside_snapshot().await;
    let done = AtomicBool::new(false);
    let swapping = async {
        let ran = at.run(at.sh(script)).await;
        done.store(true, Ordering::Relaxed);
        assert!(ran.success(), "the swapping script failed\n{ran}");
    };
    let operating = async {
        let mut round = 0;
        while !done.load(Ordering::Relaxed) {
            operations(round).await;
            round += 1;
        }
        assert!(round > 0);
    };
    tokio::join!(swapping, operating);
    let after = at.outside_snapshot().await;
    if at.ws().capabilities().confined_under_races {
        assert_eq!(after, before, "something outside was changed");
    }
    at.put("still/here", "x").await;
}

/// Checks that an operation that lost the race says so, and never reads what is outside.
fn check<T: AsRef<[u8]>>(at: &Place, result: Result<T>) {
    match result {
        Ok(data) if at.ws().capabilities().confined_under_races => {
            assert_ne!(data.as_ref(), b"outside", "a file outside was read");
        }
        Ok(_) => {}
        Err(
            Error::OutsideWorkspace { .. }
            | Error::NotFound { .. }
            | Error::NotADirectory { .. }
            | Error::IsADirectory { .. }
            | Error::AlreadyExists { .. }
            | Error::DirectoryNotEmpty { .. }
            | Error::TooManyLinks { .. }
            | Error::Changed { .. }
            | Error::Archive { .. }
            | Error::Unsupported { .. }
            | Error::Spawn { .. },
        ) => {}
        // A name that changes all the time may be given up with the system's words.
        Err(Error::Io { source, .. }) => assert!(
            !matches!(source.kind(), std::io::ErrorKind::Other | std::io::ErrorKind::InvalidData),
            "{source:?}"
        ),
        Err(error) => panic!("an operation that lost a race gave {error:?}"),
    }
}

/// A script that makes `d` the directory `real` and a link to the outside in turn, 500 times. An
/// operation may make a `d` in between, which goes; with `-T` nothing is ever moved into anything.
fn swap_directory(at: &Place) -> String {
    format!(
        "i=0; while [ $i -lt 500 ]; do mv -T real d 2>/dev/null || rm -rf d; \
         mv -T d real 2>/dev/null || rm -rf d; ln -s {} d 2>/dev/null; rm -f d 2>/dev/null; i=$((i+1)); done",
        at.climbing("").trim_end_matches('/')
    )
}

/// A directory becomes a link to the outside and back 500 times, under every operation.
pub async fn a_directory_swapped_for_a_link_is_never_left_through(at: &Place) {
    at.put("real/f", "inside").await;
    at.put("real/victim", "inside").await;
    at.put("source", "inside").await;
    let script = swap_directory(at);
    let (f, victim, new, deep) = (name("d/f"), name("d/victim"), name("d/new"), name("d/a/b"));
    let ws = at.ws();
    swapped(at, &script, async |round| match round % 10 {
        0 | 5 => check(at, ws.read(&f, 100).await),
        1 => check(at, ws.write(&new, "x".into(), Default::default()).await.map(|_| "")),
        2 => check(at, ws.create_dir_all(&deep).await.map(|()| "")),
        3 => check(at, ws.remove(&victim).await.map(|()| "")),
        4 => {
            let tar = Tarball::new().file("t", b"x", 0o644).content();
            check(at, ws.put_archive(&name("d"), tar, Default::default()).await.map(|_| ""));
        }
        6 => check(at, ws.set_mode(&f, 0o640).await.map(|()| "")),
        7 => check(at, ws.copy(&name("source"), &name("d/copy")).await.map(|_| "")),
        8 => check(at, ws.remove_all(&name("d/a")).await.map(|()| "")),
        _ => check(at, ws.rename(&f, &f).await.map(|()| "")),
    })
    .await;
}

/// A file becomes a link to the outside and back 500 times.
pub async fn a_file_swapped_for_a_link_is_never_left_through(at: &Place) {
    at.put("real", "inside").await;
    let script = format!(
        "ln -s {} link; mv real f; i=0; while [ $i -lt 500 ]; do mv f real; mv link f; mv f link; mv real f; \
         i=$((i+1)); done",
        at.climbing("f")
    );
    let f = name("f");
    swapped(at, &script, async |round| match round % 4 {
        0 | 2 => check(at, at.ws().read(&f, 100).await),
        1 => check(at, at.ws().write(&f, "inside".into(), Default::default()).await.map(|_| "")),
        _ => check(at, at.ws().set_mode(&f, 0o600).await.map(|()| "")),
    })
    .await;
}

/// A command whose directory is swapped runs inside or not at all.
pub async fn a_command_never_starts_outside_while_its_directory_is_swapped(at: &Place) {
    at.done("mkdir real; echo in > real/f").await;
    let script = swap_directory(at);
    swapped(at, &script, async |_| match at.ws().exec(at.program("cat", ["f"]).dir("d")).await {
        Ok(output) => {
            assert!(!output.stdout.to_text().contains("outside"), "a command ran outside: {output:?}");
        }
        Err(error) => check::<&str>(at, Err(error)),
    })
    .await;
    at.done("rm -r still").await;
    at.ws().exec(at.sh("exit 0")).await.must("run after the race");
}
