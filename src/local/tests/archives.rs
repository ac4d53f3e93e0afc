//! Archives: with GNU tar as the oracle, where the machine has it, and hostile ones made by hand.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use tokio::io::AsyncReadExt as _;

use super::{Fixture, path};
use crate::error::{Error, Result};
use crate::files::{ArchiveOptions, ArchiveReport, Content, UnpackOptions};
use crate::tar::{Entry, TarWriter, Time};
use crate::workspace::Workspace as _;

impl Fixture {
    async fn unpack(&self, dir: &str, tar: Vec<u8>) -> Result<ArchiveReport> {
        let content = Content::reader(std::io::Cursor::new(tar));
        self.workspace.put_archive(&path(dir), content, UnpackOptions::default()).await
    }

    async fn pack(&self, name: &str, options: ArchiveOptions) -> Result<Vec<u8>> {
        let mut reader = self.workspace.get_archive(&path(name), options).await?;
        let mut data = Vec::new();
        match reader.read_to_end(&mut data).await {
            Ok(_) => Ok(data),
            Err(e) => Err(Error::from_io("read", name, e)),
        }
    }
}

/// An archive of entries by type, name, link and content.
fn archive(entries: &[(u8, &str, &str, &[u8])]) -> Vec<u8> {
    let mut writer = TarWriter::new(Vec::new());
    for (kind, name, link, content) in entries {
        let entry = Entry {
            name: name.as_bytes(),
            kind: tar::EntryType::new(*kind),
            link: link.as_bytes(),
            mode: 0o640,
            owner: (0, 0),
            size: content.len() as u64,
            modified: Time { seconds: 1_000_000_000, nanos: 0 },
        };
        writer.start(&entry).unwrap();
        writer.data(content).unwrap();
        writer.pad(content.len() as u64).unwrap();
    }
    writer.finish().unwrap()
}

/// What GNU tar makes of a directory.
fn gnu_tar(dir: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("tar").args(args).args(["-c", "-f", "-", "-C"]).arg(dir).arg(".").output();
    output.ok().filter(|output| output.status.success()).map(|output| output.stdout)
}

fn sample(dir: &Path) {
    std::fs::create_dir_all(dir.join("empty")).unwrap();
    std::fs::create_dir_all(dir.join("closed")).unwrap();
    std::fs::write(dir.join("closed/inside"), "in").unwrap();
    std::fs::write(dir.join("plain"), "content").unwrap();
    std::fs::set_permissions(dir.join("plain"), std::fs::Permissions::from_mode(0o4711)).unwrap();
    std::fs::hard_link(dir.join("plain"), dir.join("second")).unwrap();
    symlink("/somewhere/else", dir.join("link")).unwrap();
    let long = dir.join("l".repeat(200)).join("m".repeat(200));
    std::fs::create_dir_all(&long).unwrap();
    std::fs::write(long.join("n\nn"), "long").unwrap();
    symlink("x".repeat(300), long.join("link")).unwrap();
    let holes = std::fs::File::create(dir.join("holes")).unwrap();
    for part in 0..30u64 {
        std::os::unix::fs::FileExt::write_all_at(&holes, &[7; 4096], part << 20).unwrap();
    }
    holes.set_len(64 << 20).unwrap();
    std::fs::set_permissions(dir.join("closed"), std::fs::Permissions::from_mode(0o555)).unwrap();
}

