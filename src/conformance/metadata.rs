//! What is told about a name, and changing its mode.

use std::time::{Duration, UNIX_EPOCH};

use super::place::{Must as _, Place, assert_error, name};
use crate::{Error, FileKind, WorkspaceExt as _};

cases!("metadata" {
    metadata_agrees_with_what_processes_see [Files];
    links_are_followed_or_not_as_asked [Files];
    missing_names_are_not_found [Files];
    set_mode_is_exact_and_follows_links [Files, ChangeTree];
    set_mode_refuses_what_it_cannot_do [Files, ChangeTree];
});

/// Kind, size, mode, owner and time are those that `stat` shows.
pub async fn metadata_agrees_with_what_processes_see(at: &Place) {
    at.done("echo hello > f; chmod 4751 f; mkdir d; chmod 1777 d; touch -d '2001-02-03 04:05:06' f").await;
    for (file, kind) in [("f", FileKind::File), ("d", FileKind::Directory)] {
        let metadata = at.ws().metadata(&name(file)).await.must("stat");
        let seen = at.done(&format!("stat -c '%a %u %g %s %Y' {file}")).await;
        let seen: Vec<&str> = seen.split_whitespace().collect();
        assert_eq!(metadata.kind, kind);
        assert_eq!(format!("{:o}", metadata.mode), seen[0], "{file}");
        if at.ws().capabilities().owners {
            let owner = (metadata.uid.map(|id| id.to_string()), metadata.gid.map(|id| id.to_string()));
            assert_eq!(owner, (Some(seen[1].to_owned()), Some(seen[2].to_owned())), "{file}");
        } else {
            assert_eq!((metadata.uid, metadata.gid), (None, None));
        }
        let seconds = metadata.modified.duration_since(UNIX_EPOCH).must("be after 1970").as_secs();
        assert_eq!(seconds.to_string(), seen[4], "{file}");
    }
    assert_eq!(at.ws().metadata(&name("f")).await.must("stat").size, 6);
    assert_eq!(at.ws().metadata(&name("f")).await.must("stat").mode, 0o4751);
    assert_eq!(at.ws().metadata(&name("d")).await.must("stat").mode, 0o1777);
}

/// `metadata` describes the target, `symlink_metadata` the link.
pub async fn links_are_followed_or_not_as_asked(at: &Place) {
    at.put("d/f", "12345").await;
    at.done("ln -s d/f link; ln -s d dir").await;
    assert_eq!(at.ws().metadata(&name("link")).await.must("stat").size, 5);
    assert_eq!(at.ws().metadata(&name("dir")).await.must("stat").kind, FileKind::Directory);
    let link = at.ws().symlink_metadata(&name("link")).await.must("stat");
    assert_eq!((link.kind, link.size), (FileKind::Symlink, 3), "the size is the length of the target");
    assert!(at.ws().symlink_metadata(&name("dir/f")).await.must("stat").is_file(), "parents are followed");
}

/// Missing, and a link to nothing inside.
pub async fn missing_names_are_not_found(at: &Place) {
    at.put("f", "x").await;
    at.done("ln -s gone dangling").await;
    assert_error!(at.ws().metadata(&name("missing")).await, Error::NotFound { .. });
    assert_error!(at.ws().metadata(&name("no/such")).await, Error::NotFound { .. });
    assert_error!(at.ws().metadata(&name("dangling")).await, Error::NotFound { .. });
    assert_error!(at.ws().metadata(&name("f/x")).await, Error::NotADirectory { .. });
    assert_error!(at.ws().symlink_metadata(&name("f/x")).await, Error::NotADirectory { .. });
    assert!(at.ws().symlink_metadata(&name("dangling")).await.must("stat").is_symlink());
    assert!(!at.ws().exists(&name("dangling")).await.must("look"));
}

/// Under no umask, on files and directories, through links.
pub async fn set_mode_is_exact_and_follows_links(at: &Place) {
    at.put("d/f", "x").await;
    at.done("ln -s d/f link").await;
    let before = at.ws().metadata(&name("d/f")).await.must("stat").modified;
    for mode in [0o600, 0o777, 0o4755, 0o444, 0o644] {
        at.ws().set_mode(&name("link"), mode).await.must("set a mode");
        assert_eq!(at.done("stat -c %a d/f").await.trim(), format!("{mode:o}"));
    }
    at.ws().set_mode(&name("d"), 0o1770).await.must("set a mode");
    assert_eq!(at.done("stat -c %a d; readlink link").await, "1770\nd/f\n");
    let after = at.ws().metadata(&name("d/f")).await.must("stat").modified;
    assert!(after.duration_since(before).unwrap_or_default() < Duration::from_millis(1), "the time stays");
    assert_eq!(at.text("d/f").await, "x");
}

/// A missing name and an impossible mode.
pub async fn set_mode_refuses_what_it_cannot_do(at: &Place) {
    at.put("f", "x").await;
    assert_error!(at.ws().set_mode(&name("missing"), 0o600).await, Error::NotFound { .. });
    assert_error!(at.ws().set_mode(&name("f"), 0o10000).await, Error::InvalidArgument { .. });
    assert_error!(at.ws().set_mode(&name("f"), u32::MAX).await, Error::InvalidArgument { .. });
    assert_eq!(at.ws().metadata(&name("f")).await.must("stat").mode, 0o644);
    assert_error!(at.ws().set_mode(&name("f/x"), 0o600).await, Error::NotADirectory { .. });
    assert!(at.ws().exists(&name("f")).await.must("look"));
}
