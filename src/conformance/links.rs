//! Links: those inside are followed, those that leave are refused by every operation.

use super::place::{Must as _, Place, assert_error, name};
use super::tarball::Tarball;
use crate::{Error, OpenOptions, WorkspaceExt as _, WriteOptions};

cases!("links" {
    no_operation_reaches_a_file_through_a_link_that_leaves [Files];
    no_operation_reaches_below_a_directory_link_that_leaves [Files];
    changing_the_tree_does_not_reach_through_a_link_that_leaves [Files, ChangeTree];
    archives_do_not_reach_through_a_link_that_leaves [Files, Archives];
    no_command_starts_in_a_directory_outside;
    an_absolute_link_is_outside_even_if_its_target_is_not [Files];
    links_inside_are_followed [Files];
    a_link_that_leaves_can_be_looked_at [Files];
    a_link_that_leaves_can_be_removed_and_renamed [Files, ChangeTree];
    removing_a_tree_does_not_follow_its_links [Files, ChangeTree];
    reading_what_is_no_link_is_told_apart [Files];
});

/// The names of links to the file `secret` outside, in every shape.
const FILE_LINKS: [&str; 7] = ["abs", "climb", "d/climb", "chain", "chain2", "through/secret", "dangling"];

/// The names of links to the directory outside, in every shape.
const DIR_LINKS: [&str; 6] = ["absdir", "climbdir", "d/climbdir", "dirchain", "slash", "up"];

/// Fills the directory outside and makes links to it. What is outside afterwards is returned.
async fn plant(at: &Place) -> String {
    at.fixture.plant(&at.site, &at.outside("secret"), b"secret").await;
    at.fixture.plant(&at.site, &at.outside("victim"), b"victim").await;
    let (abs, rel) = (at.site.outside.clone(), at.climbing(""));
    let rel = rel.trim_end_matches('/');
    at.done(&format!(
        "mkdir d; ln -s {abs}/secret abs; ln -s {rel}/secret climb; ln -s ../{rel}/secret d/climb; \
         ln -s abs chain; ln -s climbdir/secret chain2; ln -s d/climbdir through; \
         ln -s {abs} absdir; ln -s {rel} climbdir; ln -s ../{rel} d/climbdir; ln -s climbdir dirchain; \
         ln -s / slash; ln -s .. up; ln -s {rel}/made dangling; ln -s {abs}/made absdangling; echo in > inside"
    ))
    .await;
    at.outside_snapshot().await
}

/// Reading, writing, describing and copying through every shape of file link.
pub async fn no_operation_reaches_a_file_through_a_link_that_leaves(at: &Place) {
    let before = plant(at).await;
    for link in FILE_LINKS.into_iter().chain(["absdangling"]) {
        let path = name(link);
        let open = OpenOptions::default();
        assert_error!(at.ws().open(&path, open).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().metadata(&path).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().exists(&path).await, Error::OutsideWorkspace { .. });
        let write = at.ws().write(&path, "overwritten".into(), WriteOptions::default());
        assert_error!(write.await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().copy(&path, &name("copy")).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().copy(&name("inside"), &path).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().read_dir(&path, Default::default()).await, Error::OutsideWorkspace { .. });
    }
    assert_eq!(at.outside_snapshot().await, before);
    assert!(!at.ws().exists(&name("copy")).await.must("look"));
}

/// Every operation on names below every shape of directory link.
pub async fn no_operation_reaches_below_a_directory_link_that_leaves(at: &Place) {
    let before = plant(at).await;
    for link in DIR_LINKS {
        assert_error!(
            at.ws().read_dir(&name(link), Default::default()).await,
            Error::OutsideWorkspace { .. }
        );
        assert_error!(at.ws().create_dir_all(&name(link)).await, Error::OutsideWorkspace { .. });
        for below in ["secret", "new", "new/deep"] {
            let path = name(link).join(below).must("join");
            assert_error!(at.ws().open(&path, OpenOptions::default()).await, Error::OutsideWorkspace { .. });
            assert_error!(at.ws().metadata(&path).await, Error::OutsideWorkspace { .. });
            assert_error!(at.ws().symlink_metadata(&path).await, Error::OutsideWorkspace { .. });
            assert_error!(at.ws().read_link(&path).await, Error::OutsideWorkspace { .. });
            assert_error!(at.ws().read_dir(&path, Default::default()).await, Error::OutsideWorkspace { .. });
            for parents in [true, false] {
                let options = WriteOptions::default().parents(parents);
                let write = at.ws().write(&path, "x".into(), options);
                assert_error!(write.await, Error::OutsideWorkspace { .. });
            }
            assert_error!(at.ws().create_dir_all(&path).await, Error::OutsideWorkspace { .. });
            assert_error!(at.ws().copy(&name("inside"), &path).await, Error::OutsideWorkspace { .. });
        }
    }
    assert_eq!(at.outside_snapshot().await, before);
}

