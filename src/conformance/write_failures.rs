//! Writes that fail or are refused, and that nothing is replaced then.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::place::{Must as _, Place, assert_error, name};
use crate::eventually::eventually;
use crate::{Content, Error, WorkspaceExt as _, WriteOptions};

cases!("write" {
    content_that_fails_replaces_nothing [Files];
    content_of_the_wrong_length_replaces_nothing [Files];
    a_dropped_write_leaves_the_old_content [Files];
    directories_are_refused [Files];
    a_file_as_a_parent_is_refused [Files];
    a_read_only_directory_is_permission_denied [Files];
});

/// Gives some bytes and then fails, or never goes on.
struct Broken {
    left: usize,
    fails: bool,
}

impl AsyncRead for Broken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return match self.fails {
                true => Poll::Ready(Err(io::Error::other("the source broke"))),
                false => Poll::Pending,
            };
        }
        let count = self.left.min(buf.remaining());
        buf.put_slice(&vec![b'n'; count]);
        self.left -= count;
        Poll::Ready(Ok(()))
    }
}

/// The error of the source is returned; an old file stays, a new one is not made.
pub async fn content_that_fails_replaces_nothing(at: &Place) {
    at.put("d/old", "old").await;
    for file in ["d/old", "d/new"] {
        for left in [0, 10, 300_000] {
            let content = Content::reader(Broken { left, fails: true });
            let error = at.ws().write(&name(file), content, WriteOptions::default()).await;
            let error = error.expect_err("the content fails");
            let text = format!("{error:?}");
            assert!(text.contains("the source broke"), "the reason is passed on: {text}");
        }
    }
    assert_eq!(at.done("ls -A d; cat d/old").await, "old\nold");
}

/// A reader that gives less or more than was announced fails.
pub async fn content_of_the_wrong_length_replaces_nothing(at: &Place) {
    at.put("f", "old").await;
    for announced in [0, 99, 101, 1 << 20] {
        let content = Content::sized_reader(tokio::io::repeat(b'x').take(100), announced);
        let result = at.ws().write(&name("f"), content, WriteOptions::default()).await;
        assert!(result.is_err(), "100 bytes where {announced} were announced: {result:?}");
    }
    assert_eq!(at.done("ls -A; cat f").await, "f\nold");
}

/// Dropping the future removes the temporary file; the file is whole.
pub async fn a_dropped_write_leaves_the_old_content(at: &Place) {
    at.put("d/f", "old").await;
    let content = Content::reader(Broken { left: 1 << 20, fails: false });
    let path = name("d/f");
    let write = at.ws().write(&path, content, WriteOptions::default());
    let dropped = tokio::time::timeout(Duration::from_millis(500), write).await;
    assert!(dropped.is_err(), "the content never ends");
    // No temporary file is left.
    eventually(Duration::from_secs(10), || at.done("ls -A d"), |listed| listed == "f\n").await;
    assert_eq!(at.text("d/f").await, "old");
}

/// A directory, the root and a link to a directory are not replaced.
pub async fn directories_are_refused(at: &Place) {
    at.put("d/f", "x").await;
    at.done("ln -s d link").await;
    for dir in ["d", ".", "link"] {
        let result = at.ws().write(&name(dir), "x".into(), WriteOptions::default()).await;
        assert_error!(result, Error::IsADirectory { .. });
    }
    assert_eq!(at.done("ls; readlink link").await, "d\nlink\nd\n");
}

/// A component that is a file is said so, and stays.
pub async fn a_file_as_a_parent_is_refused(at: &Place) {
    at.put("f", "x").await;
    for file in ["f/x", "f/x/y"] {
        let result = at.ws().write(&name(file), "x".into(), WriteOptions::default()).await;
        assert_error!(result, Error::NotADirectory { .. });
    }
    assert_error!(at.ws().create_dir_all(&name("f/x")).await, Error::NotADirectory { .. });
    assert_eq!(at.text("f").await, "x");
}

/// A directory that its user may not write to takes no file.
pub async fn a_read_only_directory_is_permission_denied(at: &Place) {
    at.put("d/f", "x").await;
    at.done("chmod 555 d").await;
    if at.fixture.ids().0 != 0 && at.ws().capabilities().files_as_user {
        let result = at.ws().write(&name("d/g"), "x".into(), WriteOptions::default()).await;
        assert_error!(result, Error::PermissionDenied { .. });
        assert!(!at.ws().exists(&name("d/g")).await.must("look"));
    }
    at.done("chmod 755 d").await;
}
