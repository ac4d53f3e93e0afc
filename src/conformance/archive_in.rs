//! Unpacking archives: what survives the way in.

use tokio::io::AsyncReadExt as _;

use super::place::{Must as _, Place, assert_error, name};
use super::tarball::{MTIME, Tarball};
use crate::{Content, Error, UnpackOptions, WorkspaceExt as _};

cases!("archive_in" {
    every_kind_of_entry_is_unpacked [Files, Archives];
    the_owner_is_the_user_of_the_workspace [Files, Archives];
    the_directory_is_made_and_parents_are_implied [Files, Archives];
    long_names_survive_in_both_forms [Files, Archives];
    pax_records_override_the_header [Files, Archives];
    sparse_files_are_whole [Files, Archives];
    entries_replace_files_and_links_and_merge_directories [Files, Archives];
    odd_names_are_unpacked_as_they_are [Files, Archives];
    an_empty_archive_is_fine [Files, Archives];
    an_archive_is_read_in_pieces [Files, Archives];
    bounds_are_kept [Files, Archives];
});

/// Unpacks into `dir` and gives how many entries and bytes.
async fn unpack(at: &Place, dir: &str, tar: Tarball) -> (u64, u64) {
    let report = at.ws().put_archive(&name(dir), tar.content(), UnpackOptions::default()).await;
    let report = report.must("unpack");
    (report.entries, report.bytes)
}

/// Files, directories, both kinds of links; modes and times; empty directories.
pub async fn every_kind_of_entry_is_unpacked(at: &Place) {
    let tar = Tarball::new()
        .dir("d/", 0o750)
        .file("d/f", b"content", 0o4711)
        .dir("empty/", 0o1777)
        .symlink("link", "d/f")
        .symlink("dangling", "no/such/thing")
        .hardlink("hard", "d/f")
        .file("zero", b"", 0o600)
        .file("./dotted", b"dot", 0o644);
    assert_eq!(unpack(at, "t", tar).await, (8, 10));
    let seen = at
        .done(
            "cd t; stat -c '%a %Y %F' d d/f empty; stat -c '%a %s %Y' zero; for l in link dangling; do readlink $l; done; \
        cat hard dotted; stat -c %h d/f; [ d/f -ef hard ] && echo same",
        )
        .await;
    let expected = format!(
        "750 {MTIME} directory\n4711 {MTIME} regular file\n1777 {MTIME} directory\n600 0 {MTIME}\n\
         d/f\nno/such/thing\ncontentdot2\nsame\n"
    );
    assert_eq!(seen, expected);
}

/// Whatever numbers the archive holds.
pub async fn the_owner_is_the_user_of_the_workspace(at: &Place) {
    unpack(at, "t", Tarball::new().dir("d/", 0o755).file("d/f", b"x", 0o644).symlink("l", "d/f")).await;
    let (uid, gid) = at.fixture.ids();
    let owners = at.done("cd t; stat -c %u:%g . d d/f l").await;
    assert_eq!(owners, format!("{uid}:{gid}\n").repeat(4));
}

/// The directory to unpack into, and those that no entry stands for, come with mode 0755.
pub async fn the_directory_is_made_and_parents_are_implied(at: &Place) {
    unpack(at, "new/dir", Tarball::new().file("a/b/f", b"x", 0o644)).await;
    assert_eq!(
        at.done("stat -c %a new new/dir new/dir/a new/dir/a/b; cat new/dir/a/b/f").await,
        "755\n755\n755\n755\nx"
    );
    unpack(at, ".", Tarball::new().file("at-root", b"y", 0o644)).await;
    assert_eq!(at.text("at-root").await, "y");
    at.put("file", "x").await;
    let tar = Tarball::new().file("f", b"x", 0o644).content();
    let result = at.ws().put_archive(&name("file"), tar, UnpackOptions::default()).await;
    assert_error!(result, Error::NotADirectory { .. } | Error::AlreadyExists { .. });
    assert_eq!(at.text("file").await, "x");
}

/// Names over 100 and over 255 bytes, elements over 100 bytes, long link targets.
pub async fn long_names_survive_in_both_forms(at: &Place) {
    let element = "e".repeat(200);
    let pax = format!("{element}/p{element}/f");
    let gnu = format!("{element}/g{element}/f");
    assert!(pax.len() > 400);
    let tar = Tarball::new()
        .file(&pax, b"pax", 0o644)
        .gnu_long_file(&gnu, b"gnu")
        .symlink(&format!("l{element}"), &pax)
        .hardlink(&format!("h{element}"), &gnu)
        .file("short", b"after", 0o644);
    unpack(at, "t", tar).await;
    for (file, text) in [
        (pax.as_str(), "pax"),
        (&gnu, "gnu"),
        (&format!("l{element}"), "pax"),
        (&format!("h{element}"), "gnu"),
        ("short", "after"),
    ] {
        assert_eq!(at.text(&format!("t/{file}")).await, text);
    }
}

/// The name, target and time of a PAX record count, not those of the header.
pub async fn pax_records_override_the_header(at: &Place) {
    let tar = Tarball::new()
        .pax(&[("path", "real"), ("mtime", "1234567890.5")])
        .file("fake", b"x", 0o644)
        .pax(&[("linkpath", "real")])
        .symlink("link", "fake");
    unpack(at, "t", tar).await;
    assert_eq!(
        at.done("cd t; ls -A; stat -c %Y real; readlink link").await,
        "link\nreal\n1234567890\nreal\n"
    );
}

