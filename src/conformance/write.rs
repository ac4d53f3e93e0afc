//! Writing: what is there afterwards, with which mode and owner, and by which steps.

use super::place::{Must as _, Place, assert_error, name};
use crate::{Content, Error, WorkspaceExt as _, WriteMethod, WriteOptions};

cases!("write" {
    creates_and_replaces_and_says_how [Files];
    content_comes_from_memory_or_readers [Files];
    missing_parents_are_made_unless_told_not_to [Files];
    a_new_file_gets_the_mode_under_no_umask [Files];
    an_impossible_mode_is_refused [Files];
    an_existing_file_keeps_its_mode [Files];
    an_existing_file_keeps_its_owner [Files];
    a_new_file_belongs_to_the_user_of_the_workspace [Files];
    a_hard_link_keeps_the_old_content [Files];
    a_link_stays_a_link [Files];
    a_dangling_link_makes_its_target [Files];
    no_temporary_file_is_left [Files];
    a_reader_sees_the_old_or_the_new_content [Files];
});

/// The bytes are there, and the answer says how many and by which method.
pub async fn creates_and_replaces_and_says_how(at: &Place) {
    let method = match at.ws().capabilities().atomic_write {
        true => WriteMethod::Atomic,
        false => WriteMethod::InPlace,
    };
    for text in ["first", "the second, which is longer", "3", ""] {
        let written = at.put("f", text).await;
        assert_eq!((written.bytes, written.method), (text.len() as u64, method));
        assert_eq!(at.text("f").await, text);
        assert_eq!(at.done("cat f").await, text, "a process sees the same");
    }
}

/// Content may be bytes, or a reader of known or unknown length.
pub async fn content_comes_from_memory_or_readers(at: &Place) {
    at.put("reader", Content::reader(&b"from a reader"[..])).await;
    assert_eq!(at.text("reader").await, "from a reader");
    at.put("sized", Content::sized_reader(&b"sized"[..], 5)).await;
    assert_eq!(at.text("sized").await, "sized");
    at.put("nothing", Content::reader(tokio::io::empty())).await;
    assert_eq!(at.text("nothing").await, "");
    at.put(
        "more",
        Content::sized_reader(tokio::io::AsyncReadExt::take(tokio::io::repeat(b'z'), 1 << 20), 1 << 20),
    )
    .await;
    assert_eq!(at.done("wc -c < more").await.trim(), "1048576");
}

/// Parents are made with mode 0755; without leave a missing one is an error.
pub async fn missing_parents_are_made_unless_told_not_to(at: &Place) {
    at.put("a/b/c/f", "x").await;
    for dir in ["a", "a/b", "a/b/c"] {
        assert_eq!(at.ws().metadata(&name(dir)).await.must("stat").mode, 0o755, "{dir}");
    }
    let without = WriteOptions::default().parents(false);
    assert_error!(at.ws().write(&name("x/f"), "x".into(), without).await, Error::NotFound { .. });
    assert!(!at.ws().exists(&name("x")).await.must("look"), "nothing is made on the way");
    at.ws().write(&name("a/g"), "x".into(), without).await.must("write where the parent is there");
    assert_error!(
        at.ws().write(&name("a/g/h"), "x".into(), WriteOptions::default()).await,
        Error::NotADirectory { .. }
    );
}

/// The mode is exactly what was asked for.
pub async fn a_new_file_gets_the_mode_under_no_umask(at: &Place) {
    for mode in [0o644, 0o600, 0o666, 0o777, 0o755, 0o400, 0o4755] {
        let file = format!("m{mode:o}");
        let options = WriteOptions::default().mode(mode);
        at.ws().write(&name(&file), "x".into(), options).await.must("write");
        assert_eq!(at.ws().metadata(&name(&file)).await.must("stat").mode, mode, "mode {mode:o}");
        assert_eq!(at.done(&format!("stat -c %a {file}")).await.trim(), format!("{mode:o}"));
    }
}

/// A mode above 0o7777 is refused and nothing is written.
pub async fn an_impossible_mode_is_refused(at: &Place) {
    let options = WriteOptions::default().mode(0o10000);
    assert_error!(at.ws().write(&name("f"), "x".into(), options).await, Error::InvalidArgument { .. });
    assert!(!at.ws().exists(&name("f")).await.must("look"));
}

/// The mode in the options is for new files only.
pub async fn an_existing_file_keeps_its_mode(at: &Place) {
    for mode in [0o600, 0o751, 0o666, 0o4755] {
        at.put("f", "old").await;
        at.done(&format!("chmod {mode:o} f")).await;
        at.ws().write(&name("f"), "new".into(), WriteOptions::default().mode(0o644)).await.must("write");
        assert_eq!(at.ws().metadata(&name("f")).await.must("stat").mode, mode);
        assert_eq!(at.text("f").await, "new");
        at.done("rm f").await;
    }
}

