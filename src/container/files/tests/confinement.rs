//! That nothing leaves the root.

use super::rig::{Image, Rig, path};
use crate::container::files;
use crate::error::Error;
use crate::files::{ListOptions, OpenOptions, WriteOptions};

/// Names that lead to `/work/out` by every shape of link.
const ESCAPES: &str = "ln -s /work/out abs; ln -s ../out rel; mkdir d; ln -s ../../out d/up; ln -s d/up chain; \
     ln -s /work/out/secret file; ln -s ../out/secret relfile; ln -s /work/root/d inside; ln -s ../root/d back; \
     ln -s ../../../../work/out far; ln -s ../out/new dangling; ln -s /work/out/new absdangling";

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leaves_is_refused_by_every_operation() {
    for (image, user) in
        [(Image::Scratch, "1000:1000"), (Image::Busybox, "1000:1000"), (Image::Debian, "0:0")]
    {
        let rig = Rig::new(image, user, &[]).await;
        rig.sh(ESCAPES);
        rig.sh("printf x >f; ln -s loop loop");
        let shared = &rig.shared;
        let outside = |what: &str, result: Result<(), Error>| {
            assert!(result.as_ref().is_err_and(Error::is_outside), "{image:?} {what}: {result:?}");
        };
        let through =
            ["abs/secret", "rel/secret", "d/up/secret", "chain/secret", "far/secret", "inside/x", "back/x"];
        for name in through.into_iter().chain(["file", "relfile", "dangling", "absdangling", "rel", "abs"]) {
            let name_path = path(name);
            outside(name, files::open(shared, &name_path, OpenOptions::default()).await.map(drop));
            outside(name, files::metadata(shared, &name_path).await.map(drop));
            outside(name, files::read_dir(shared, &name_path, ListOptions::default()).await.map(drop));
            outside(
                name,
                files::write(shared, &name_path, "x".into(), WriteOptions::default()).await.map(drop),
            );
            outside(name, files::create_dir_all(shared, &name_path).await);
            if image != Image::Scratch {
                outside(name, files::set_mode(shared, &name_path, 0o777).await);
            }
            outside(name, files::copy(shared, &name_path, &path("copy")).await.map(drop));
            outside(name, files::copy(shared, &path("f"), &name_path).await.map(drop));
        }
        for name in through {
            let name_path = path(name);
            outside(name, files::symlink_metadata(shared, &name_path).await.map(drop));
            outside(name, files::read_link(shared, &name_path).await.map(drop));
            if image == Image::Scratch {
                continue;
            }
            outside(name, files::remove(shared, &name_path).await);
            outside(name, files::remove_all(shared, &name_path).await);
            outside(name, files::rename(shared, &name_path, &path("moved")).await);
            outside(name, files::rename(shared, &path("f"), &name_path).await);
        }
        let looped = files::metadata(shared, &path("loop")).await;
        assert!(matches!(looped, Err(Error::TooManyLinks { .. })), "{looped:?}");
        let target = files::read_link(shared, &path("file")).await.unwrap();
        assert_eq!(target.as_bytes(), b"/work/out/secret");
        assert_eq!(rig.sh("cd /work/out; ls -A; cat secret; stat -c %a secret"), "secret\nsecret644\n");
    }
}
