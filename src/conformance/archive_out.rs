//! Packing trees: what is in the archive, in which order, and what is left out.

use tar::EntryType;
use tokio::io::AsyncReadExt as _;

use super::place::{Must as _, Place, assert_error, name};
use super::tarball::{entries, pack, packed};
use crate::{ArchiveOptions, Content, Error, UnpackOptions};

cases!("archive_out" {
    a_tree_is_packed_with_everything_in_it [Files, Archives];
    entries_come_in_the_order_of_their_names [Files, Archives];
    one_file_is_one_entry [Files, Archives];
    a_link_given_as_the_path_is_followed [Files, Archives];
    special_files_are_left_out [Files, Archives];
    what_is_excluded_is_left_out_with_all_below [Files, Archives];
    a_link_to_what_is_excluded_carries_the_content [Files, Archives];
    too_many_bytes_end_the_archive [Files, Archives];
    what_cannot_be_packed_is_told [Files, Archives];
    odd_and_long_names_are_packed [Files, Archives];
    a_tree_survives_the_way_out_and_in [Files, Archives];
    a_dropped_archive_releases_what_it_held [Files, Archives];
    a_changing_tree_gives_a_whole_archive_or_an_error [Files, Archives];
});

fn all() -> ArchiveOptions {
    ArchiveOptions::default()
}

async fn names(at: &Place, path: &str, options: ArchiveOptions) -> Vec<String> {
    pack(at, path, options).await.into_iter().map(|entry| entry.name).filter(|name| name != ".").collect()
}

/// Names are relative; kinds, modes, times, targets and contents are there.
pub async fn a_tree_is_packed_with_everything_in_it(at: &Place) {
    at.done("mkdir -p t/d t/empty; echo content > t/d/f; chmod 4751 t/d/f; chmod 1777 t/empty; ln -s ../d/f t/d/l; \
        ln -s /etc t/out; ln t/d/f t/hard; touch -d '2001-02-03 04:05:06' t/d/f").await;
    let packed = pack(at, "t", all()).await;
    let get = |wanted: &str| match packed.iter().find(|entry| entry.name == wanted) {
        Some(entry) => entry.clone(),
        None => panic!("{wanted} is missing in {packed:?}"),
    };
    assert_eq!(get("d").kind, EntryType::Directory);
    assert_eq!((get("empty").kind, get("empty").mode), (EntryType::Directory, 0o1777));
    let file = get("d/f");
    assert_eq!((file.kind, file.mode, file.data.as_slice()), (EntryType::Regular, 0o4751, &b"content\n"[..]));
    assert_eq!(file.mtime.to_string(), at.done("stat -c %Y t/d/f").await.trim());
    assert_eq!((get("d/l").kind, get("d/l").target.as_str()), (EntryType::Symlink, "../d/f"));
    assert_eq!((get("out").kind, get("out").target.as_str()), (EntryType::Symlink, "/etc"));
    let hard = get("hard");
    assert!(hard.kind == EntryType::Link && hard.target == "d/f" || hard.data == b"content\n", "{hard:?}");
    assert!(
        packed.iter().all(|entry| !entry.name.starts_with(['/', '.']) || entry.name == "."),
        "{packed:?}"
    );
}

/// Sorted, a directory before what is in it.
pub async fn entries_come_in_the_order_of_their_names(at: &Place) {
    at.done("mkdir -p t/b t/a.d t/a; for f in z b/z b/a a/x a.d/x a-x c B; do echo > t/$f; done").await;
    let listed = names(at, "t", all()).await;
    let mut expected: Vec<Vec<&str>> = ["B", "a", "a/x", "a-x", "a.d", "a.d/x", "b", "b/a", "b/z", "c", "z"]
        .map(|n| n.split('/').collect())
        .into();
    expected.sort();
    assert_eq!(listed, expected.iter().map(|elements| elements.join("/")).collect::<Vec<_>>());
}

/// A file is one entry under its last element.
pub async fn one_file_is_one_entry(at: &Place) {
    at.put("d/f", "content").await;
    let packed = pack(at, "d/f", all()).await;
    assert_eq!(packed.len(), 1);
    assert_eq!((packed[0].name.as_str(), packed[0].data.as_slice()), ("f", &b"content"[..]));
    at.put("empty", "").await;
    assert_eq!(pack(at, "empty", all()).await[0].data, b"");
}