/// Holes are zeros, and the size is the real one.
pub async fn sparse_files_are_whole(at: &Place) {
    let tar =
        Tarball::new().gnu_sparse_file("old", 1 << 20, 512 << 10, &[b'x'; 512]).file("after", b"y", 0o644);
    unpack(at, "t", tar).await;
    let data = at.get("t/old").await;
    assert_eq!(data.len(), 1 << 20);
    let hole = |range: std::ops::Range<usize>| data[range].iter().all(|byte| *byte == 0);
    assert!(hole(0..512 << 10) && hole((512 << 10) + 512..1 << 20), "holes are zeros");
    assert!(data[512 << 10..(512 << 10) + 512].iter().all(|byte| *byte == b'x'), "data is where it was");
    assert_eq!(at.text("t/after").await, "y");
    let map = format!("1\n{}\n512\n", 4096);
    let mut body = map.into_bytes();
    body.resize(512, 0);
    body.extend([b'z'; 512]);
    let tar = Tarball::new()
        .pax(&[
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.minor", "0"),
            ("GNU.sparse.name", "new"),
            ("GNU.sparse.realsize", "8192"),
        ])
        .file("GNUSparseFile.0/new", &body, 0o644);
    unpack(at, "t", tar).await;
    let data = at.get("t/new").await;
    assert_eq!(data.len(), 8192);
    assert!(data[4096..4608].iter().all(|byte| *byte == b'z') && data[..4096].iter().all(|byte| *byte == 0));
}

/// A file takes the place of a file or link; what is in a directory stays.
pub async fn entries_replace_files_and_links_and_merge_directories(at: &Place) {
    at.done(
        "mkdir -p t/d/old; echo old > t/f; chmod 600 t/f; ln t/f other; echo kept > t/d/kept; chmod 700 t/d; \
        echo target > target; ln -s ../target t/link; echo x > t/becomes-link",
    )
    .await;
    let tar = Tarball::new()
        .file("f", b"new", 0o644)
        .dir("d/", 0o755)
        .file("d/added", b"added", 0o644)
        .file("link", b"file now", 0o644)
        .symlink("becomes-link", "f")
        .hardlink("d/hard", "f");
    unpack(at, "t", tar).await;
    let seen = at.done("cat target other t/f t/d/kept; ls -A t/d; stat -c %a t/f t/d; cat t/link; readlink t/becomes-link; \
        readlink t/link; cat t/d/hard").await;
    assert_eq!(seen, "target\nold\nnewkept\nadded\nhard\nkept\nold\n644\n755\nfile nowf\nnew");
}

/// Names are bytes here as everywhere.
pub async fn odd_names_are_unpacked_as_they_are(at: &Place) {
    let names = [" a ", "-rf", "a\nb", "'q\"", "caf\u{e9}", "$HOME", "a\\b", "..a", "a..b"];
    let mut tar = Tarball::new();
    for text in names {
        tar = tar.file(text, text.as_bytes(), 0o644);
    }
    unpack(at, "t", tar).await;
    for text in names {
        assert_eq!(at.text(&format!("t/{text}")).await, text);
    }
    assert_eq!(at.ws().read_dir_all(&name("t")).await.must("list").len(), names.len());
}

/// The two closing blocks alone make the directory and nothing else.
pub async fn an_empty_archive_is_fine(at: &Place) {
    assert_eq!(unpack(at, "t", Tarball::new()).await, (0, 0));
    assert!(at.ws().read_dir_all(&name("t")).await.must("list").is_empty());
}

/// A reader that gives a few bytes at a time, of unknown length.
pub async fn an_archive_is_read_in_pieces(at: &Place) {
    let data: Vec<u8> = (0..50_000u32).map(|i| (i % 256) as u8).collect();
    let bytes = Tarball::new().dir("d/", 0o755).file("d/f", &data, 0o644).bytes();
    let (mut write, read) = tokio::io::duplex(7);
    let feed = tokio::spawn(async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut write, &bytes).await;
    });
    let report = at.ws().put_archive(&name("t"), Content::reader(read), UnpackOptions::default()).await;
    assert_eq!(report.must("unpack").bytes, 50_000);
    feed.await.must("feed the archive");
    assert!(at.get("t/d/f").await == data, "the bytes differ");
}

/// More bytes or entries than allowed is too large, also when the stream lies about nothing.
pub async fn bounds_are_kept(at: &Place) {
    let tar = || Tarball::new().file("a", &[b'x'; 1000], 0o644).file("b", &[b'x'; 1000], 0o644);
    let unpack = async |options| at.ws().put_archive(&name("t"), tar().content(), options).await;
    let options = UnpackOptions::default();
    assert_error!(unpack(options.max_bytes(1999)).await, Error::TooLarge { limit: 1999, .. });
    assert_error!(unpack(options.max_entries(1)).await, Error::TooLarge { limit: 1, .. });
    unpack(options.max_bytes(2000).max_entries(2)).await.must("unpack within the bounds");
    let huge = Tarball::new().gnu_sparse_file("bomb", 1 << 32, 0, &[b'x'; 512]).content();
    let result = at.ws().put_archive(&name("t"), huge, options.max_bytes(1 << 20)).await;
    assert_error!(result, Error::TooLarge { .. });
    let endless = Tarball::new().file("big", &[b'x'; 4096], 0o644).unfinished();
    let endless = std::io::Cursor::new(endless).chain(tokio::io::repeat(b'y'));
    let result = at.ws().put_archive(&name("t"), Content::reader(endless), options.max_bytes(4000)).await;
    assert_error!(result, Error::TooLarge { .. });
    assert!(!at.ws().exists(&name("t/bomb")).await.must("look"));
}