/// Removing, renaming and changing modes through every shape.
pub async fn changing_the_tree_does_not_reach_through_a_link_that_leaves(at: &Place) {
    let before = plant(at).await;
    for link in DIR_LINKS {
        let victim = name(link).join("victim").must("join");
        assert_error!(at.ws().remove(&victim).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().remove_all(&victim).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().rename(&victim, &name("stolen")).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().rename(&name("inside"), &victim).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().set_mode(&victim, 0o777).await, Error::OutsideWorkspace { .. });
        assert_error!(at.ws().set_mode(&name(link), 0o700).await, Error::OutsideWorkspace { .. });
    }
    for link in FILE_LINKS {
        assert_error!(at.ws().set_mode(&name(link), 0o777).await, Error::OutsideWorkspace { .. });
    }
    assert_eq!(at.outside_snapshot().await, before);
    assert_eq!(at.text("inside").await, "in\n");
}

/// Neither packing nor unpacking goes through a link that leaves.
pub async fn archives_do_not_reach_through_a_link_that_leaves(at: &Place) {
    let before = plant(at).await;
    for link in FILE_LINKS.into_iter().chain(["absdangling"]).chain(DIR_LINKS) {
        let packed = at.ws().get_archive(&name(link), Default::default()).await;
        assert_error!(packed, Error::OutsideWorkspace { .. });
    }
    for link in DIR_LINKS {
        let path = name(link);
        for dir in [path.clone(), path.join("new").must("join")] {
            let tar = Tarball::new().file("planted", b"x", 0o644).content();
            let unpacked = at.ws().put_archive(&dir, tar, Default::default()).await;
            assert_error!(unpacked, Error::OutsideWorkspace { .. });
        }
    }
    assert_eq!(at.outside_snapshot().await, before);
}

/// A command's directory may not leave, by name or by link; nothing runs then.
pub async fn no_command_starts_in_a_directory_outside(at: &Place) {
    let before = plant(at).await;
    let climbing = at.climbing("");
    let links = DIR_LINKS.map(str::to_owned);
    for dir in
        links.into_iter().chain(["../".to_owned(), "d/../..".to_owned(), climbing, at.site.outside.clone()])
    {
        let command = at.sh("echo ran > ran; echo ran").dir(dir.as_str());
        let result = at.ws().exec(command).await;
        assert!(matches!(result, Err(Error::OutsideWorkspace { .. })), "{dir:?} gave {result:?}");
    }
    assert_eq!(at.outside_snapshot().await, before);
    assert_eq!(at.done("ls ran 2>&1 || true").await.matches("ran\n").count(), 0);
}

/// By name only what is relative is followed, so that a moved root means the same.
pub async fn an_absolute_link_is_outside_even_if_its_target_is_not(at: &Place) {
    at.put("d/f", "inside").await;
    let (file, dir) = (at.absolute("d/f"), at.absolute("d"));
    at.done(&format!("ln -s {file} file; ln -s {dir} dir")).await;
    assert_error!(at.ws().open(&name("file"), OpenOptions::default()).await, Error::OutsideWorkspace { .. });
    assert_error!(at.ws().open(&name("dir/f"), OpenOptions::default()).await, Error::OutsideWorkspace { .. });
    assert_error!(
        at.ws().write(&name("dir/g"), "x".into(), Default::default()).await,
        Error::OutsideWorkspace { .. }
    );
    assert_error!(at.ws().exec(at.sh("exit 0").dir("dir")).await, Error::OutsideWorkspace { .. });
    assert_eq!(at.done("ls d; cat d/f").await, "f\ninside");
}

