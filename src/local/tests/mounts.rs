//! What other file systems below the root answer. The tests mount some, in a mount namespace that
//! goes with the process they re-execute themselves in.

use std::path::Path;
use std::process::Command;

use super::super::test_support::needs_root;
use super::{Fixture, path};
use crate::error::Error;
use crate::workspace::Workspace as _;

/// Set in the process that may mount.
const INSIDE: &str = "AGENTWORKSPACE_TEST_MAY_MOUNT";

/// Whether this process may mount. If not, the test `name` was run in one that may.
fn may_mount(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    needs_root();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("local::tests::mounts::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("this test needs `unshare`");
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{complaints}");
    assert!(printed.contains("1 passed"), "nothing was run: {printed}");
    false
}

fn mount(options: &str, at: &Path) {
    std::fs::create_dir_all(at).unwrap();
    let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
    assert!(status.expect("this test needs `mount`").success(), "mounting {} failed", at.display());
}

#[tokio::test]
async fn a_rename_to_another_file_system_is_told_apart() {
    if !may_mount("a_rename_to_another_file_system_is_told_apart") {
        return;
    }
    let fixture = Fixture::new();
    mount("size=1m", &fixture.host("mount"));
    fixture.write("file", "old").await.unwrap();
    let error = fixture.workspace.rename(&path("file"), &path("mount/file")).await.unwrap_err();
    assert!(matches!(error, Error::CrossesDevices { .. }), "{error:?}");
    assert_eq!(std::fs::read(fixture.host("file")).unwrap(), b"old");
    assert!(!fixture.host("mount/file").exists());
}

#[tokio::test]
async fn a_full_file_system_keeps_the_old_file_and_no_part_of_the_new_one() {
    if !may_mount("a_full_file_system_keeps_the_old_file_and_no_part_of_the_new_one") {
        return;
    }
    let fixture = Fixture::new();
    mount("size=256k", &fixture.host("mount"));
    fixture.write("mount/file", "old").await.unwrap();
    let error = fixture.write("mount/file", &"x".repeat(1 << 20)).await.unwrap_err();
    assert!(matches!(error, Error::StorageFull { .. }), "{error:?}");
    assert_eq!(std::fs::read(fixture.host("mount/file")).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(fixture.host("mount")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_read_only_file_system_refuses_every_change() {
    if !may_mount("a_read_only_file_system_refuses_every_change") {
        return;
    }
    let fixture = Fixture::new();
    mount("size=1m", &fixture.host("mount"));
    std::fs::write(fixture.host("mount/file"), "old").unwrap();
    mount("remount,ro", &fixture.host("mount"));
    let (w, file) = (&fixture.workspace, path("mount/file"));
    for error in [
        fixture.write("mount/file", "new").await.unwrap_err(),
        fixture.write("mount/other", "new").await.unwrap_err(),
        w.set_mode(&file, 0o600).await.unwrap_err(),
        w.rename(&file, &path("mount/other")).await.unwrap_err(),
        w.remove(&file).await.unwrap_err(),
        w.remove_all(&file).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    }
    assert_eq!(std::fs::read(fixture.host("mount/file")).unwrap(), b"old");
}

#[tokio::test]
async fn a_busy_mount_is_emptied_and_named() {
    if !may_mount("a_busy_mount_is_emptied_and_named") {
        return;
    }
    let fixture = Fixture::new();
    mount("size=1m", &fixture.host("tree/mount"));
    fixture.write("tree/mount/file", "x").await.unwrap();
    let error = fixture.workspace.remove_all(&path("tree")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(libc::EBUSY)),
        "{error:?}"
    );
    assert!(!fixture.host("tree/mount/file").exists());
    assert!(fixture.host("tree/mount").exists());
}
