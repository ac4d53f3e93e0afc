//! What a name may be, and that a malformed one reaches nothing.

use super::place::{Must as _, Place, assert_error, name};
use crate::{Error, WorkspaceExt as _, WorkspacePath};

cases!("names" {
    names_that_leave_are_outside_and_touch_nothing [Files];
    other_malformed_names_are_invalid;
    every_way_to_make_a_name_checks_it;
    names_are_kept_byte_for_byte [Files];
    the_longest_names_work [Files];
    the_root_is_a_name [Files];
});

/// Absolute names and names that climb are refused as outside.
pub async fn names_that_leave_are_outside_and_touch_nothing(at: &Place) {
    at.put("a/file", "kept").await;
    let absolute = at.absolute("a/file");
    for text in ["/", "/etc/passwd", "//etc", "..", "../x", "a/../..", "a/../../x", "./../x", &absolute] {
        let error = WorkspacePath::parse(text).expect_err(text);
        assert!(error.is_outside(), "{text:?} must be outside, and gave {error:?}");
        assert_eq!(error.path(), Some(text));
        let command = at.sh("echo ran").dir(text);
        assert_error!(at.ws().exec(command).await, Error::OutsideWorkspace { .. });
    }
    assert_eq!(at.get("a/file").await, b"kept");
}

/// Every other malformed name is invalid and says why.
pub async fn other_malformed_names_are_invalid(_: &Place) {
    let long_element = "x".repeat(256);
    let long_path = "abc/".repeat(1024) + "x";
    for text in ["", "./b", "b/", "a/../b", "a//b", "a/.", "a/..", "a\0b", &long_element, &long_path] {
        assert_error!(WorkspacePath::parse(text), Error::InvalidPath { .. });
    }
    assert!(WorkspacePath::parse(&"abc/".repeat(1023)).is_err(), "a trailing slash is malformed");
    assert!(WorkspacePath::parse(&format!("{}abc", "abc/".repeat(1023))).is_ok(), "4095 bytes are accepted");
}

/// No constructor of a name goes round the check.
pub async fn every_way_to_make_a_name_checks_it(_: &Place) {
    for text in ["../x", "/x", "a//b", ""] {
        assert!(text.parse::<WorkspacePath>().is_err());
        assert!(WorkspacePath::try_from(text).is_err());
        assert!(WorkspacePath::try_from(text.to_owned()).is_err());
        assert!(serde_json::from_value::<WorkspacePath>(text.into()).is_err());
    }
    assert!(name("a/b").join("../..").is_err());
    assert!(name("a/b").join("/x").expect_err("it is absolute").is_outside());
    assert_eq!(name("a/b").join("c").must("join").as_str(), "a/b/c");
    assert_eq!(serde_json::to_string(&name("a/b")).must("serialize"), "\"a/b\"");
}

/// Nothing is trimmed, folded, normalized or unescaped.
pub async fn names_are_kept_byte_for_byte(at: &Place) {
    let names =
        [" a ", "A", "a", "a\\b", "caf\u{e9}", "cafe\u{301}", "..a", "a..", "...", "%2e%2e", "~", "~root"];
    for text in names {
        at.put(text, text).await;
    }
    for text in names {
        assert_eq!(at.text(text).await, text);
    }
    let listed = at.ws().read_dir_all(&name(".")).await.must("list");
    let mut expected = names.map(str::to_owned);
    expected.sort();
    let listed: Vec<_> = listed.iter().map(|entry| entry.name.as_str().unwrap_or("?").to_owned()).collect();
    assert_eq!(listed, expected);
}

/// An element of 255 bytes and a name of well over 1000 work for every kind of call.
pub async fn the_longest_names_work(at: &Place) {
    let element = "n".repeat(255);
    let long = [element.as_str(); 6].join("/");
    at.put(&long, "deep").await;
    assert_eq!(at.text(&long).await, "deep");
    assert!(at.ws().metadata(&name(&long)).await.must("stat").is_file());
    let parent = name(&long).parent().must_some("a parent");
    let page = at.ws().read_dir(&parent, Default::default()).await.must("list");
    assert_eq!(page.entries[0].name.as_str(), Some(element.as_str()));
    let ran = at.run(at.program("cat", [element.as_str()]).dir(parent.as_str())).await;
    assert_eq!(ran.out(), "deep", "{ran}");
}

/// `.` is the root: it can be listed and described.
pub async fn the_root_is_a_name(at: &Place) {
    assert!(at.ws().metadata(&WorkspacePath::root()).await.must("stat").is_dir());
    assert!(at.ws().symlink_metadata(&name(".")).await.must("stat").is_dir());
    assert!(at.ws().exists(&name(".")).await.must("look"));
    at.put("one", "1").await;
    assert_eq!(at.ws().read_dir_all(&name(".")).await.must("list").len(), 1);
}

/// Takes the value out of an option, or says what is missing.
trait MustSome<T> {
    fn must_some(self, what: &str) -> T;
}

impl<T> MustSome<T> for Option<T> {
    #[track_caller]
    fn must_some(self, what: &str) -> T {
        match self {
            Some(value) => value,
            None => panic!("there must be {what}"),
        }
    }
}