/// Relative links inside work in every place of a name, `..` in their targets included.
pub async fn links_inside_are_followed(at: &Place) {
    at.put("a/b/f", "content").await;
    at.done("ln -s a/b dir; ln -s ../../a/b/f a/b/self; ln -s dir/f file; mkdir c; ln -s ../dir c/up; ln -s . here").await;
    for alias in ["dir/f", "file", "c/up/f", "a/b/self", "here/here/dir/f", "c/up/self"] {
        assert_eq!(at.text(alias).await, "content", "{alias}");
        assert_eq!(at.ws().metadata(&name(alias)).await.must("stat").size, 7, "{alias}");
    }
    at.put("c/up/new/deep", "nested").await;
    assert_eq!(at.text("a/b/new/deep").await, "nested");
    assert_eq!(at.ws().read_dir_all(&name("dir")).await.must("list").len(), 3);
    let ran = at.run(at.program("cat", ["f"]).dir("c/up")).await;
    assert_eq!(ran.out(), "content", "{ran}");
}

/// What acts on the link itself works, wherever it leads.
pub async fn a_link_that_leaves_can_be_looked_at(at: &Place) {
    plant(at).await;
    let (abs, rel) = (at.outside("secret"), at.climbing("secret"));
    for (link, target) in
        [("abs", abs.as_str()), ("climb", &rel), ("chain", "abs"), ("up", ".."), ("slash", "/")]
    {
        let metadata = at.ws().symlink_metadata(&name(link)).await.must("stat");
        assert!(metadata.is_symlink() && metadata.size == target.len() as u64, "{link}: {metadata:?}");
        assert_eq!(at.ws().read_link(&name(link)).await.must("read a link").as_str(), Some(target));
    }
    at.done("ln -s \"$(printf 'a\\377b')\" raw").await;
    assert_eq!(at.ws().read_link(&name("raw")).await.must("read a link").as_bytes(), b"a\xffb");
}

/// Removing or renaming a link leaves its target alone.
pub async fn a_link_that_leaves_can_be_removed_and_renamed(at: &Place) {
    let before = plant(at).await;
    for link in ["abs", "climb", "absdir", "dangling"] {
        let moved = format!("{link}.moved");
        at.ws().rename(&name(link), &name(&moved)).await.must("rename a link");
        assert!(at.ws().symlink_metadata(&name(&moved)).await.must("stat").is_symlink());
        at.ws().remove(&name(&moved)).await.must("remove a link");
        assert_error!(at.ws().symlink_metadata(&name(&moved)).await, Error::NotFound { .. });
    }
    at.ws().remove_all(&name("climbdir")).await.must("remove a link to a directory");
    assert_error!(at.ws().symlink_metadata(&name("climbdir")).await, Error::NotFound { .. });
    assert_eq!(at.outside_snapshot().await, before);
}

/// A tree with links in it goes, and nothing that they lead to.
pub async fn removing_a_tree_does_not_follow_its_links(at: &Place) {
    let before = plant(at).await;
    at.done(&format!(
        "mkdir -p tree/x keep; echo k > keep/f; ln -s {} tree/out; ln -s ../keep tree/in",
        at.site.outside
    ))
    .await;
    at.ws().remove_all(&name("tree")).await.must("remove a tree");
    assert_eq!(at.text("keep/f").await, "k\n");
    assert_eq!(at.outside_snapshot().await, before);
}

/// A file is not a link, and a missing name is neither.
pub async fn reading_what_is_no_link_is_told_apart(at: &Place) {
    at.put("d/f", "x").await;
    assert_error!(at.ws().read_link(&name("d/f")).await, Error::NotALink { .. });
    assert_error!(at.ws().read_link(&name("d")).await, Error::NotALink { .. });
    assert_error!(at.ws().read_link(&name(".")).await, Error::NotALink { .. });
    assert_error!(at.ws().read_link(&name("missing")).await, Error::NotFound { .. });
    assert_error!(at.ws().symlink_metadata(&name("missing")).await, Error::NotFound { .. });
}