/// Every name below `dir` with what is compared.
fn state(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![dir.to_owned()];
    while let Some(next) = stack.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            let stat = entry.metadata().unwrap();
            let path = entry.path();
            let mut line = format!("{} {:o}", path.strip_prefix(dir).unwrap().display(), stat.mode());
            line += &format!(" {}.{}", stat.mtime(), stat.mtime_nsec());
            if stat.is_dir() {
                stack.push(path);
            } else {
                line += &format!(" {} links {}", stat.len(), stat.nlink());
                line += &match std::fs::read_link(&path) {
                    Ok(target) => target.display().to_string(),
                    Err(_) => format!(
                        "{:x?}",
                        &std::fs::read(&path).unwrap().iter().map(|b| u64::from(*b)).sum::<u64>()
                    ),
                };
            }
            found.push(line);
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn archives_of_gnu_tar_in_every_format_are_unpacked() {
    let fixture = Fixture::new();
    let sample_dir = fixture.outside("sample");
    sample(&sample_dir);
    let pax: &[&[&str]] = &[
        &["--format=posix"],
        &["--format=posix", "--sparse", "--sparse-version=1.0"],
        &["--format=posix", "--sparse", "--sparse-version=0.1"],
        &["--format=posix", "--sparse", "--sparse-version=0.0"],
    ];
    for args in pax {
        let Some(tar) = gnu_tar(&sample_dir, args) else { return };
        fixture.unpack("unpacked/here", tar).await.unwrap();
        assert_eq!(state(&fixture.host("unpacked/here")), state(&sample_dir), "{args:?}");
        let blocks = std::fs::metadata(fixture.host("unpacked/here/holes")).unwrap().blocks();
        assert!(args.len() == 1 || blocks < 4096, "{args:?}: {blocks}");
        fixture.workspace.remove_all(&path("unpacked")).await.unwrap();
    }
    for args in [&["--format=gnu"][..], &["--format=gnu", "--sparse"]] {
        let Some(tar) = gnu_tar(&sample_dir, args) else { return };
        fixture.unpack("unpacked", tar).await.unwrap();
        let seconds = |dir: &Path| -> Vec<_> {
            state(dir).into_iter().map(|line| line.split('.').next().unwrap().to_owned()).collect()
        };
        assert_eq!(seconds(&fixture.host("unpacked")), seconds(&sample_dir), "{args:?}");
        let holes = |dir: &Path| std::fs::read(dir.join("holes")).unwrap();
        assert!(holes(&fixture.host("unpacked")) == holes(&sample_dir), "{args:?}");
        fixture.workspace.remove_all(&path("unpacked")).await.unwrap();
    }
}

#[tokio::test]
async fn a_packed_tree_comes_back_from_gnu_tar_and_from_here() {
    let fixture = Fixture::new();
    sample(&fixture.host("tree"));
    let tar = fixture.pack("tree", ArchiveOptions::default()).await.unwrap();
    fixture.unpack("again", tar.clone()).await.unwrap();
    assert_eq!(state(&fixture.host("again")), state(&fixture.host("tree")));
    std::fs::write(fixture.outside("tar"), tar).unwrap();
    std::fs::create_dir(fixture.outside("gnu")).unwrap();
    let status = Command::new("tar")
        .args(["--same-permissions", "-x", "-f"])
        .arg(fixture.outside("tar"))
        .arg("-C")
        .arg(fixture.outside("gnu"))
        .status();
    if let Ok(status) = status {
        assert!(status.success());
        assert_eq!(state(&fixture.outside("gnu")), state(&fixture.host("tree")));
    }
}

#[tokio::test]
async fn one_file_and_parts_of_a_tree_are_packed() {
    let fixture = Fixture::new();
    fixture.write("d/keep/a", "12345").await.unwrap();
    fixture.write("d/target/b", "12345").await.unwrap();
    fixture.write("d/keep/x.o", "12345").await.unwrap();
    let options = ArchiveOptions::default().exclude("target").exclude("**/*.o");
    let tar = fixture.pack("d", options).await.unwrap();
    fixture.unpack("out", tar).await.unwrap();
    assert!(fixture.host("out/keep/a").exists() && !fixture.host("out/target").exists());
    assert!(!fixture.host("out/keep/x.o").exists());
    let tar = fixture.pack("d/keep/a", ArchiveOptions::default()).await.unwrap();
    fixture.unpack("one", tar).await.unwrap();
    assert_eq!(std::fs::read(fixture.host("one/a")).unwrap(), b"12345");
    let small = fixture.pack("d", ArchiveOptions::default().max_bytes(9)).await;
    assert!(matches!(small, Err(Error::TooLarge { limit: 9, .. })), "{small:?}");
    let pattern = fixture.pack("d", ArchiveOptions::default().exclude("a[")).await;
    assert!(matches!(pattern, Err(Error::InvalidArgument { .. })));
}

#[tokio::test]
async fn entries_that_leave_are_refused_and_those_before_them_stay() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.outside("beside")).unwrap();
    std::fs::write(fixture.outside("beside/secret"), "s").unwrap();
    let inside = fixture.host("in");
    let absolute = inside.to_str().unwrap();
    for (name, bad) in [
        ("../x", vec![(b'0', "../x", "", &b"x"[..])]),
        ("/x", vec![(b'0', "/x", "", b"x")]),
        ("a/../../x", vec![(b'0', "a/../../x", "", b"x")]),
        ("up/new", vec![(b'2', "up", "../../beside", b""), (b'0', "up/new", "", b"x")]),
        ("up/d/", vec![(b'2', "up", "../../beside", b""), (b'5', "up/d/", "", b"")]),
        ("near/new", vec![(b'2', "near", "..", b""), (b'0', "near/new", "", b"x")]),
        ("abs/new", vec![(b'2', "abs", absolute, b""), (b'0', "abs/new", "", b"x")]),
        ("hard", vec![(b'1', "hard", "../../beside/secret", b"")]),
        ("hard", vec![(b'2', "up", "../../beside", b""), (b'1', "hard", "up/secret", b"")]),
        ("fifo", vec![(b'6', "fifo", "", b"")]),
        ("device", vec![(b'3', "device", "", b"")]),
        ("good", vec![(b'5', "good/", "", b"")]),
    ] {
        let mut entries = vec![(b'0', "./good", "", &b"good"[..])];
        entries.extend(bad);
        let error = fixture.unpack("in", archive(&entries)).await.unwrap_err();
        assert!(
            matches!(&error, Error::Archive { entry, .. } if entry.trim_end_matches('/') == name.trim_end_matches('/')),
            "{name}: {error:?}"
        );
        assert_eq!(std::fs::read(fixture.host("in/good")).unwrap(), b"good");
        assert_eq!(std::fs::read_dir(fixture.outside("beside")).unwrap().count(), 1);
        assert!(!fixture.outside("x").exists() && !fixture.host("x").exists());
        fixture.workspace.remove_all(&path("in")).await.unwrap();
    }
    // A link out may be unpacked, and replaced by a file.
    let tar = archive(&[(b'2', "up", "../../beside/secret", b""), (b'0', "up", "", b"file")]);
    fixture.unpack("in", tar).await.unwrap();
    assert_eq!(std::fs::read(fixture.host("in/up")).unwrap(), b"file");
    assert_eq!(std::fs::read(fixture.outside("beside/secret")).unwrap(), b"s");
}

