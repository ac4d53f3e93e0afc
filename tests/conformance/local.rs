//! The fixture of `LocalWorkspace`.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use agentworkspace::Environment;
use agentworkspace::conformance::{Fixture, Site};
use agentworkspace::local::LocalWorkspace;
use async_trait::async_trait;

/// Directories of this machine, as the user of this process.
#[derive(Debug)]
pub(crate) struct LocalFixture;

#[async_trait]
impl Fixture for LocalFixture {
    async fn open(&self) -> Site {
        let base = tempfile::Builder::new().prefix("aw-conformance-").tempdir().expect("a directory").keep();
        open_up(&base);
        for dir in ["root", "outside"] {
            fs::create_dir(base.join(dir)).expect("a directory");
            open_up(&base.join(dir));
        }
        let env =
            [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("GIVEN", "by the constructor")];
        let env: Environment = env.into_iter().collect();
        let workspace = LocalWorkspace::open(base.join("root"), env).expect("a workspace");
        let outside = base.join("outside");
        Site::new(Arc::new(workspace), outside.to_string_lossy(), base.to_string_lossy())
    }

    async fn release(&self, site: Site, _: bool) {
        let closed = site.workspace.close().await;
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&site.key).output();
        let removed = fs::remove_dir_all(&site.key);
        closed.expect("the workspace closes");
        removed.expect("its directory can be removed");
    }

    fn ids(&self) -> (u32, u32) {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    }

    async fn plant(&self, _: &Site, path: &str, data: &[u8]) {
        fs::write(path, data).expect("a file outside");
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("its mode");
    }

    async fn snapshot(&self, _: &Site, path: &str) -> String {
        let mut text = String::new();
        describe(Path::new(path), &mut text);
        text
    }

    async fn give_away(&self, _: &Site, path: &str, uid: u32) -> bool {
        rustix::process::geteuid().is_root() && chown(path, Some(uid), None).is_ok()
    }

    async fn alive(&self, _: &Site, marker: &str) -> usize {
        crate::leftovers::processes().iter().filter(|(_, line)| line.contains(marker)).count()
    }
}

/// Lets everybody in, whatever the umask is.
fn open_up(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// One line for `path` and each thing below it.
fn describe(path: &Path, text: &mut String) {
    let metadata = fs::symlink_metadata(path).expect("something to describe");
    let line =
        (path, metadata.mode(), metadata.uid(), metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    let _ = write!(text, "{line:?} ");
    if metadata.is_symlink() {
        let _ = write!(text, "{:?}", fs::read_link(path).expect("a link"));
    } else if metadata.is_file() {
        let _ = write!(text, "{:?}", fs::read(path).expect("a file").escape_ascii().to_string());
    }
    text.push('\n');
    if metadata.is_dir() {
        let mut entries: Vec<_> =
            fs::read_dir(path).expect("a directory").map(|e| e.expect("an entry").path()).collect();
        entries.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        for entry in entries {
            describe(&entry, text);
        }
    }
}
