//! Archives that are refused, entry by entry or as a whole.

use tar::EntryType;

use super::place::{Must as _, Place, assert_error, name};
use super::tarball::Tarball;
use crate::{Content, Error, Result, UnpackOptions, WorkspaceExt as _};

cases!("archive_in" {
    entries_outside_by_name_are_refused [Files, Archives];
    entries_through_links_are_refused [Files, Archives];
    links_may_point_anywhere [Files, Archives];
    hard_links_to_the_outside_are_refused [Files, Archives];
    devices_fifos_and_sockets_are_refused [Files, Archives];
    a_file_and_a_directory_do_not_replace_each_other [Files, Archives];
    a_compressed_stream_is_refused [Files, Archives];
    a_broken_stream_is_refused [Files, Archives];
    a_stream_that_fails_is_an_error [Files, Archives];
});

/// Unpacks `tar` into `t`.
async fn unpack(at: &Place, tar: Tarball) -> Result<crate::ArchiveReport> {
    at.ws().put_archive(&name("t"), tar.content(), UnpackOptions::default()).await
}

/// Checks that the entry is refused by its name, after the one before it was unpacked.
async fn assert_refused(at: &Place, entry: &str, tar: Tarball) {
    match unpack(at, tar).await {
        Err(Error::Archive { entry: named, .. }) => {
            assert_eq!(named.trim_end_matches('/'), entry.trim_end_matches('/'), "the error names the entry");
        }
        other => panic!("the entry {entry:?} must be refused, and gave {other:?}"),
    }
    // A backend may look at the whole archive before it writes anything.
    if at.ws().exists(&name("t/before")).await.must("look") {
        assert_eq!(at.text("t/before").await, "before", "entries before the refused one stay whole");
    }
    assert!(!at.ws().exists(&name("t/after")).await.must("look"), "nothing after it is unpacked");
}

/// A file that every refused archive begins with.
fn before() -> Tarball {
    Tarball::new().file("before", b"before", 0o644)
}

/// Absolute names and names that climb, in the header and in PAX records.
pub async fn entries_outside_by_name_are_refused(at: &Place) {
    at.put("beside", "kept").await;
    at.done("mkdir t").await;
    let outside = at.outside_snapshot().await;
    let (absolute, climbing) = (at.outside("x"), format!("../{}", at.climbing("x")));
    for bad in ["../beside", "a/../../beside", "..", "/x", "a/b/../../../beside", &absolute, &climbing] {
        let after = |tar: Tarball| tar.file("after", b"x", 0o644);
        assert_refused(at, bad, after(before().file(bad, b"bad", 0o644))).await;
        assert_refused(at, bad, after(before().entry(EntryType::Directory, bad, "", 0o700, b""))).await;
        assert_refused(at, bad, after(before().symlink(bad, "before"))).await;
        assert_refused(at, bad, after(before().pax(&[("path", bad)]).file("ok", b"bad", 0o644))).await;
    }
    assert_eq!(at.text("beside").await, "kept");
    assert_eq!(at.outside_snapshot().await, outside);
    assert_eq!(at.done("ls -A; ls -A t").await.replace("before\n", ""), "beside\nt\n");
}

/// What comes through a link that leaves is refused, whether it was there or came with the archive.
pub async fn entries_through_links_are_refused(at: &Place) {
    at.fixture.plant(&at.site, &at.outside("victim"), b"victim").await;
    let outside = at.outside_snapshot().await;
    let climbing = format!("../{}", at.climbing("")).trim_end_matches('/').to_owned();
    for target in [at.site.outside.clone(), climbing, "../..".to_owned(), "/".to_owned()] {
        for below in ["link/victim", "link/new", "link/deep/new"] {
            let entries: [&dyn Fn(Tarball) -> Tarball; 3] = [
                &|tar| tar.file(below, b"bad", 0o644),
                &|tar| tar.dir(&format!("{below}/"), 0o700),
                &|tar| tar.symlink(below, "before"),
            ];
            for entry in entries {
                let tar = before().symlink("link", &target);
                assert_refused(at, below, entry(tar).file("after", b"", 0o644)).await;
                at.done(&format!("mkdir -p t; rm -f t/link; ln -s '{target}' t/link")).await;
                assert_refused(at, below, entry(before()).file("after", b"", 0o644)).await;
            }
        }
        at.done("rm -f t/link").await;
    }
    assert_eq!(at.outside_snapshot().await, outside);
    assert_eq!(at.done("ls -A").await, "t\n");
}

