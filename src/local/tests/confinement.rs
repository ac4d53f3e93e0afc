//! That the errors of confinement are told apart from all others.

use std::os::unix::fs::symlink;

use super::{Fixture, path};
use crate::error::Error;
use crate::workspace::{Workspace as _, WorkspaceExt as _};

#[test]
fn an_escape_has_a_kind_and_no_number() {
    let fixture = Fixture::new();
    symlink("..", fixture.host("up")).unwrap();
    let ambient = cap_std::ambient_authority();
    let dir = cap_std::fs::Dir::open_ambient_dir(fixture.host("."), ambient).unwrap();
    let escape = dir.open_dir("up").unwrap_err();
    assert_eq!((escape.kind(), escape.raw_os_error()), (std::io::ErrorKind::PermissionDenied, None));
    assert!(super::super::root::error("open", "up", escape).is_outside());
    let denied = std::io::Error::from_raw_os_error(libc::EACCES);
    assert!(matches!(super::super::root::error("open", "a", denied), Error::PermissionDenied { .. }));
}

#[tokio::test]
async fn every_operation_refuses_a_name_that_leaves_through_a_link() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.outside("beside")).unwrap();
    std::fs::write(fixture.outside("beside/secret"), "s").unwrap();
    std::fs::create_dir(fixture.host("inside")).unwrap();
    symlink("../beside", fixture.host("relative")).unwrap();
    symlink(fixture.host("inside"), fixture.host("absolute")).unwrap();
    let w = &fixture.workspace;
    for dir in ["relative", "absolute"] {
        let file = path(&format!("{dir}/secret"));
        let other = path("other");
        let dir = path(dir);
        let outside = |what: &str, error: Option<Error>| {
            assert!(error.as_ref().is_some_and(Error::is_outside), "{what} {dir}: {error:?}");
        };
        outside("open", w.open(&file, Default::default()).await.err());
        outside("metadata", w.metadata(&file).await.err());
        outside("symlink_metadata", w.symlink_metadata(&file).await.err());
        outside("read_link", w.read_link(&file).await.err());
        outside("read_dir", w.read_dir(&dir, Default::default()).await.err());
        outside("write", w.write(&file, "x".into(), Default::default()).await.err());
        outside("remove", w.remove(&file).await.err());
        outside("remove_all", w.remove_all(&file).await.err());
        outside("rename from", w.rename(&file, &other).await.err());
        outside("rename to", w.rename(&other, &file).await.err());
        outside("create_dir_all", w.create_dir_all(&path(&format!("{dir}/a/b"))).await.err());
        outside("set_mode", w.set_mode(&file, 0o777).await.err());
        outside("copy from", w.copy(&file, &other).await.err());
        outside("put_archive", w.put_archive(&dir, "".into(), Default::default()).await.err());
        outside("get_archive", w.get_archive(&dir, Default::default()).await.err());
        // A link in the last component is itself inside.
        assert!(w.symlink_metadata(&dir).await.unwrap().is_symlink());
        w.remove_all(&dir).await.unwrap();
    }
    assert_eq!(std::fs::read(fixture.outside("beside/secret")).unwrap(), b"s");
}

#[tokio::test]
async fn links_inside_are_followed_also_by_a_write() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.host("a/b")).unwrap();
    symlink("a/b", fixture.host("dir")).unwrap();
    symlink("dir/../one", fixture.host("first")).unwrap();
    symlink("../../first", fixture.host("a/b/second")).unwrap();
    let w = &fixture.workspace;
    fixture.write("dir/second", "text").await.unwrap();
    assert_eq!(std::fs::read(fixture.host("a/one")).unwrap(), b"text");
    assert!(w.symlink_metadata(&path("first")).await.unwrap().is_symlink());
    fixture.write("a/b/second", "more").await.unwrap();
    assert_eq!(w.read(&path("first"), 10).await.unwrap(), b"more");
    symlink("loop", fixture.host("loop")).unwrap();
    assert!(matches!(fixture.write("loop", "").await, Err(Error::TooManyLinks { .. })));
    symlink("../beside", fixture.host("dangling")).unwrap();
    assert!(fixture.write("dangling", "").await.unwrap_err().is_outside());
    assert!(!fixture.outside("beside").exists());
}

#[tokio::test]
async fn a_removed_root_is_gone() {
    let fixture = Fixture::new();
    std::fs::remove_dir(fixture.host(".").canonicalize().unwrap()).unwrap();
    let w = &fixture.workspace;
    let error = w.metadata(&path("a")).await.unwrap_err();
    assert!(matches!(error, Error::Gone { why: crate::GoneReason::RootRemoved }), "{error:?}");
    assert!(fixture.write("a", "").await.unwrap_err().is_gone());
}

#[tokio::test]
async fn a_closed_workspace_does_nothing_more() {
    let fixture = Fixture::new();
    fixture.write("a", "text").await.unwrap();
    let reader = fixture.workspace.open(&path("a"), Default::default()).await.unwrap();
    fixture.workspace.close().await.unwrap();
    fixture.workspace.close().await.unwrap();
    assert!(matches!(reader.read_all().await, Err(Error::Closed)));
    assert!(matches!(fixture.write("b", "").await, Err(Error::Closed)));
    assert!(!fixture.host("b").exists());
}