/// The owner stays; where the user may not give the file away, it is written in place.
pub async fn an_existing_file_keeps_its_owner(at: &Place) {
    at.put("f", "old").await;
    at.done("chmod 666 f").await;
    let ours = at.fixture.ids().0;
    let theirs = if ours == 4321 { 4322 } else { 4321 };
    if !at.fixture.give_away(&at.site, &at.absolute("f"), theirs).await {
        return;
    }
    let written = at.put("f", "new").await;
    assert_eq!(at.done("stat -c %u:%a f").await.trim(), format!("{theirs}:666"));
    assert_eq!(at.text("f").await, "new");
    if ours != 0 && at.ws().capabilities().files_as_user {
        assert_eq!(written.method, WriteMethod::InPlace);
    }
    at.fixture.give_away(&at.site, &at.absolute("f"), ours).await;
}

/// Files and directories belong to whom commands run as.
pub async fn a_new_file_belongs_to_the_user_of_the_workspace(at: &Place) {
    at.put("d/f", "x").await;
    let (uid, gid) = at.fixture.ids();
    let expected = format!("{uid}:{gid}\n{uid}:{gid}\n");
    assert_eq!(at.done("stat -c %u:%g d d/f").await, expected);
    let metadata = at.ws().metadata(&name("d/f")).await.must("stat");
    match at.ws().capabilities().owners {
        true => assert_eq!((metadata.uid, metadata.gid), (Some(uid), Some(gid))),
        false => assert_eq!((metadata.uid, metadata.gid), (None, None), "what is not known is not claimed"),
    }
}

/// A replaced file is a new one, so another link to the old one is left alone. In place it may be
/// either: an engine makes the file anew, and others write over it.
pub async fn a_hard_link_keeps_the_old_content(at: &Place) {
    at.put("f", "old").await;
    at.done("ln f other").await;
    let written = at.put("f", "new").await;
    assert_eq!(at.text("f").await, "new");
    let other = at.text("other").await;
    assert!(other == "old" || written.method == WriteMethod::InPlace && other == "new", "{other}");
}

/// Writing to a link inside replaces its target.
pub async fn a_link_stays_a_link(at: &Place) {
    at.put("d/target", "old").await;
    at.done("ln -s d/target link; ln -s ../link d/chain; ln -s d dir").await;
    for (link, text) in [("link", "one"), ("d/chain", "two"), ("dir/target", "three")] {
        at.put(link, text).await;
        assert_eq!(at.done("cat d/target").await, text, "through {link}");
    }
    assert_eq!(at.done("for l in link d/chain dir; do readlink $l; done").await, "d/target\n../link\nd\n");
    assert_eq!(at.done("ls d").await, "chain\ntarget\n");
}

/// A dangling link that stays inside leads to a new file.
pub async fn a_dangling_link_makes_its_target(at: &Place) {
    at.done("mkdir d; ln -s d/new link").await;
    at.put("link", "made").await;
    assert_eq!(at.done("readlink link; cat d/new").await, "d/new\nmade");
}

/// After writes nothing but the files is there.
pub async fn no_temporary_file_is_left(at: &Place) {
    for text in ["1", "2", "3"] {
        at.put("d/f", text).await;
    }
    assert_error!(
        at.ws().write(&name("d"), "x".into(), WriteOptions::default()).await,
        Error::IsADirectory { .. }
    );
    assert_eq!(at.done("ls -A . d").await, ".:\nd\n\nd:\nf\n");
}

/// A process that reads all the time never finds a part, a mixture or nothing.
pub async fn a_reader_sees_the_old_or_the_new_content(at: &Place) {
    let content = |letter: u8| vec![letter; 50_000];
    at.put("f", content(b'a')).await;
    let script = "n=0; while [ ! -e stop ]; do c=$(cat f) || { echo missing; exit 1; }; \
        [ ${#c} = 50000 ] || { echo \"a part of ${#c}\"; exit 1; }; \
        case $c in *a*b*|*b*a*) echo mixed; exit 1;; esac; n=$((n+1)); done; echo $n";
    let writes = async {
        for round in 0..40 {
            at.put("f", content(if round % 2 == 0 { b'b' } else { b'a' })).await;
        }
        at.put("stop", "").await;
    };
    let (ran, ()) = tokio::join!(at.run(at.sh(script)), writes);
    if at.ws().capabilities().atomic_write {
        assert!(ran.success(), "the reader saw a broken file\n{ran}");
        assert!(ran.out().trim().parse::<u32>().is_ok_and(|reads| reads > 0), "{ran}");
    }
    assert_eq!(at.get("f").await, content(b'a'));
}
