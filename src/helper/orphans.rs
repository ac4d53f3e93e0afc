//! Reaps what is left to the first process of a container when its own parent has ended.

use std::sync::mpsc::Receiver;

use rustix::process::{WaitOptions, wait};

/// Why the one who reaps is woken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// A child has ended, of whichever thread.
    Child,
    /// The helper ends.
    End,
}

/// Reaps until the helper ends. To be called on the process's first thread.
///
/// The kernel leaves orphans to the first thread and nobody else forks there, so that children of this
/// thread are orphans and those of others are somebody's own to wait for.
pub(super) fn reap(wakes: &Receiver<Wake>) {
    let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WNOTHREAD.cast_unsigned());
    while let Ok(Wake::Child) = wakes.recv() {
        // One signal may stand for any number of children; the error is that there are none.
        while let Ok(Some(_)) = wait(options) {}
    }
}