/// A symbolic link is only bytes until somebody goes through it.
pub async fn links_may_point_anywhere(at: &Place) {
    let tar =
        before().symlink("a", "/etc").symlink("b", "../../..").symlink("c", "c").symlink("d", "/etc/x y");
    if !at.ws().capabilities().leaving_archive_links {
        return assert_refused(at, "b", before().symlink("b", "../../..")).await;
    }
    unpack(at, tar).await.must("unpack");
    assert_eq!(
        at.done("cd t; for l in a b c d; do readlink $l; done").await,
        "/etc\n../../..\nc\n/etc/x y\n"
    );
    let tar = Tarball::new().file("a", b"file now", 0o644);
    unpack(at, tar).await.must("replace a link that leaves");
    assert_eq!(at.text("t/a").await, "file now");
}

/// A hard link names a file of this archive's directory, and nothing else.
pub async fn hard_links_to_the_outside_are_refused(at: &Place) {
    at.fixture.plant(&at.site, &at.outside("victim"), b"victim").await;
    let outside = at.outside_snapshot().await;
    let climbing = format!("../{}", at.climbing("victim"));
    for target in [at.outside("victim"), climbing, "/etc/hostname".to_owned()] {
        assert_refused(at, "hard", before().hardlink("hard", &target).file("after", b"", 0o644)).await;
    }
    let tar =
        before().symlink("link", &at.site.outside).hardlink("hard", "link/victim").file("after", b"", 0o644);
    assert_refused(at, "hard", tar).await;
    assert_refused(at, "hard", before().hardlink("hard", "missing").file("after", b"", 0o644)).await;
    assert_eq!(at.outside_snapshot().await, outside);
    assert!(!at.ws().exists(&name("t/hard")).await.must("look"));
}

/// Nothing is made of them.
pub async fn devices_fifos_and_sockets_are_refused(at: &Place) {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let tar = before().entry(kind, "special", "", 0o666, b"").file("after", b"", 0o644);
        assert_refused(at, "special", tar).await;
    }
    assert_eq!(at.done("ls -A t | grep -vx before || true").await, "");
}

/// Neither takes the place of the other.
pub async fn a_file_and_a_directory_do_not_replace_each_other(at: &Place) {
    at.done("mkdir -p t/dir/sub; echo kept > t/dir/f; echo kept > t/file").await;
    assert_refused(at, "dir", before().file("dir", b"bad", 0o644).file("after", b"", 0o644)).await;
    assert_refused(at, "dir", before().symlink("dir", "file").file("after", b"", 0o644)).await;
    assert_refused(at, "file", before().dir("file/", 0o755).file("after", b"", 0o644)).await;
    assert_refused(at, "file/x", before().file("file/x", b"bad", 0o644).file("after", b"", 0o644)).await;
    assert_eq!(at.done("cat t/file t/dir/f").await, "kept\nkept\n");
}

/// By its first bytes, whatever would unpack it.
pub async fn a_compressed_stream_is_refused(at: &Place) {
    let magics: [&[u8]; 5] = [
        b"\x1f\x8b\x08\0\0\0\0\0",
        b"BZh91AY&SY",
        b"\xfd7zXZ\0\0\0",
        b"\x28\xb5\x2f\xfd\0\0",
        b"\x1f\x9d\x90",
    ];
    for magic in magics {
        let mut bytes = magic.to_vec();
        bytes.resize(2048, 7);
        let result = at.ws().put_archive(&name("t"), Content::from(bytes), UnpackOptions::default()).await;
        assert_error!(result, Error::Archive { .. });
    }
    // A first name that looks like a compressed stream is a name.
    for odd in ["BZh91AY", "\u{1f}x"] {
        unpack(at, Tarball::new().file(odd, b"fine", 0o644)).await.must("unpack");
        assert_eq!(at.text(&format!("t/{odd}")).await, "fine");
    }
}

/// Cut off, garbage, or with a wrong checksum.
pub async fn a_broken_stream_is_refused(at: &Place) {
    let whole = before().file("second", &[b's'; 5000], 0o644).unfinished();
    let cut = whole[..whole.len() - 2000].to_vec();
    let mut wrong = whole.clone();
    wrong[1024] ^= 1;
    for bytes in [cut, wrong, vec![b'g'; 4096], b"short".to_vec()] {
        let result = at.ws().put_archive(&name("t"), Content::from(bytes), UnpackOptions::default()).await;
        assert_error!(result, Error::Archive { .. });
        assert!(!at.ws().exists(&name("t/second")).await.must("look"), "nothing of a broken entry is there");
    }
}

/// The error of the source is passed on.
pub async fn a_stream_that_fails_is_an_error(at: &Place) {
    let bytes = before().file("second", &[b's'; 5000], 0o644).unfinished();
    let len = bytes.len() as u64;
    let content = Content::sized_reader(std::io::Cursor::new(bytes), len + 100);
    let result = at.ws().put_archive(&name("t"), content, UnpackOptions::default()).await;
    assert!(result.is_err(), "an archive that is shorter than was announced: {result:?}");
}
