//! Process descriptors: handles that cannot come to mean another process.

#![expect(unsafe_code, reason = "no safe wrapper sends real-time signals through a process descriptor")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::process::{Pid, PidfdFlags};

use crate::signal::Signal;

/// One process, for as long as this is held.
#[derive(Debug)]
pub(super) struct ProcessFd(OwnedFd);

impl ProcessFd {
    /// The process that has this id now.
    pub(super) fn open(pid: i32) -> io::Result<ProcessFd> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(ProcessFd(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Sends `signal`; an error when the process has been reaped or may not be signaled.
    pub(super) fn send(&self, signal: Signal) -> io::Result<()> {
        let info = ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open; without an info structure the kernel fills one in as
        // `kill` does.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal.number(), info, 0u32)
        };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
