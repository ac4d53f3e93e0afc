//! Changing the tree: remove, rename, make directories, copy.

use super::place::{Must as _, Place, assert_error, name};
use crate::Error;

cases!("tree" {
    remove_takes_files_links_and_empty_directories [Files, ChangeTree];
    remove_refuses_what_it_must_not_take [Files, ChangeTree];
    remove_all_takes_whatever_is_there [Files, ChangeTree];
    the_root_is_never_removed_or_renamed [Files, ChangeTree];
    rename_moves_files_links_and_directories [Files, ChangeTree];
    rename_replaces_what_may_be_replaced [Files, ChangeTree];
    rename_refuses_what_it_cannot_do [Files, ChangeTree];
    directories_are_made_with_their_parents [Files];
    making_a_directory_over_something_else_is_refused [Files];
    copy_writes_as_write_does [Files];
    copy_refuses_what_it_cannot_do [Files];
});

/// Each goes; what a link leads to stays.
pub async fn remove_takes_files_links_and_empty_directories(at: &Place) {
    at.done("mkdir d empty; echo x > d/f; ln -s d/f link; ln -s d dirlink; mkfifo p; chmod 000 empty").await;
    for file in ["link", "dirlink", "p", "empty", "d/f", "d"] {
        at.ws().remove(&name(file)).await.must(&format!("remove {file}"));
        assert_error!(at.ws().symlink_metadata(&name(file)).await, Error::NotFound { .. });
    }
    assert_eq!(at.done("ls -A").await, "");
}

/// Missing names, full directories, and names below files.
pub async fn remove_refuses_what_it_must_not_take(at: &Place) {
    at.put("d/f", "x").await;
    assert_error!(at.ws().remove(&name("missing")).await, Error::NotFound { .. });
    assert_error!(at.ws().remove(&name("no/such")).await, Error::NotFound { .. });
    assert_error!(at.ws().remove(&name("d")).await, Error::DirectoryNotEmpty { .. });
    assert_error!(at.ws().remove(&name("d/f/x")).await, Error::NotADirectory { .. });
    assert_error!(at.ws().remove_all(&name("missing")).await, Error::NotFound { .. });
    assert_error!(at.ws().remove_all(&name("d/f/x")).await, Error::NotADirectory { .. });
    assert_eq!(at.text("d/f").await, "x");
}

/// Trees of any depth and with odd names, and single files and links.
pub async fn remove_all_takes_whatever_is_there(at: &Place) {
    at.done("mkdir -p t/a/b/c t/ro; i=0; while [ $i -lt 50 ]; do : > \"t/a/f $i\"; i=$((i+1)); done; mkfifo t/p; \
        : > \"$(printf 't/\\377')\"; : > 't/-rf'; ln -s / t/out; ln -s ../keep t/in; echo k > keep; echo x > single; \
        d=deep; while [ ${#d} -lt 900 ]; do d=$d/deep; done; mkdir -p $d").await;
    for file in ["t", "single", "deep"] {
        at.ws().remove_all(&name(file)).await.must("remove a tree");
        assert_error!(at.ws().symlink_metadata(&name(file)).await, Error::NotFound { .. });
    }
    assert_eq!(at.done("ls -A; cat keep").await, "keep\nk\n");
}

/// The root stays, whatever is asked.
pub async fn the_root_is_never_removed_or_renamed(at: &Place) {
    at.put("f", "x").await;
    let root = name(".");
    assert_error!(at.ws().remove(&root).await, Error::InvalidArgument { .. });
    assert_error!(at.ws().remove_all(&root).await, Error::InvalidArgument { .. });
    assert_error!(at.ws().rename(&root, &name("other")).await, Error::InvalidArgument { .. });
    assert_error!(at.ws().rename(&name("f"), &root).await, Error::InvalidArgument { .. });
    assert_eq!(at.text("f").await, "x");
}

/// Content, mode and what a link says are kept.
pub async fn rename_moves_files_links_and_directories(at: &Place) {
    at.done("mkdir -p d/sub to; echo x > d/f; chmod 751 d/f; ln -s gone link; echo y > d/sub/g").await;
    at.ws().rename(&name("d/f"), &name("to/f")).await.must("rename a file");
    at.ws().rename(&name("link"), &name("to/link")).await.must("rename a link");
    at.ws().rename(&name("d"), &name("to/d")).await.must("rename a directory");
    assert_eq!(
        at.done("ls -A; stat -c %a to/f; readlink to/link; cat to/f to/d/sub/g").await,
        "to\n751\ngone\nx\ny\n"
    );
}

