//! A temporary directory that goes with its workspace.

use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{Mode, OFlags};

use super::remove_all;
use super::root::{Place, Root};
use crate::error::{Error, Result};

/// What it is called in errors, which name nothing of this machine.
const SHOWN: &str = "the temporary directory";

/// A directory below the machine's one for temporary files. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ScratchDir {
    place: Place,
    removed: bool,
}

impl ScratchDir {
    /// Makes a directory that only this user may enter.
    pub(super) fn create() -> Result<(ScratchDir, Root)> {
        let make = || -> io::Result<_> {
            let made = tempfile::Builder::new()
                .prefix("agentworkspace-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?;
            let (Some(parent), Some(name)) = (made.path().parent(), made.path().file_name()) else {
                return Err(io::Error::other("a directory was made that has no name"));
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir: OwnedFd = rustix::fs::open(parent, flags, Mode::empty())?;
            let place = Place { dir, name: name.into() };
            Ok((place, made))
        };
        let (place, made) = make().map_err(|e| Error::from_io("create", SHOWN, e))?;
        let root = Root::open(made.path())?;
        // From here on this type removes it: it also gets into directories without permissions.
        drop(made.keep());
        Ok((ScratchDir { place, removed: false }, root))
    }

    /// Removes it on a thread of its own once `ready` has returned there: a large tree takes long,
    /// and whoever drops a workspace may be an async thread. Needs no runtime.
    pub(super) fn remove_after(self, ready: impl FnOnce() + Send + 'static) {
        // Without a thread the closure is dropped, and with it this directory.
        let thread = std::thread::Builder::new().name("agentworkspace-rm".to_owned());
        let started = thread.spawn(move || {
            ready();
            drop(self);
        });
        if let Err(error) = started {
            tracing::warn!(%error, "a temporary workspace was removed before its processes were gone");
        }
    }

    /// Removes it with all that is in it. After a failure it can be tried again.
    pub(super) fn remove(&mut self) -> Result<()> {
        if self.removed {
            return Ok(());
        }
        let name = CString::new(self.place.name.as_bytes());
        let name = name.map_err(|e| Error::from_io("remove", SHOWN, e.into()))?;
        match remove_all::remove_at(&self.place.dir, name, SHOWN, true, &mut || Ok(())) {
            Ok(()) | Err(Error::NotFound { .. }) => {
                self.removed = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, "a temporary workspace was left behind");
        }
    }
}
