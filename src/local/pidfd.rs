//! Process descriptors: handles that cannot come to mean another process.

#![expect(unsafe_code, reason = "no safe wrapper sends real-time signals through a process descriptor")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

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

    /// Blocks until the process has ended or the time is over. Whether it has ended.
    pub(super) fn ended_within(&self, time: Duration) -> bool {
        let mut event = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = time.as_millis().try_into().unwrap_or(i32::MAX);
        // SAFETY: the array is one element long, as is said.
        unsafe { libc::poll(&raw mut event, 1, milliseconds) > 0 }
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