#[tokio::test]
async fn broken_and_compressed_streams_are_refused() {
    let fixture = Fixture::new();
    let good = archive(&[(b'0', "a", "", &[1; 700]), (b'0', "b", "", b"x")]);
    for cut in [0, 1, 512, 700, 1536, 2048, 2560] {
        let error = fixture.unpack("in", good[..cut].to_vec()).await.unwrap_err();
        assert!(matches!(error, Error::Archive { .. }), "{cut}: {error:?}");
    }
    let mut wrong = good.clone();
    wrong[3] = b'!';
    let error = fixture.unpack("in", wrong).await.unwrap_err();
    assert!(matches!(error, Error::Archive { .. }));
    for magic in [&b"\x1f\x8b\x08rest"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh9"] {
        let error = fixture.unpack("in", magic.to_vec()).await.unwrap_err();
        assert!(error.to_string().contains("compressed"), "{error}");
    }
    // A file whose name begins like a compressed stream is no such stream.
    assert_eq!(fixture.unpack("in", archive(&[(b'0', "BZh", "", b"x")])).await.unwrap().entries, 1);
    let limits = UnpackOptions::default().max_bytes(10);
    let tar = Content::from(archive(&[(b'0', "c", "", b"12345"), (b'0', "d", "", b"123456")]));
    let error = fixture.workspace.put_archive(&path("in"), tar, limits).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 10, .. }));
    assert!(fixture.host("in/c").exists() && !fixture.host("in/d").exists());
    let names: Vec<_> =
        std::fs::read_dir(fixture.host("in")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_str().unwrap().starts_with('.')), "{names:?}");
}

#[tokio::test]
async fn closing_ends_an_archive_that_nobody_reads() {
    let fixture = Fixture::new();
    std::fs::File::create(fixture.host("big")).unwrap().set_len(64 << 20).unwrap();
    let mut reader = fixture.workspace.get_archive(&path("."), ArchiveOptions::default()).await.unwrap();
    reader.read_u8().await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(10), fixture.workspace.close())
        .await
        .unwrap()
        .unwrap();
    let error = reader.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert!(matches!(Error::from_io("read", "big", error), Error::Closed));
}
