//! Whole trees in and out.

use std::collections::BTreeMap;

use tokio::io::AsyncReadExt as _;

use super::rig::{Image, Rig, path};
use crate::container::files;
use crate::error::{Error, Result};
use crate::files::{ArchiveOptions, ArchiveReport, Content, UnpackOptions};

/// A tar of names, kinds (`f`ile, `d`irectory, symbolic `l`ink, `h`ard link, `p`ipe) and contents or
/// targets. Names are written raw, so that they may be malformed.
pub(super) fn tar(entries: &[(&str, char, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, value) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let (kind, content) = match kind {
            'd' => (tar::EntryType::Directory, ""),
            'l' => (tar::EntryType::Symlink, ""),
            'h' => (tar::EntryType::Link, ""),
            'p' => (tar::EntryType::Fifo, ""),
            _ => (tar::EntryType::Regular, *value),
        };
        if content.is_empty() {
            header.as_old_mut().linkname[..value.len()].copy_from_slice(value.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_mode(if kind == tar::EntryType::Directory { 0o750 } else { 0o640 });
        header.set_uid(77);
        header.set_gid(77);
        header.set_mtime(1_600_000_000);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

async fn put(rig: &Rig, dir: &str, tar: Vec<u8>) -> Result<ArchiveReport> {
    files::put_archive(&rig.shared, &path(dir), Content::from(tar), UnpackOptions::default()).await
}

async fn get(rig: &Rig, name: &str, options: ArchiveOptions) -> Result<Vec<(String, String)>> {
    let mut reader = files::get_archive(&rig.shared, &path(name), options).await?;
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes).await;
    read.map_err(|error| Error::from_io("read", name, error))?;
    let mut archive = tar::Archive::new(&bytes[..]);
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut text = String::new();
        match entry.link_name_bytes() {
            Some(target) => text = format!("-> {}", String::from_utf8_lossy(&target)),
            None => drop(std::io::Read::read_to_string(&mut entry, &mut text)),
        }
        found.push((name, text));
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_comes_back_as_it_went_in() {
    for (image, user) in [(Image::Debian, "1000:1000"), (Image::Scratch, "0:0")] {
        let rig = Rig::new(image, user, &[]).await;
        rig.sh("mkdir have; printf old >have/f; ln -s have/f file; ln -s have into");
        let long = format!("d/{}", "n".repeat(90));
        let entries = [
            ("d", 'd', ""),
            (long.as_str(), 'f', "long"),
            ("./d/e/f", 'f', "deep"),
            ("have/f", 'f', "new"),
            ("file", 'f', "replaced"),
            ("into/x", 'f', "through"),
            ("hard", 'h', "d/e/f"),
            ("link", 'l', "/etc/passwd"),
            ("BZh9", 'f', "magic"),
        ];
        let report = put(&rig, ".", tar(&entries)).await.unwrap();
        assert_eq!((report.entries, report.bytes), (9, 4 + 4 + 3 + 8 + 7 + 5));
        assert_eq!(
            rig.sh("stat -c %a:%u:%g:%Y d d/e/f").trim().replace('\n', " "),
            format!("750:{user}:1600000000 640:{user}:1600000000")
        );
        assert_eq!(
            rig.sh("cat have/f file have/x hard; readlink into; readlink link"),
            "newreplacedthroughdeephave\n/etc/passwd\n"
        );
        rig.sh("mkfifo d/pipe; mkdir empty; ln d/e/f zz");
        let found: BTreeMap<_, _> =
            get(&rig, ".", ArchiveOptions::default()).await.unwrap().into_iter().collect();
        let expected: BTreeMap<_, _> = [
            ("BZh9", "magic"),
            ("d/", ""),
            ("d/e/", ""),
            ("d/e/f", "deep"),
            (long.as_str(), "long"),
            ("empty/", ""),
            ("file", "replaced"),
            ("hard", "-> d/e/f"),
            ("have/", ""),
            ("have/f", "new"),
            ("have/x", "through"),
            ("into", "-> have"),
            ("link", "-> /etc/passwd"),
            ("zz", "-> d/e/f"),
        ]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
        assert_eq!(found, expected);
        let some = ArchiveOptions::default().exclude("d").exclude("**/f").exclude("[BfhilzZ]*");
        assert_eq!(get(&rig, ".", some).await.unwrap(), [("empty/".to_owned(), String::new())]);
        assert_eq!(
            get(&rig, "into/x", ArchiveOptions::default()).await.unwrap(),
            [("x".to_owned(), "through".to_owned())]
        );
        let small = get(&rig, ".", ArchiveOptions::default().max_bytes(5)).await;
        assert!(matches!(small, Err(Error::TooLarge { limit: 5, .. })), "{small:?}");
        put(&rig, "not/there/yet", tar(&[("x", 'f', "x")])).await.unwrap();
        assert_eq!(rig.sh("cat not/there/yet/x; stat -c %a not").trim(), "x755");
        put(&rig, "into/sub", tar(&[("y", 'f', "y"), ("z", 'h', "y")])).await.unwrap();
        assert_eq!(rig.sh("cat have/sub/z"), "y");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_leaves_is_refused_whole() {
    for (image, user) in [(Image::Debian, "1000:1000"), (Image::Scratch, "0:0")] {
        let rig = Rig::new(image, user, &[]).await;
        rig.root_sh("ln -s /work/out abs; ln -s ../out rel; ln -s ../root back; mkdir dir; printf x >dir/keep; printf x >file");
        let long = "x".repeat(60);
        let evil: [&[(&str, char, &str)]; 16] = [
            &[("../x", 'f', "x")],
            &[("a/../../x", 'f', "x")],
            &[("/work/root/x", 'f', "x")],
            &[("abs/x", 'f', "x")],
            &[("rel/x", 'f', "x")],
            &[("back/x", 'f', "x")],
            &[("rel", 'd', "")],
            &[("l", 'l', "/work/out"), ("l/x", 'f', "x")],
            &[("l", 'l', "../out"), ("l/x", 'f', "x")],
            &[("l", 'l', "l"), ("l/x", 'f', "x")],
            &[("h", 'h', "rel/secret")],
            &[("h", 'h', "../out/secret")],
            &[("p", 'p', "")],
            &[("dir", 'f', "x")],
            &[("file/x", 'f', "x")],
            &[("n", 'f', "x"), ("n/x", 'f', long.as_str())],
        ];
        for entries in evil {
            let with_first = [&[("first", 'f', "x")], entries].concat();
            let refused = put(&rig, ".", tar(&with_first)).await;
            assert!(matches!(refused, Err(Error::Archive { .. })), "{image:?} {entries:?}: {refused:?}");
        }
        for name in ["abs", "rel", "back"] {
            let refused = put(&rig, name, tar(&[("x", 'f', "x")])).await;
            assert!(refused.as_ref().is_err_and(Error::is_outside), "{name}: {refused:?}");
            let refused = get(&rig, name, ArchiveOptions::default()).await;
            assert!(refused.as_ref().is_err_and(Error::is_outside), "{name}: {refused:?}");
        }
        let refused = put(&rig, "file", tar(&[("x", 'f', "x")])).await;
        assert!(matches!(refused, Err(Error::NotADirectory { .. })), "{refused:?}");
        let gzip = put(&rig, ".", b"\x1f\x8b\x08rest".repeat(200)).await;
        assert!(matches!(gzip, Err(Error::Archive { .. })), "{gzip:?}");
        assert_eq!(rig.sh("ls -A /work/out; cat dir/keep"), "secret\nx");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_on_a_tmpfs_is_taken_for_empty_or_lost() {
    let mounts = ["--tmpfs", "/work/root/a/tm//", "--mount", "type=tmpfs,target=/work/root/b"];
    for image in [Image::Debian, Image::Scratch] {
        let rig = Rig::new(image, "0:0", &mounts).await;
        rig.sh("printf x >a/tm/f; printf x >b/f; printf kept >a/g; ln -s b in; mkdir c");
        let unsupported = |result: Result<()>, name: &str| match result {
            Err(Error::Unsupported { reason, .. }) => assert!(reason.contains(name), "{image:?}: {reason}"),
            other => panic!("{image:?} {name}: {other:?}"),
        };
        let all = ArchiveOptions::default;
        unsupported(get(&rig, ".", all()).await.map(drop), "`a/tm`, `b`");
        unsupported(get(&rig, ".", all().exclude("b")).await.map(drop), "exclude `a/tm`");
        unsupported(get(&rig, "a", all().exclude("tm/**")).await.map(drop), "exclude `tm`");
        unsupported(get(&rig, "a/tm", all()).await.map(drop), "`/work/root/a/tm`");
        unsupported(get(&rig, "in", all()).await.map(drop), "`/work/root/b`");
        let names = |found: Vec<(String, String)>| found.into_iter().map(|entry| entry.0).collect::<Vec<_>>();
        let found = get(&rig, ".", all().exclude("b").exclude("**/tm")).await.unwrap();
        assert_eq!(names(found), ["a/", "a/g", "c/", "in"]);
        assert_eq!(names(get(&rig, ".", all().exclude("a").exclude("b")).await.unwrap()), ["c/", "in"]);
        assert!(get(&rig, "c", all()).await.unwrap().is_empty());
        for (dir, name, kind) in [
            (".", "a/tm/x", 'f'),
            (".", "b", 'd'),
            ("a", "tm/d/x", 'f'),
            ("b", "x", 'f'),
            ("b/new", "x", 'f'),
            (".", "in/x", 'f'),
            (".", "in/x", 'l'),
        ] {
            let value = if kind == 'd' { "" } else { "lost" };
            let tar = tar(&[("first", 'f', "x"), (name, kind, value)]);
            unsupported(put(&rig, dir, tar).await.map(drop), "mounted at");
        }
        let link = tar(&[("first", 'f', "x"), ("hard", 'h', "b/f")]);
        unsupported(put(&rig, ".", link).await.map(drop), "mounted at");
        assert_eq!(rig.sh("ls; ls a/tm b"), "a\nb\nc\nin\na/tm:\nf\n\nb:\nf\n");
        put(&rig, ".", tar(&[("a/new", 'f', "x")])).await.unwrap();
        assert_eq!(rig.sh("cat a/new"), "x");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tmpfs_behind_a_link_of_the_image_is_known_where_it_is() {
    let rig = Rig::new(Image::Debian, "0:0", &["--tmpfs", "/var/run/./x"]).await;
    assert_eq!(rig.root_sh("grep -c ' /run/x tmpfs ' /proc/mounts"), "1\n");
    let hidden = &rig.shared.hidden_mounts;
    assert!(hidden.iter().any(|path| path == "/run/x"), "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_and_bind_mounts_are_in_the_tree() {
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("f"), "from the host").unwrap();
    let bind = format!("{}:/work/root/d/bind", host.path().display());
    let rig = Rig::new(Image::Scratch, "0:0", &["-v", "/work/root/vol", "-v", &bind]).await;
    rig.sh("printf volume >vol/f; printf x | dd of=sparse bs=1 seek=8388608 2>&1");
    let found: BTreeMap<_, _> =
        get(&rig, ".", ArchiveOptions::default()).await.unwrap().into_iter().collect();
    assert_eq!((found["vol/f"].as_str(), found["d/bind/f"].as_str()), ("volume", "from the host"));
    let sparse = &found["sparse"];
    assert!(sparse.len() == 8_388_609 && sparse.ends_with("\0x") && sparse.starts_with('\0'));
    put(&rig, ".", tar(&[("vol/new", 'f', "1"), ("d/bind/new", 'f', "2")])).await.unwrap();
    assert_eq!(rig.sh("cat vol/new d/bind/new"), "12");
    assert_eq!(std::fs::read_to_string(host.path().join("new")).unwrap(), "2");
}
