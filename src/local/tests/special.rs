//! What is neither a file nor a directory, temporary workspaces, deep trees.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};

use super::super::LocalWorkspace;
use super::super::test_support::running;
use super::{Fixture, path};
use crate::command::Command;
use crate::environment::Environment;
use crate::error::Error;
use crate::eventually::eventually;
use crate::files::FileKind;
use crate::workspace::Workspace as _;

#[tokio::test]
async fn fifos_and_sockets_fail_at_once() {
    let fixture = Fixture::new();
    mknodat(CWD, fixture.host("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.host("socket")).unwrap();
    let w = &fixture.workspace;
    for (name, kind) in [("fifo", FileKind::Fifo), ("socket", FileKind::Socket)] {
        let fifo = path(name);
        let opened = tokio::time::timeout(Duration::from_secs(5), w.open(&fifo, Default::default())).await;
        let written = tokio::time::timeout(Duration::from_secs(5), fixture.write(name, "x")).await;
        for error in [opened.unwrap().unwrap_err(), written.unwrap().unwrap_err()] {
            assert!(matches!(&error, Error::NotAFile { kind: found, .. } if *found == kind), "{error:?}");
        }
        assert_eq!(w.metadata(&path(name)).await.unwrap().kind, kind);
    }
}

#[tokio::test]
async fn a_temporary_workspace_is_private_and_goes_with_its_owner() {
    let workspace = LocalWorkspace::temporary(Environment::empty()).unwrap();
    let root = std::path::PathBuf::from(workspace.descriptor().root);
    assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o7777, 0o700);
    workspace.write(&path("a/b"), "x".into(), Default::default()).await.unwrap();
    workspace.close().await.unwrap();
    assert!(!root.exists());
    let dropped = LocalWorkspace::temporary(Environment::empty()).unwrap();
    let root = std::path::PathBuf::from(dropped.descriptor().root);
    let marker = format!("{}.{}", 1000 + std::process::id(), 77);
    let left = Command::shell(format!("(while :; do date >>late; done) & sleep {marker} >/dev/null 2>&1 &"))
        .env("PATH", "/usr/bin:/bin")
        .output_limit(0);
    dropped.exec(left).await.unwrap();
    let begun = || async { (running(&marker), root.join("late").exists()) };
    eventually(Duration::from_secs(5), begun, |begun| *begun == (1, true)).await;
    // Also where there is no runtime.
    std::thread::spawn(move || drop(dropped)).join().unwrap();
    eventually(Duration::from_secs(8), || async { root.exists() }, |there| !there).await;
    assert_eq!(running(&marker), 0);
}

#[tokio::test]
async fn names_that_are_not_utf8_are_listed_raw() {
    let fixture = Fixture::new();
    let raw = std::ffi::OsStr::from_bytes(b"a\xff");
    std::fs::write(fixture.host(".").join(raw), "").unwrap();
    let page = fixture.workspace.read_dir(&path("."), Default::default()).await.unwrap();
    assert_eq!(page.entries[0].name.as_bytes(), b"a\xff");
}

#[tokio::test]
async fn a_tree_deeper_than_any_path_is_removed() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.host("deep")).unwrap();
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = openat(CWD, fixture.host("deep"), flags, Mode::empty()).unwrap();
    for _ in 0..3000 {
        mkdirat(&dir, "sub", Mode::RWXU).unwrap();
        openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        dir = openat(&dir, "sub", flags, Mode::empty()).unwrap();
    }
    fixture.workspace.remove_all(&path("deep")).await.unwrap();
    assert!(!fixture.host("deep").exists());
}

#[tokio::test]
async fn a_wide_tree_with_links_is_removed_and_their_targets_stay() {
    let fixture = Fixture::new();
    std::fs::write(fixture.outside("kept"), "x").unwrap();
    std::fs::create_dir_all(fixture.host("wide/sub")).unwrap();
    for index in 0..3000 {
        std::fs::write(fixture.host(&format!("wide/f{index}")), "").unwrap();
    }
    std::os::unix::fs::symlink("../../..", fixture.host("wide/sub/up")).unwrap();
    std::os::unix::fs::symlink(fixture.outside("kept"), fixture.host("wide/kept")).unwrap();
    fixture.workspace.remove_all(&path("wide")).await.unwrap();
    assert!(!fixture.host("wide").exists());
    assert!(fixture.outside("kept").exists());
}