/// The tree behind the link is packed, links in it are not followed.
pub async fn a_link_given_as_the_path_is_followed(at: &Place) {
    at.done("mkdir d; echo x > d/f; ln -s d dir; ln -s d/f file").await;
    assert_eq!(names(at, "dir", all()).await, ["f"]);
    let packed = pack(at, "file", all()).await;
    assert_eq!(
        (packed.len(), packed[0].kind, packed[0].data.as_slice()),
        (1, EntryType::Regular, &b"x\n"[..])
    );
    at.done("ln -s gone dangling").await;
    assert_error!(at.ws().get_archive(&name("dangling"), all()).await, Error::NotFound { .. });
}

/// FIFOs, devices and sockets are not in it and block nothing.
pub async fn special_files_are_left_out(at: &Place) {
    at.done("mkdir t; mkfifo t/pipe; echo x > t/f; mknod t/dev c 1 3 2>/dev/null || true").await;
    assert_eq!(names(at, "t", all()).await, ["f"]);
}

/// Patterns match names relative to the packed directory.
pub async fn what_is_excluded_is_left_out_with_all_below(at: &Place) {
    at.done("mkdir -p t/target/deep t/src/target t/.git; for f in target/a target/deep/b src/c.o src/d.rs src/target/e \
        f.o .git/g; do echo > t/$f; done").await;
    let options = all().exclude("target").exclude("**/*.o").exclude(".git");
    let listed = names(at, "t", options).await;
    assert_eq!(listed, ["src", "src/d.rs", "src/target", "src/target/e"]);
    let bad = at.ws().get_archive(&name("t"), all().exclude("a[")).await;
    assert_error!(bad, Error::InvalidArgument { .. });
}

/// The first name of a file that is in the archive carries its content, whatever is left out.
pub async fn a_link_to_what_is_excluded_carries_the_content(at: &Place) {
    at.done("mkdir -p t/a t/b; echo content > t/a/f; ln t/a/f t/b/h; ln t/a/f t/b/g; chmod 640 t/a/f; ln -s no t/a/s; \
        ln t/a/s t/b/s; echo other > t/a/alone").await;
    let packed = pack(at, "t", all().exclude("a").max_bytes(8)).await;
    let packed: Vec<_> = packed.into_iter().filter(|entry| entry.name != ".").collect();
    let names: Vec<_> = packed.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["b", "b/g", "b/h", "b/s"]);
    let [_, first, second, link] = &packed[..] else { unreachable!("four names were compared") };
    assert_eq!(
        (first.kind, first.mode, first.data.as_slice()),
        (EntryType::Regular, 0o640, &b"content\n"[..])
    );
    assert_eq!((second.kind, second.target.as_str()), (EntryType::Link, "b/g"));
    assert_eq!((link.kind, link.target.as_str()), (EntryType::Symlink, "no"));
}

/// The archive ends with an error, never as if it were whole.
pub async fn too_many_bytes_end_the_archive(at: &Place) {
    at.put("t/a", vec![b'a'; 100_000]).await;
    at.put("t/b", vec![b'b'; 100_000]).await;
    assert_eq!(names(at, "t", all().max_bytes(200_000)).await, ["a", "b"]);
    let result = match at.ws().get_archive(&name("t"), all().max_bytes(199_999)).await {
        Ok(mut reader) => {
            let mut bytes = Vec::new();
            let read = reader.read_to_end(&mut bytes).await;
            read.map(|_| ()).map_err(|error| Error::from_io("read", "t", error))
        }
        Err(error) => Err(error),
    };
    assert_error!(result, Error::TooLarge { limit: 199_999, .. });
}

/// A missing name, and below a file.
pub async fn what_cannot_be_packed_is_told(at: &Place) {
    at.put("f", "x").await;
    assert_error!(at.ws().get_archive(&name("missing"), all()).await, Error::NotFound { .. });
    assert_error!(at.ws().get_archive(&name("f/x"), all()).await, Error::NotADirectory { .. });
}

