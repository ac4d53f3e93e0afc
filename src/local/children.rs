//! The calling process's children, found with system calls alone.

#![expect(
    unsafe_code,
    reason = "libc declares `getpid` unsafe, and no wrapper is known to be safe after a fork"
)]

use std::ffi::CStr;

use super::raw_file::{RawFile, leading_number};

/// Calls `visit` with every child of the calling, single-threaded process that the kernel shows;
/// `false` when `/proc` cannot be read. Children that come or go meanwhile may be missed.
pub(super) fn for_each_child(visit: fn(libc::pid_t)) -> bool {
    if let Some(list) = RawFile::open(c"/proc/thread-self/children") {
        list.for_each_number(visit);
        return true;
    }
    // A kernel without CONFIG_PROC_CHILDREN: every process says who its parent is.
    let Some(directory) = RawFile::open(c"/proc") else { return false };
    // SAFETY: `getpid` has no preconditions.
    let own = unsafe { libc::getpid() };
    directory.for_each_numeric_entry(|pid| {
        if parent_of(pid) == Some(own) {
            visit(pid);
        }
    });
    true
}

/// The parent of `pid` as `/proc/<pid>/stat` says.
fn parent_of(pid: libc::pid_t) -> Option<libc::pid_t> {
    let mut path = [0u8; 32];
    let mut at = path.len() - 1;
    let mut prepend = |bytes: &[u8]| {
        for byte in bytes.iter().rev() {
            at = at.saturating_sub(1);
            if let Some(place) = path.get_mut(at) {
                *place = *byte;
            }
        }
    };
    prepend(b"/stat");
    let mut left = pid;
    while left > 0 {
        prepend(&[b'0'.wrapping_add(u8::try_from(left % 10).unwrap_or(0))]);
        left /= 10;
    }
    prepend(b"/proc/");
    let file = RawFile::open(CStr::from_bytes_until_nul(path.get(at..)?).ok()?)?;
    let mut buffer = [0u8; 512];
    // `pid (name) state ppid ...`; the name may hold anything, parentheses too.
    let stat = file.read(&mut buffer);
    let after_name = stat.iter().rposition(|byte| *byte == b')')?.checked_add(4)?;
    leading_number(stat.get(after_name..)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_from_proc() {
        // SAFETY: neither call has preconditions.
        let (own, parent) = unsafe { (libc::getpid(), libc::getppid()) };
        assert_eq!(parent_of(own), Some(parent));
    }
}
