//! Opening and reading regular files, whole and in part.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::place::{Must as _, Place, assert_error, name};
use crate::{Error, FileKind, OpenOptions, WorkspaceExt as _};

cases!("read" {
    reads_a_whole_file_and_knows_what_it_was [Files];
    reads_parts_and_nothing_beyond_the_end [Files];
    a_file_over_the_limit_is_refused_at_once [Files];
    a_file_that_grows_never_gives_more_than_the_limit [Files];
    a_file_that_grows_is_read_to_the_size_it_had_or_beyond [Files];
    a_file_that_shrinks_ends_where_it_ends [Files];
    what_is_not_there_or_no_file_is_told_apart [Files];
    fifos_and_devices_fail_at_once [Files];
    forty_links_are_followed_and_no_more [Files];
    an_error_while_reading_is_a_workspace_error [Files];
    a_dropped_reader_releases_what_it_held [Files];
    unreadable_files_are_permission_denied [Files];
});

/// The reader gives every byte, and the metadata of the moment it was opened.
pub async fn reads_a_whole_file_and_knows_what_it_was(at: &Place) {
    let data: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    at.put("f", data.clone()).await;
    let reader = at.ws().open(&name("f"), OpenOptions::default()).await.must("open");
    assert_eq!(reader.metadata().kind, FileKind::File);
    assert_eq!(reader.metadata().size, data.len() as u64);
    assert_eq!(reader.metadata().mode, 0o644);
    assert!(reader.read_all().await.must("read") == data, "the bytes differ");
    at.put("empty", "").await;
    assert_eq!(at.get("empty").await, b"");
}

/// Offset and length select a part; beyond the end is nothing, not an error.
pub async fn reads_parts_and_nothing_beyond_the_end(at: &Place) {
    let text = "0123456789";
    at.put("f", text).await;
    for offset in [0u64, 1, 5, 9, 10, 11, 1000] {
        for length in [None, Some(0), Some(1), Some(4), Some(100)] {
            let mut options = OpenOptions::default().offset(offset);
            options.length = length;
            let got = at.ws().open(&name("f"), options).await.must("open").read_all().await.must("read");
            let start = (offset as usize).min(10);
            let end = length.map_or(10, |length| (start + length as usize).min(10));
            assert_eq!(got, &text.as_bytes()[start..end], "offset {offset}, length {length:?}");
        }
    }
    let part = OpenOptions::default().offset(3).length(2).max_size(10);
    assert_eq!(at.ws().open(&name("f"), part).await.must("open").read_all().await.must("read"), b"34");
}

/// `max_size` is about the file, not about the part that is read.
pub async fn a_file_over_the_limit_is_refused_at_once(at: &Place) {
    at.put("f", "12345").await;
    assert_eq!(at.ws().read(&name("f"), 5).await.must("read"), b"12345");
    assert_error!(at.ws().read(&name("f"), 4).await, Error::TooLarge { limit: 4, .. });
    let part = OpenOptions::default().length(1).max_size(4);
    assert_error!(at.ws().open(&name("f"), part).await, Error::TooLarge { .. });
    assert_error!(at.ws().read(&name("f"), 0).await, Error::TooLarge { limit: 0, .. });
}

/// A file that grows past the limit while it is read never gives more bytes than the limit.
pub async fn a_file_that_grows_never_gives_more_than_the_limit(at: &Place) {
    at.put("f", "12345").await;
    let reader = at.ws().open(&name("f"), OpenOptions::default().max_size(10)).await.must("open");
    at.done("i=0; while [ $i -lt 100 ]; do echo more; i=$((i+1)); done >> f").await;
    match reader.read_all().await {
        Err(Error::TooLarge { limit: 10, .. } | Error::Changed { .. }) => {}
        Ok(data) => assert_eq!(data, b"12345", "what was read is the file as it was opened"),
        Err(error) => panic!("expected TooLarge, got {error:?}"),
    }
}

/// Without a limit nothing of the file as it was opened is missing.
pub async fn a_file_that_grows_is_read_to_the_size_it_had_or_beyond(at: &Place) {
    at.put("f", vec![b'a'; 100_000]).await;
    let mut reader = at.ws().open(&name("f"), OpenOptions::default()).await.must("open");
    let mut first = [0; 10];
    reader.read_exact(&mut first).await.must("read the first bytes");
    at.done("echo more >> f").await;
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.must("read the rest");
    assert!(rest.len() >= 99_990 && rest[..99_990].iter().all(|byte| *byte == b'a'), "{}", rest.len());
}

/// A file that was cut gives the start of what it held.
pub async fn a_file_that_shrinks_ends_where_it_ends(at: &Place) {
    at.put("f", vec![b'a'; 4 << 20]).await;
    let reader = at.ws().open(&name("f"), OpenOptions::default()).await.must("open");
    at.done("echo -n aaa > f").await;
    match tokio::time::timeout(Duration::from_secs(30), reader.read_all()).await.must("end in time") {
        Ok(data) => assert!(data.len() <= 4 << 20 && data.iter().all(|byte| *byte == b'a')),
        Err(error) => panic!("a file that shrinks is not an error: {error:?}"),
    }
}

