//! How a file is replaced, what is left when that fails, and when it is written in place.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::{Fixture, path};
use crate::error::Error;
use crate::files::{Content, WriteMethod, WriteOptions};
use crate::workspace::Workspace as _;

/// A reader that gives one piece and then fails.
struct Failing(bool);

impl AsyncRead for Failing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(Err(std::io::ErrorKind::NotFound.into()));
        }
        buf.put_slice(b"part");
        Poll::Ready(Ok(()))
    }
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_new_file_gets_its_mode_and_its_parents_under_no_umask() {
    let fixture = Fixture::new();
    let options = WriteOptions::default().mode(0o4777);
    fixture.workspace.write(&path("a/b/c"), "x".into(), options).await.unwrap();
    assert_eq!(mode(&fixture.host("a/b/c")), 0o4777);
    assert_eq!(mode(&fixture.host("a")), 0o755);
    let options = WriteOptions::default().parents(false);
    let error = fixture.workspace.write(&path("x/y"), "x".into(), options).await.unwrap_err();
    assert!(error.is_not_found());
}

#[tokio::test]
async fn an_existing_file_keeps_mode_and_owner() {
    let fixture = Fixture::new();
    std::fs::write(fixture.host("a"), "old").unwrap();
    std::fs::set_permissions(fixture.host("a"), std::fs::Permissions::from_mode(0o4750)).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        chown(fixture.host("a"), Some(12), Some(34)).unwrap();
        std::fs::set_permissions(fixture.host("a"), std::fs::Permissions::from_mode(0o4750)).unwrap();
    }
    let before = std::fs::metadata(fixture.host("a")).unwrap();
    let written = fixture.write("a", "new").await.unwrap();
    let after = std::fs::metadata(fixture.host("a")).unwrap();
    assert_eq!(written.method, WriteMethod::Atomic);
    assert_ne!(before.ino(), after.ino());
    assert_eq!((before.mode(), before.uid(), before.gid()), (after.mode(), after.uid(), after.gid()));
}

#[tokio::test]
async fn content_that_fails_leaves_the_old_file_and_no_temporary() {
    let fixture = Fixture::new();
    fixture.write("a", "old").await.unwrap();
    let content = Content::reader(Failing(false));
    let error = fixture.workspace.write(&path("a"), content, Default::default()).await.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert_eq!(std::fs::read(fixture.host("a")).unwrap(), b"old");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_dropped_write_removes_its_temporary() {
    let fixture = Fixture::new();
    fixture.write("a", "old").await.unwrap();
    let (_keep, never) = tokio::io::duplex(1);
    let name = path("a");
    let mut write = fixture.workspace.write(&name, Content::reader(never), Default::default());
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while fixture.leftovers().is_empty() {
        assert!(std::time::Instant::now() < deadline, "the write never began");
        let _ = tokio::time::timeout(Duration::from_millis(1), &mut write).await;
    }
    drop(write);
    fixture.workspace.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
    assert_eq!(std::fs::read(fixture.host("a")).unwrap(), b"old");
}

#[tokio::test]
async fn a_mount_point_is_written_in_place() {
    let fixture = Fixture::new();
    std::fs::write(fixture.outside("source"), "old content").unwrap();
    std::fs::write(fixture.host("a"), "").unwrap();
    let target = fixture.host("a").canonicalize().unwrap();
    if rustix::process::geteuid().is_root() && bind(&fixture.outside("source"), &target) {
        let bytes = fixture.write("a", "new").await;
        let content = Content::reader(&b"newer"[..]);
        let pieces = fixture.workspace.write(&path("a"), content, Default::default()).await;
        let failing = Content::reader(Failing(false));
        let failed = fixture.workspace.write(&path("a"), failing, Default::default()).await;
        let status = std::process::Command::new("umount").arg(&target).status().unwrap();
        assert!(status.success());
        assert_eq!(bytes.unwrap().method, WriteMethod::InPlace);
        assert_eq!(pieces.unwrap().method, WriteMethod::InPlace);
        assert!(failed.is_err());
        assert_eq!(std::fs::read(fixture.outside("source")).unwrap(), b"newer");
        assert_eq!(fixture.leftovers(), [""; 0]);
    }
}

fn bind(source: &std::path::Path, target: &std::path::Path) -> bool {
    std::process::Command::new("mount")
        .arg("--bind")
        .args([source, target])
        .status()
        .is_ok_and(|s| s.success())
}

#[tokio::test]
async fn a_full_file_system_keeps_the_old_content() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.host("small")).unwrap();
    let target = fixture.host("small").canonicalize().unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&target);
    if rustix::process::geteuid().is_root() && mount.status().is_ok_and(|s| s.success()) {
        fixture.write("small/a", "old").await.unwrap();
        let big = Content::reader(tokio::io::repeat(7).take(1 << 20));
        let full = fixture.workspace.write(&path("small/a"), big, Default::default()).await;
        let names = std::fs::read_dir(&target).unwrap().count();
        let kept = std::fs::read(target.join("a")).unwrap();
        let status = std::process::Command::new("umount").arg(&target).status().unwrap();
        assert!(status.success());
        assert!(matches!(full, Err(Error::StorageFull { .. })), "{full:?}");
        assert_eq!((names, kept.as_slice()), (1, &b"old"[..]));
    }
}

#[tokio::test]
async fn a_large_reader_is_written_and_read_back() {
    let fixture = Fixture::new();
    let size = 64 << 20;
    let content = Content::reader(tokio::io::repeat(3).take(size));
    let written = fixture.workspace.write(&path("big"), content, Default::default()).await.unwrap();
    assert_eq!(written.bytes, size);
    let mut reader = fixture.workspace.open(&path("big"), Default::default()).await.unwrap();
    let read = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await.unwrap();
    assert_eq!(read, size);
}
