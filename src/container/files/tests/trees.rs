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
