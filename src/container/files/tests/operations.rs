//! What each operation does where nobody is in its way.

use std::time::{Duration, Instant, UNIX_EPOCH};

use super::rig::{Image, Rig, SHELL_RIGS, path};
use crate::container::files;
use crate::error::Error;
use crate::files::{Content, FileKind, ListOptions, OpenOptions, WriteMethod, WriteOptions};

const ODD: [&str; 12] =
    [" a ", "-rf", "a\\b", "a\nb", "nl\n", "ä/ö", "'q'\"", "$(x)", "*", "a b/c d", ".hidden", "x/\n\n"];

async fn read(rig: &Rig, name: &str) -> Result<Vec<u8>, Error> {
    files::open(&rig.shared, &path(name), OpenOptions::default()).await?.read_all().await
}

async fn write(rig: &Rig, name: &str, content: impl Into<Content>) -> Result<WriteMethod, Error> {
    let written = files::write(&rig.shared, &path(name), content.into(), WriteOptions::default()).await?;
    Ok(written.method)
}

#[tokio::test(flavor = "multi_thread")]
async fn content_and_odd_names_come_back_byte_for_byte() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &[]).await;
        let all: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        for name in ODD {
            assert_eq!(write(&rig, name, all.clone()).await.unwrap(), WriteMethod::Atomic, "{name:?}");
            assert!(read(&rig, name).await.unwrap() == all, "{image:?} {name:?}");
            let metadata = files::metadata(&rig.shared, &path(name)).await.unwrap();
            assert_eq!((metadata.size, metadata.mode), (70_000, 0o644));
            files::remove(&rig.shared, &path(name)).await.unwrap();
            assert!(read(&rig, name).await.unwrap_err().is_not_found());
        }
        write(&rig, "empty", "").await.unwrap();
        assert_eq!(read(&rig, "empty").await.unwrap(), b"");
        let large: Vec<u8> = (0..10u32 << 20).map(|n| (n ^ (n >> 8)) as u8).collect();
        write(&rig, "large", Content::reader(std::io::Cursor::new(large.clone()))).await.unwrap();
        assert!(read(&rig, "large").await.unwrap() == large);
        let part = OpenOptions::default().offset(5 << 20).length(100);
        let part = files::open(&rig.shared, &path("large"), part).await.unwrap().read_all().await.unwrap();
        assert!(part == large[5 << 20..][..100]);
        let beyond = OpenOptions::default().offset(11 << 20);
        let beyond = files::open(&rig.shared, &path("large"), beyond).await.unwrap();
        assert_eq!(beyond.read_all().await.unwrap(), b"");
        let small = OpenOptions::default().max_size(10);
        let refused = files::open(&rig.shared, &path("large"), small).await;
        assert!(matches!(refused, Err(Error::TooLarge { limit: 10, .. })));
        assert!(!rig.sh("ls -A").contains(".tmp"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_keeps_mode_and_links_and_makes_parents() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &[]).await;
        rig.sh("umask 0; printf old >f; chmod 600 f; mkdir d; ln -s ../f d/l; ln -s new d/dangling");
        write(&rig, "d/l", "new").await.unwrap();
        assert_eq!(rig.sh("cat f; readlink d/l; stat -c %a f"), "new../f\n600\n");
        write(&rig, "d/dangling", "made").await.unwrap();
        assert_eq!(rig.sh("cat d/new; readlink d/dangling"), "madenew\n");
        write(&rig, "p/q/r", "x").await.unwrap();
        assert_eq!(rig.sh("stat -c %a:%u p p/q p/q/r | head -c 3"), "755");
        let owner = rig.sh("stat -c %u:%g p/q/r");
        assert_eq!(owner.trim(), user);
        let alone = WriteOptions::default().parents(false);
        let missing = files::write(&rig.shared, &path("no/x"), "x".into(), alone).await;
        assert!(missing.unwrap_err().is_not_found());
        let moded = WriteOptions::default().mode(0o4751);
        files::write(&rig.shared, &path("moded"), "x".into(), moded).await.unwrap();
        assert_eq!(rig.sh("stat -c %a moded"), "4751\n");
        assert!(matches!(write(&rig, "d", "x").await, Err(Error::IsADirectory { .. })));
        assert!(matches!(write(&rig, "f/x", "x").await, Err(Error::NotADirectory { .. })));
        assert!(matches!(write(&rig, ".", "x").await, Err(Error::IsADirectory { .. })));
        let short = Content::sized_reader(&b"abc"[..], 5);
        assert!(write(&rig, "f", short).await.is_err());
        assert_eq!(rig.sh("cat f; ls -A | head -50").replace(['\n'], " "), "newd f moded p ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_somebody_else_keeps_its_owner() {
    for image in [Image::Busybox, Image::Debian] {
        let root = Rig::new(image, "0:0", &[]).await;
        root.root_sh("printf old >f; chown 7:8 f; chmod 2755 f");
        assert_eq!(write(&root, "f", "new").await.unwrap(), WriteMethod::Atomic);
        assert_eq!(root.root_sh("stat -c %a:%u:%g f; cat f"), "2755:7:8\nnew");
        let user = Rig::new(image, "1000:1000", &[]).await;
        user.root_sh("printf old-content >f; chmod 666 f; printf x >g; chmod 600 g");
        assert_eq!(write(&user, "f", "new").await.unwrap(), WriteMethod::InPlace);
        assert_eq!(user.root_sh("stat -c %a:%u f; cat f"), "666:0\nnew");
        assert!(matches!(write(&user, "g", "new").await, Err(Error::PermissionDenied { .. })));
        assert!(matches!(read(&user, "g").await, Err(Error::PermissionDenied { .. })));
        user.root_sh("mkdir d; printf old >d/f; chmod 666 d/f");
        assert_eq!(write(&user, "d/f", "new").await.unwrap(), WriteMethod::InPlace);
        let failing = Content::sized_reader(&b"abc"[..], 5);
        assert!(write(&user, "d/f", failing).await.is_err());
        assert_eq!(user.root_sh("cat d/f; ls -A d"), "newf\n");
        assert!(matches!(write(&user, "d/g", "new").await, Err(Error::PermissionDenied { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_does_not_block() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &[]).await;
        rig.sh("mkfifo p; printf x >f");
        let started = Instant::now();
        let refused = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::NotAFile { kind: FileKind::Fifo, .. })), "{result:?}");
        };
        refused(read(&rig, "p").await.map(drop));
        refused(write(&rig, "p", "x").await.map(drop));
        refused(files::copy(&rig.shared, &path("p"), &path("q")).await.map(drop));
        refused(files::copy(&rig.shared, &path("f"), &path("p")).await.map(drop));
        assert_eq!(files::metadata(&rig.shared, &path("p")).await.unwrap().kind, FileKind::Fifo);
        files::set_mode(&rig.shared, &path("p"), 0o600).await.unwrap();
        files::remove(&rig.shared, &path("p")).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_has_every_name_and_kind() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &[]).await;
        rig.sh("mkdir d; printf x >.f; ln -s d l; ln -s nowhere dangling; mkfifo p; printf x >'*'; \
                printf x >\"$(printf 'raw\\377')\"; printf x >'nl\n'; ln -s / abs");
        let page = files::read_dir(&rig.shared, &path("."), ListOptions::default()).await.unwrap();
        let found: Vec<_> = page.entries.iter().map(|e| (e.name.as_bytes().to_vec(), e.kind)).collect();
        let expected: [(&[u8], FileKind); 9] = [
            (b"*", FileKind::File),
            (b".f", FileKind::File),
            (b"abs", FileKind::Symlink),
            (b"d", FileKind::Directory),
            (b"dangling", FileKind::Symlink),
            (b"l", FileKind::Symlink),
            (b"nl\n", FileKind::File),
            (b"p", FileKind::Fifo),
            (b"raw\xff", FileKind::File),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.to_vec(), kind)), "{image:?}");
        let empty = files::read_dir(&rig.shared, &path("l"), ListOptions::default()).await.unwrap();
        assert!(empty.entries.is_empty());
        let list = files::read_dir(&rig.shared, &path(".f"), ListOptions::default()).await;
        assert!(matches!(list, Err(Error::NotADirectory { .. })), "{list:?}");
        let list = files::read_dir(&rig.shared, &path("none"), ListOptions::default()).await;
        assert!(matches!(list, Err(Error::NotFound { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_are_changed() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &[]).await;
        let shared = &rig.shared;
        files::create_dir_all(shared, &path("a/b\n/c")).await.unwrap();
        files::create_dir_all(shared, &path("a/b\n/c")).await.unwrap();
        rig.sh("printf x >f; ln -s nowhere dangling; ln -s a la; mkdir -p t/u/v t/empty; printf x >t/u/-f; \
                ln -s /work/out t/u/out; printf x >t/.h");
        for name in ["f", "dangling"] {
            let made = files::create_dir_all(shared, &path(name)).await;
            assert!(matches!(made, Err(Error::AlreadyExists { .. })), "{name} {made:?}");
        }
        let made = files::create_dir_all(shared, &path("f/x")).await;
        assert!(matches!(made, Err(Error::NotADirectory { .. })), "{made:?}");
        let removed = files::remove(shared, &path("a")).await;
        assert!(matches!(removed, Err(Error::DirectoryNotEmpty { .. })), "{removed:?}");
        files::remove_all(shared, &path("t")).await.unwrap();
        files::remove_all(shared, &path("la")).await.unwrap();
        assert_eq!(rig.sh("ls -A; cat /work/out/secret"), "a\ndangling\nf\nsecret");
        assert!(matches!(files::remove_all(shared, &path("t")).await, Err(Error::NotFound { .. })));
        files::set_mode(shared, &path("f"), 0o1640).await.unwrap();
        assert_eq!(rig.sh("stat -c %a f"), "1640\n");
        files::set_mode(shared, &path("f"), 0).await.unwrap();
        files::set_mode(shared, &path("f"), 0o600).await.unwrap();
        files::set_mode(shared, &path("."), 0o700).await.unwrap();
        assert_eq!(rig.sh("stat -c %a . f"), "700\n600\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_keep_the_rules() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &["--tmpfs", "/work/root/tmpfs:mode=777"]).await;
        let shared = &rig.shared;
        rig.sh("mkdir -p d/e empty full/x; printf f >f; printf g >g; ln -s d l; ln -s f lf");
        let rename = |from: &'static str, to: &'static str| async move {
            files::rename(shared, &path(from), &path(to)).await
        };
        rename("f", "g").await.unwrap();
        rename("g", "d/e/h").await.unwrap();
        assert_eq!(rig.sh("cat d/e/h"), "f");
        rename("l", "l2").await.unwrap();
        assert_eq!(rig.sh("readlink l2"), "d\n");
        rig.sh("printf k >k");
        rename("k", "l2").await.unwrap();
        assert_eq!(rig.sh("cat l2; ls d"), "ke\n");
        rename("d", "empty").await.unwrap();
        assert_eq!(rig.sh("cat empty/e/h"), "f");
        let code = |result: Result<(), Error>| result.unwrap_err().code();
        assert_eq!(code(rename("empty", "full").await), "directory_not_empty");
        assert_eq!(code(rename("empty", "l2").await), "not_a_directory");
        assert_eq!(code(rename("l2", "full").await), "is_a_directory");
        assert_eq!(code(rename("empty", "empty/e/x").await), "invalid_argument");
        assert_eq!(code(rename("none", "x").await), "not_found");
        assert_eq!(code(rename("l2", "no/x").await), "not_found");
        assert_eq!(code(rename("l2", "tmpfs/x").await), "crosses_devices");
        assert_eq!(code(rename(".", "x").await), "invalid_argument");
        rename("l2", "l2").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_stays_in_the_container() {
    for (image, user) in SHELL_RIGS {
        let rig = Rig::new(image, user, &["--tmpfs", "/work/root/tmpfs:mode=777"]).await;
        rig.sh("printf data >f; chmod 750 f; ln -s f l; printf old >g; chmod 600 g; mkdir d");
        let copy = |from: &'static str, to: &'static str| {
            let shared = &rig.shared;
            async move { files::copy(shared, &path(from), &path(to)).await }
        };
        assert_eq!(copy("l", "new/x").await.unwrap().bytes, 4);
        copy("f", "g").await.unwrap();
        copy("f", "tmpfs/x").await.unwrap();
        assert_eq!(rig.sh("cat new/x g tmpfs/x; stat -c %a new/x g"), "datadatadata750\n600\n");
        assert!(matches!(copy("f", "l").await, Err(Error::InvalidArgument { .. })));
        assert!(matches!(copy("f", "d").await, Err(Error::IsADirectory { path }) if path == "d"));
        assert!(matches!(copy("d", "x").await, Err(Error::IsADirectory { path }) if path == "d"));
        assert!(matches!(copy("none", "x").await, Err(Error::NotFound { path }) if path == "none"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_the_old_content() {
    for image in [Image::Busybox, Image::Debian] {
        let mounts = ["--tmpfs", "/work/root/small:size=1m,mode=777", "--read-only", "--tmpfs", "/work/out"];
        let mounts = [&mounts[..], &["-v", "/work/root"]].concat();
        let rig = Rig::new(image, "1000:1000", &mounts).await;
        write(&rig, "small/f", "old").await.unwrap();
        let full = write(&rig, "small/f", vec![7; 2 << 20]).await;
        assert!(matches!(full, Err(Error::StorageFull { .. })), "{full:?}");
        assert_eq!(read(&rig, "small/f").await.unwrap(), b"old");
        assert_eq!(rig.sh("ls -A small"), "f\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_file_system_is_named() {
    for image in [Image::Busybox, Image::Debian] {
        let rig =
            Rig::new(image, "0:0", &["--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined"])
                .await;
        rig.sh("mkdir d; printf old >d/f; mount --bind d d; mount -o remount,ro,bind d");
        let code = |result: Result<WriteMethod, Error>| result.unwrap_err().code();
        assert_eq!(code(write(&rig, "d/f", "new").await), "read_only");
        assert_eq!(code(write(&rig, "d/g", "new").await), "read_only");
        let refused = files::remove(&rig.shared, &path("d/f")).await;
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
        assert_eq!(read(&rig, "d/f").await.unwrap(), b"old");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_reached_without_a_shell() {
    for user in ["0:0", "1000:1000"] {
        let rig = Rig::new(Image::Scratch, user, &["--tmpfs", "/work/root/tmpfs"]).await;
        assert!(rig.shared.shell.is_none());
        let shared = &rig.shared;
        let all: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        for name in ODD {
            assert_eq!(write(&rig, name, all.clone()).await.unwrap(), WriteMethod::InPlace, "{name:?}");
            assert!(read(&rig, name).await.unwrap() == all, "{name:?}");
        }
        write(&rig, "empty", "").await.unwrap();
        assert_eq!(read(&rig, "empty").await.unwrap(), b"");
        let large: Vec<u8> = (0..10u32 << 20).map(|n| (n ^ (n >> 8)) as u8).collect();
        write(&rig, "p/q/large", Content::reader(std::io::Cursor::new(large.clone()))).await.unwrap();
        let part = OpenOptions::default().offset(5 << 20).length(100);
        let part = files::open(shared, &path("p/q/large"), part).await.unwrap().read_all().await.unwrap();
        assert!(part == large[5 << 20..][..100]);
        assert_eq!(
            rig.sh("stat -c %a:%u:%g p p/q p/q/large").trim().replace('\n', " "),
            format!("755:{user} 755:{user} 644:{user}")
        );
        rig.sh(
            "printf old >f; chmod 640 f; ln -s f l; ln -s nowhere dangling; mkfifo fifo; mkdir d; ln -s d ld",
        );
        write(&rig, "l", "new").await.unwrap();
        assert_eq!(rig.sh("cat f; readlink l; stat -c %a f"), "newf\n640\n");
        assert_eq!(files::symlink_metadata(shared, &path("l")).await.unwrap().size, 1);
        assert_eq!(files::read_link(shared, &path("l")).await.unwrap().as_bytes(), b"f");
        let code = |result: Result<(), Error>| result.unwrap_err().code();
        assert_eq!(code(write(&rig, "fifo", "x").await.map(drop)), "not_a_file");
        assert_eq!(code(read(&rig, "fifo").await.map(drop)), "not_a_file");
        assert_eq!(code(write(&rig, "d", "x").await.map(drop)), "is_a_directory");
        assert_eq!(code(write(&rig, "f/x", "x").await.map(drop)), "not_a_directory");
        assert_eq!(code(read(&rig, "none").await.map(drop)), "not_found");
        assert_eq!(code(write(&rig, "tmpfs/x", "x").await.map(drop)), "unsupported");
        assert_eq!(code(files::remove(shared, &path("f")).await), "unsupported");
        assert_eq!(code(files::create_dir_all(shared, &path("dangling")).await), "already_exists");
        files::create_dir_all(shared, &path("ld/x/y")).await.unwrap();
        assert_eq!(files::copy(shared, &path("l"), &path("d/copy")).await.unwrap().bytes, 3);
        assert_eq!(code(files::copy(shared, &path("l"), &path("f")).await.map(drop)), "invalid_argument");
        rig.sh("ln -s loop loop; touch -h -d @1600000000 loop");
        let link = files::symlink_metadata(shared, &path("loop")).await.unwrap();
        assert_eq!((link.kind, link.size), (FileKind::Symlink, 4));
        assert_eq!(link.modified, UNIX_EPOCH + Duration::from_secs(1_600_000_000));
        assert_eq!(files::read_link(shared, &path("loop")).await.unwrap().as_bytes(), b"loop");
        assert_eq!(code(files::metadata(shared, &path("loop")).await.map(drop)), "too_many_links");
        assert_eq!(code(write(&rig, "loop/x", "x").await.map(drop)), "too_many_links");
        let page = files::read_dir(shared, &path("ld"), ListOptions::default()).await.unwrap();
        let names: Vec<_> = page.entries.iter().map(|entry| (entry.name.escaped(), entry.kind)).collect();
        assert_eq!(names, [("copy".to_owned(), FileKind::File), ("x".to_owned(), FileKind::Directory)]);
    }
}

/// Prints how long small operations take; run it with `--ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn small_operations_are_measured() {
    for (image, user) in [(Image::Busybox, "0:0"), (Image::Debian, "0:0"), (Image::Scratch, "0:0")] {
        let rig = Rig::new(image, user, &[]).await;
        write(&rig, "d/f", vec![7; 1024]).await.unwrap();
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..11 {
            let start = Instant::now();
            read(&rig, "d/f").await.unwrap();
            times[0].push(start.elapsed());
            let start = Instant::now();
            write(&rig, "d/f", vec![7; 1024]).await.unwrap();
            times[1].push(start.elapsed());
            let start = Instant::now();
            files::metadata(&rig.shared, &path("d/f")).await.unwrap();
            times[2].push(start.elapsed());
        }
        for times in &mut times {
            times.sort();
        }
        println!("{image:?}: read {:?}, write {:?}, metadata {:?}", times[0][5], times[1][5], times[2][5]);
    }
}