/// Names over 100 and 255 bytes, bytes that are no text, names with newlines.
pub async fn odd_and_long_names_are_packed(at: &Place) {
    let element = "e".repeat(200);
    at.put(&format!("t/{element}/{element}/f"), "deep").await;
    at.put("t/a\nb", "newline").await;
    at.put("t/-rf", "dash").await;
    at.done("echo raw > \"$(printf 't/\\377')\"; ln -s \"$(printf '%0150d' 7)\" t/l").await;
    let packed = packed(at, "t", all()).await;
    let listed = entries(&packed);
    let has = |name: &str| listed.iter().any(|entry| entry.name == name);
    assert!(has(&format!("{element}/{element}/f")) && has("a\nb") && has("-rf"), "{listed:?}");
    assert!(listed.iter().any(|entry| entry.target.len() == 150), "a long target");
    assert!(listed.iter().any(|entry| entry.data == b"raw\n"), "a name that is not UTF-8 is there too");
    let report = at.ws().put_archive(&name("back"), Content::from(packed), UnpackOptions::default()).await;
    report.must("unpack");
    assert_eq!(at.done("cat \"$(printf 'back/\\377')\"").await, "raw\n");
}

/// Packed, unpacked and packed again it is the same.
pub async fn a_tree_survives_the_way_out_and_in(at: &Place) {
    at.done("mkdir -p t/d/e t/empty; echo x > t/d/f; echo y > t/d/e/g; chmod 751 t/d/f; ln -s d/f t/l; ln t/d/f t/z; \
        : > t/zero; chmod 700 t/d/e; touch -d '2001-02-03 04:05:06' t/d/f t/empty t/d/e").await;
    let first = packed(at, "t", all()).await;
    let report =
        at.ws().put_archive(&name("u"), Content::from(first.clone()), UnpackOptions::default()).await;
    assert!(report.must("unpack").entries >= 8);
    let again = pack(at, "u", all()).await;
    let first = entries(&first);
    let skip_root = |entries: Vec<super::tarball::Entry>| -> Vec<_> {
        entries.into_iter().filter(|entry| !entry.name.is_empty() && entry.name != ".").collect()
    };
    // A changed directory has the time of the change, so directories that hold something differ.
    let strip = |entries: Vec<super::tarball::Entry>| -> Vec<_> {
        skip_root(entries)
            .into_iter()
            .map(|mut entry| {
                if entry.kind == EntryType::Symlink {
                    entry.mtime = 0;
                }
                entry
            })
            .collect()
    };
    assert_eq!(strip(again), strip(first));
}

/// Archives that are dropped before their end hold nothing back.
pub async fn a_dropped_archive_releases_what_it_held(at: &Place) {
    at.put("t/f", vec![7; 4 << 20]).await;
    for _ in 0..20 {
        let mut reader = at.ws().get_archive(&name("t"), all()).await.must("pack");
        reader.read_exact(&mut [0; 512]).await.must("read a block");
    }
    assert_eq!(at.get("t/f").await.len(), 4 << 20);
}

/// A file that grows and shrinks while it is packed never breaks the stream silently.
pub async fn a_changing_tree_gives_a_whole_archive_or_an_error(at: &Place) {
    at.put("t/f", vec![b'a'; 1 << 20]).await;
    at.put("t/last", "last").await;
    let script = "while [ ! -e stop ]; do echo more >> t/f; echo > t/f; echo x > t/new; rm t/new; done";
    let packing = async {
        for _ in 0..10 {
            let mut bytes = Vec::new();
            let read = match at.ws().get_archive(&name("t"), all()).await {
                Ok(mut reader) => {
                    reader.read_to_end(&mut bytes).await.map_err(|e| Error::from_io("read", "t", e))
                }
                Err(error) => Err(error),
            };
            match read {
                Ok(_) => {
                    assert!(entries(&bytes).iter().any(|entry| entry.data == b"last"), "an archive is whole")
                }
                Err(error) => assert!(matches!(error, Error::Changed { .. }), "{error:?}"),
            }
        }
        at.put("stop", "").await;
    };
    let (ran, ()) = tokio::join!(at.run(at.sh(script)), packing);
    assert!(ran.success(), "{ran}");
}