/// A file replaces a file or link, a directory an empty directory.
pub async fn rename_replaces_what_may_be_replaced(at: &Place) {
    at.done("echo new > a; echo old > b; mkdir d empty; echo x > d/f; echo z > c; ln -s b link").await;
    at.ws().rename(&name("a"), &name("b")).await.must("rename over a file");
    at.ws().rename(&name("d"), &name("empty")).await.must("rename over an empty directory");
    at.ws().rename(&name("c"), &name("link")).await.must("rename over a link");
    assert_eq!(at.done("ls -A; cat b empty/f link").await, "b\nempty\nlink\nnew\nx\nz\n");
    assert!(at.ws().symlink_metadata(&name("link")).await.must("stat").is_file(), "the link is replaced");
    at.ws().rename(&name("b"), &name("b")).await.must("rename onto itself");
    assert_eq!(at.text("b").await, "new\n");
}

/// Every refusal has its own error and changes nothing.
pub async fn rename_refuses_what_it_cannot_do(at: &Place) {
    at.done("mkdir -p d/sub full; echo x > f; echo y > full/g").await;
    let rename = async |from: &str, to: &str| at.ws().rename(&name(from), &name(to)).await;
    assert_error!(rename("missing", "x").await, Error::NotFound { .. });
    assert_error!(rename("f", "no/such/parent").await, Error::NotFound { .. });
    assert_error!(rename("f", "d").await, Error::IsADirectory { .. });
    assert_error!(rename("d", "f").await, Error::NotADirectory { .. });
    assert_error!(rename("d", "full").await, Error::DirectoryNotEmpty { .. });
    assert_error!(rename("d", "d/sub/in").await, Error::InvalidArgument { .. });
    assert_error!(rename("f/x", "x").await, Error::NotADirectory { .. });
    assert_eq!(
        at.done("find . | sort; cat f full/g").await,
        ".\n./d\n./d/sub\n./f\n./full\n./full/g\nx\ny\n"
    );
}

/// Parents included, mode 0755, and it is no error that one is there.
pub async fn directories_are_made_with_their_parents(at: &Place) {
    at.ws().create_dir_all(&name("a/b/c")).await.must("make directories");
    at.ws().create_dir_all(&name("a/b/c")).await.must("make them again");
    at.ws().create_dir_all(&name(".")).await.must("make the root");
    assert_eq!(at.done("stat -c %a a a/b a/b/c").await, "755\n755\n755\n");
    at.done("chmod 700 a/b; ln -s a/b link").await;
    at.ws().create_dir_all(&name("link/d")).await.must("make one through a link");
    at.ws().create_dir_all(&name("link")).await.must("find one through a link");
    assert_eq!(
        at.done("stat -c %a a/b a/b/d; readlink link").await,
        "700\n755\na/b\n",
        "what is there keeps its mode"
    );
}

/// A file, a FIFO and a dangling link have the name already.
pub async fn making_a_directory_over_something_else_is_refused(at: &Place) {
    at.done("echo x > f; mkfifo p").await;
    for file in ["f", "p"] {
        assert_error!(at.ws().create_dir_all(&name(file)).await, Error::AlreadyExists { .. });
    }
    assert_eq!(at.text("f").await, "x\n");
}

/// A new file gets the mode of the first, an existing one keeps its own.
pub async fn copy_writes_as_write_does(at: &Place) {
    let data: Vec<u8> = (0..200_000u32).map(|i| (i % 256) as u8).collect();
    at.put("from", data.clone()).await;
    at.done("chmod 751 from; echo old > there; chmod 600 there; ln -s there link; ln -s from alias").await;
    let written = at.ws().copy(&name("from"), &name("a/b/new")).await.must("copy");
    assert_eq!(written.bytes, data.len() as u64);
    assert!(at.get("a/b/new").await == data, "the copy differs");
    at.ws().copy(&name("alias"), &name("link")).await.must("copy through links");
    assert!(at.get("there").await == data, "the copy through links differs");
    assert_eq!(
        at.done("stat -c %a a/b/new there a; readlink link alias").await,
        "751\n600\n755\nthere\nfrom\n"
    );
    at.put("empty", "").await;
    at.ws().copy(&name("empty"), &name("there")).await.must("copy an empty file");
    assert_eq!(at.get("there").await, b"");
}

/// Directories, missing names, and a file onto itself under another name.
pub async fn copy_refuses_what_it_cannot_do(at: &Place) {
    at.put("d/f", "x").await;
    at.done("ln -s d/f link; ln d/f hard").await;
    let copy = async |from: &str, to: &str| at.ws().copy(&name(from), &name(to)).await;
    assert_error!(copy("missing", "x").await, Error::NotFound { .. });
    assert_error!(copy("d", "x").await, Error::IsADirectory { .. });
    assert_error!(copy("d/f", "d").await, Error::IsADirectory { .. });
    assert_error!(copy("d/f", "d/f").await, Error::InvalidArgument { .. });
    assert_error!(copy("d/f", "link").await, Error::InvalidArgument { .. });
    assert_error!(copy("d/f", "d/f/x").await, Error::NotADirectory { .. });
    assert_eq!(at.done("cat d/f hard").await, "xx");
}