/// Missing, a directory, and a file where a directory is wanted are different errors.
pub async fn what_is_not_there_or_no_file_is_told_apart(at: &Place) {
    at.put("d/f", "x").await;
    let open = OpenOptions::default();
    assert_error!(at.ws().open(&name("missing"), open).await, Error::NotFound { .. });
    assert_error!(at.ws().open(&name("no/such/dir"), open).await, Error::NotFound { .. });
    assert_error!(at.ws().open(&name("d"), open).await, Error::IsADirectory { .. });
    assert_error!(at.ws().open(&name("."), open).await, Error::IsADirectory { .. });
    assert_error!(at.ws().open(&name("d/f/x"), open).await, Error::NotADirectory { .. });
    let error = at.ws().open(&name("missing"), open).await.expect_err("it is missing");
    assert_eq!(error.path(), Some("missing"), "an error says which name it is about");
    assert!(!at.ws().exists(&name("missing")).await.must("look"));
}

/// Neither blocks, for any operation, and both say what they are.
pub async fn fifos_and_devices_fail_at_once(at: &Place) {
    let made = at.run(at.sh("mkfifo fifo && mknod dev c 1 3 2>/dev/null || true; ls")).await;
    let special: &[(&str, FileKind)] = match made.out().contains("dev") {
        true => &[("fifo", FileKind::Fifo), ("dev", FileKind::CharDevice)],
        // The workspace's user may not make devices.
        false => &[("fifo", FileKind::Fifo)],
    };
    for (file, kind) in special {
        let path = name(file);
        let operations = async {
            let opened = at.ws().open(&path, OpenOptions::default()).await;
            match opened {
                Err(Error::NotAFile { kind: found, .. }) => assert_eq!(found, *kind),
                other => panic!("opening a {kind} must be refused, and gave {other:?}"),
            }
            assert_error!(at.ws().write(&path, "x".into(), Default::default()).await, Error::NotAFile { .. });
            assert_error!(at.ws().read_dir(&path, Default::default()).await, Error::NotADirectory { .. });
            assert_error!(at.ws().copy(&path, &name("copy")).await, Error::NotAFile { .. });
            assert_eq!(at.ws().metadata(&path).await.must("stat").kind, *kind);
            assert_eq!(at.ws().symlink_metadata(&path).await.must("stat").kind, *kind);
        };
        tokio::time::timeout(Duration::from_secs(20), operations).await.must("not block");
    }
}

/// A chain of 40 links is followed, one of 41 and a loop are not.
pub async fn forty_links_are_followed_and_no_more(at: &Place) {
    at.put("l0", "end").await;
    at.done("i=0; while [ $i -lt 41 ]; do ln -s l$i l$((i+1)); i=$((i+1)); done; ln -s loop loop").await;
    assert_eq!(at.text("l40").await, "end");
    let open = OpenOptions::default();
    assert_error!(at.ws().open(&name("l41"), open).await, Error::TooManyLinks { .. });
    assert_error!(at.ws().metadata(&name("loop")).await, Error::TooManyLinks { .. });
    assert_error!(
        at.ws().write(&name("loop"), "x".into(), Default::default()).await,
        Error::TooManyLinks { .. }
    );
    assert_error!(at.ws().open(&name("loop/x"), open).await, Error::TooManyLinks { .. });
    assert!(at.ws().symlink_metadata(&name("loop")).await.must("stat").is_symlink());
}

/// The error in the middle of a stream is the workspace's own.
pub async fn an_error_while_reading_is_a_workspace_error(at: &Place) {
    at.put("f", "12345").await;
    let mut reader = at.ws().open(&name("f"), OpenOptions::default().max_size(8)).await.must("open");
    at.done("echo more and more >> f").await;
    let mut data = Vec::new();
    if let Err(error) = reader.read_to_end(&mut data).await {
        let error = Error::from_io("read", "f", error);
        assert!(matches!(error, Error::TooLarge { .. } | Error::Changed { .. }), "{error:?}");
    }
}

/// Readers that are dropped before their end hold nothing back.
pub async fn a_dropped_reader_releases_what_it_held(at: &Place) {
    at.put("f", vec![7; 3 << 20]).await;
    for _ in 0..40 {
        let mut reader = at.ws().open(&name("f"), OpenOptions::default()).await.must("open");
        assert_eq!(reader.read_u8().await.must("read a byte"), 7);
    }
    assert_eq!(at.get("f").await.len(), 3 << 20);
}

/// The permissions of the workspace's user apply where it says so.
pub async fn unreadable_files_are_permission_denied(at: &Place) {
    at.put("d/f", "x").await;
    at.done("chmod 000 d/f").await;
    if at.fixture.ids().0 == 0 || !at.ws().capabilities().files_as_user {
        assert_eq!(at.get("d/f").await, b"x");
        return;
    }
    assert_error!(at.ws().open(&name("d/f"), OpenOptions::default()).await, Error::PermissionDenied { .. });
    at.done("chmod 000 d").await;
    assert_error!(at.ws().metadata(&name("d/f")).await, Error::PermissionDenied { .. });
    assert_error!(
        at.ws().write(&name("d/g"), "x".into(), Default::default()).await,
        Error::PermissionDenied { .. }
    );
    at.done("chmod 755 d").await;
}
