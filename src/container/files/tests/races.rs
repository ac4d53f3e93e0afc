//! That nothing leaves the root while a process in the container swaps a directory for a link.

use super::rig::{Image, Rig, path};
use crate::container::files;
use crate::files::{ArchiveOptions, Content, ListOptions, OpenOptions, UnpackOptions, WriteOptions};
use tokio::io::AsyncReadExt as _;

/// How often each operation is tried.
const ROUNDS: usize = 25;

/// Makes `flip` a directory and a link to `/work/out` in turn, for as long as the container runs.
const FLIP: &str = "while :; do mv -T flip away; mv -T link flip; mv -T flip link; mv -T away flip; done";

async fn flipping(image: Image) -> Rig {
    let rig = Rig::new(image, "1000:1000", &[]).await;
    rig.root_sh(
        "mkdir -p /work/out/sub/deep; printf outside >/work/out/f; printf x >/work/out/sub/deep/x; \
                 printf x >/work/out/victim; chown -R 1000:1000 /work/out; chmod 750 /work/out/f",
    );
    rig.sh("mkdir -p flip/sub/deep; printf inside >flip/f; printf x >flip/victim; ln -s ../out link");
    rig.background(FLIP);
    rig
}

fn outside(rig: &Rig) -> String {
    rig.root_sh("cd /work/out && find . | cat; find . -type f -exec stat -c '%n %s %a %i' {} +")
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_never_act_through_a_swapped_directory() {
    for image in [Image::Busybox, Image::Debian] {
        let rig = flipping(image).await;
        let before = outside(&rig);
        let shared = &rig.shared;
        let mut reached = 0;
        for round in 0..ROUNDS {
            if let Ok(reader) = files::open(shared, &path("flip/f"), OpenOptions::default()).await {
                let read = reader.read_all().await.unwrap();
                assert_ne!(read, b"outside");
                reached += 1;
            }
            if let Ok(page) = files::read_dir(shared, &path("flip"), ListOptions::default()).await {
                assert!(page.entries.iter().all(|entry| entry.name.as_str() != Some("secret")));
            }
            let name = path(&format!("flip/new{round}/x"));
            drop(files::write(shared, &name, "x".into(), WriteOptions::default()).await);
            drop(files::write(shared, &path("flip/f"), "inside".into(), WriteOptions::default()).await);
            drop(files::set_mode(shared, &path("flip/f"), 0o600).await);
            drop(files::remove(shared, &path("flip/victim")).await);
            drop(files::rename(shared, &path("flip/f"), &path("flip/g")).await);
            drop(files::rename(shared, &path("flip/g"), &path("flip/f")).await);
            drop(files::remove_all(shared, &path("flip/sub")).await);
            drop(files::create_dir_all(shared, &path("flip/sub/deep")).await);
        }
        assert_eq!(outside(&rig), before, "{image:?}");
        assert!(reached > 0, "no round got through");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_calls_never_act_through_a_swapped_directory() {
    for image in [Image::Scratch, Image::Debian] {
        let rig = flipping(image).await;
        let before = outside(&rig);
        let shared = &rig.shared;
        let mut reached = 0;
        for round in 0..ROUNDS {
            if image == Image::Scratch {
                if let Ok(reader) = files::open(shared, &path("flip/f"), OpenOptions::default()).await {
                    assert_ne!(reader.read_all().await.unwrap(), b"outside");
                }
                let name = path(&format!("flip/new{round}"));
                drop(files::write(shared, &name, "x".into(), WriteOptions::default()).await);
                drop(files::write(shared, &path("flip/f"), "inside".into(), WriteOptions::default()).await);
            }
            let tar = super::trees::tar(&[("flip/t/x", 'f', "x"), ("flip/f", 'f', "inside")]);
            let put =
                files::put_archive(shared, &path("."), Content::from(tar), UnpackOptions::default()).await;
            reached += usize::from(put.is_ok());
            if let Ok(mut reader) = files::get_archive(shared, &path("flip"), ArchiveOptions::default()).await
            {
                let mut archive = Vec::new();
                reader.read_to_end(&mut archive).await.unwrap();
                assert!(!archive.windows(7).any(|window| window == b"outside"));
            }
        }
        assert_eq!(outside(&rig), before, "{image:?}");
        assert!(reached > 0, "no round got through");
    }
}
