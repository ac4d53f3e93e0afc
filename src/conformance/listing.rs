//! Directory listings: order, kinds, pages, odd names.

use std::time::Duration;

use super::place::{Must as _, Place, assert_error, name};
use crate::{EntryName, Error, FileKind, ListOptions, WorkspaceExt as _};

cases!("listing" {
    entries_are_sorted_by_bytes_and_have_kinds [Files];
    pages_hold_the_smallest_names_after_the_start [Files];
    twenty_thousand_names_are_paged [Files];
    names_that_are_not_utf8_are_listed_raw [Files];
    a_link_to_a_directory_is_followed [Files];
    what_is_no_directory_is_told_apart [Files];
});

/// Every entry is there once with its kind, without `.` and `..`; a link is a link.
pub async fn entries_are_sorted_by_bytes_and_have_kinds(at: &Place) {
    at.done("mkdir l; cd l; mkdir b-dir; echo x > a; echo x > B; mkfifo pipe; ln -s a to-file; ln -s b-dir to-dir; \
        ln -s gone dangling; ln -s / out; echo x > .hidden; echo x > \u{e9}").await;
    let entries = at.ws().read_dir_all(&name("l")).await.must("list");
    let listed: Vec<_> = entries.iter().map(|entry| (entry.name.escaped(), entry.kind)).collect();
    let expected = [
        (".hidden", FileKind::File),
        ("B", FileKind::File),
        ("a", FileKind::File),
        ("b-dir", FileKind::Directory),
        ("dangling", FileKind::Symlink),
        ("out", FileKind::Symlink),
        ("pipe", FileKind::Fifo),
        ("to-dir", FileKind::Symlink),
        ("to-file", FileKind::Symlink),
        ("\u{e9}", FileKind::File),
    ];
    assert_eq!(listed, expected.map(|(name, kind)| (name.to_owned(), kind)));
    at.ws().create_dir_all(&name("empty")).await.must("make a directory");
    let page = at.ws().read_dir(&name("empty"), ListOptions::default()).await.must("list");
    assert!(page.entries.is_empty() && !page.more);
}

/// `after`, `limit` and `more` walk the whole directory; a limit of 0 is 1.
pub async fn pages_hold_the_smallest_names_after_the_start(at: &Place) {
    at.done("mkdir l; cd l; for n in e c a d b; do echo > $n; done").await;
    let path = name("l");
    let page = at.ws().read_dir(&path, ListOptions::default().limit(2)).await.must("list");
    let names =
        |page: &crate::DirPage| page.entries.iter().map(|entry| entry.name.escaped()).collect::<String>();
    assert_eq!((names(&page).as_str(), page.more), ("ab", true));
    let next = ListOptions::default().after(page.entries[1].name.clone()).limit(3);
    let page = at.ws().read_dir(&path, next).await.must("list");
    assert_eq!((names(&page).as_str(), page.more), ("cde", false));
    let between = ListOptions::default().after(EntryName::new("bb").must("make a name"));
    assert_eq!(names(&at.ws().read_dir(&path, between).await.must("list")), "cde", "it need not exist");
    let page = at.ws().read_dir(&path, ListOptions::default().limit(0)).await.must("list");
    assert_eq!((names(&page).as_str(), page.more), ("a", true));
}

/// A large directory comes in pages, complete and in order.
pub async fn twenty_thousand_names_are_paged(at: &Place) {
    at.done("mkdir big; cd big; i=0; while [ $i -lt 20000 ]; do : > f$i; i=$((i+1)); done").await;
    let (path, mut seen, mut pages) = (name("big"), Vec::new(), 0);
    let mut options = ListOptions::default().limit(7000);
    loop {
        let listing = at.ws().read_dir(&path, options.clone());
        let page = tokio::time::timeout(Duration::from_secs(60), listing).await.must("end").must("list");
        assert!(page.entries.len() <= 7000);
        pages += 1;
        seen.extend(page.entries.into_iter().map(|entry| entry.name));
        if !page.more {
            break;
        }
        options = options.after(seen[seen.len() - 1].clone());
    }
    assert_eq!((seen.len(), pages), (20_000, 3));
    assert!(seen.is_sorted_by(|a, b| a < b), "sorted and without doubles");
    let first = at.ws().read_dir(&path, ListOptions::default()).await.must("list");
    assert_eq!((first.entries.len(), first.more), (crate::DEFAULT_LIST_LIMIT, true));
}

/// Bytes that are no text are neither dropped nor mangled, and can be a place to go on from.
pub async fn names_that_are_not_utf8_are_listed_raw(at: &Place) {
    at.done(
        "mkdir l; cd l; for n in 'a\\377b' 'a\\376b' 'plain' '\\303\\050'; do : > \"$(printf \"$n\")\"; done",
    )
    .await;
    let entries = at.ws().read_dir_all(&name("l")).await.must("list");
    let raw: Vec<_> = entries.iter().map(|entry| entry.name.as_bytes()).collect();
    assert_eq!(raw, [&b"a\xfeb"[..], b"a\xffb", b"plain", b"\xc3\x28"]);
    assert_eq!(entries[0].name.as_str(), None);
    assert_eq!(entries[1].name.to_string(), "a\\xFFb");
    let rest = ListOptions::default().after(entries[1].name.clone());
    let page = at.ws().read_dir(&name("l"), rest).await.must("list");
    assert_eq!(page.entries.len(), 2);
}

/// Listing a link inside lists its target.
pub async fn a_link_to_a_directory_is_followed(at: &Place) {
    at.put("d/f", "x").await;
    at.done("ln -s d link; ln -s link chain").await;
    for link in ["link", "chain"] {
        let entries = at.ws().read_dir_all(&name(link)).await.must("list");
        assert_eq!(entries.len(), 1, "{link}");
        assert_eq!(entries[0].name.as_str(), Some("f"));
    }
}

/// Missing names, files and dangling links have their own errors.
pub async fn what_is_no_directory_is_told_apart(at: &Place) {
    at.put("f", "x").await;
    at.done("ln -s gone dangling; ln -s f to-file").await;
    let list = ListOptions::default;
    assert_error!(at.ws().read_dir(&name("missing"), list()).await, Error::NotFound { .. });
    assert_error!(at.ws().read_dir(&name("dangling"), list()).await, Error::NotFound { .. });
    assert_error!(at.ws().read_dir(&name("f"), list()).await, Error::NotADirectory { .. });
    assert_error!(at.ws().read_dir(&name("to-file"), list()).await, Error::NotADirectory { .. });
    assert_error!(at.ws().read_dir(&name("f/x"), list()).await, Error::NotADirectory { .. });
}
