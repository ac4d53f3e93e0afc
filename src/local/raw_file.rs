//! Files read with system calls alone.

#![expect(unsafe_code, reason = "a forked process may not allocate, so that std::fs is out of reach")]

use std::ffi::{CStr, c_int};

/// An open descriptor, closed when dropped.
pub(super) struct RawFile(c_int);

impl RawFile {
    pub(super) fn open(path: &CStr) -> Option<RawFile> {
        // SAFETY: `path` is NUL-terminated.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (fd >= 0).then_some(RawFile(fd))
    }

    /// The bytes read into `buffer`; none at the end and after an error.
    pub(super) fn read<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the buffer is writable for the length given.
        let read = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(read).ok().and_then(|read| buffer.get(..read)).unwrap_or_default()
    }

    /// Reads to the end.
    pub(super) fn for_each_byte(&self, mut visit: impl FnMut(u8)) {
        let mut buffer = [0u8; 4096];
        loop {
            let bytes = self.read(&mut buffer);
            if bytes.is_empty() {
                return;
            }
            for byte in bytes {
                visit(*byte);
            }
        }
    }

    /// Reads decimal numbers set apart by anything else.
    pub(super) fn for_each_number(&self, visit: fn(libc::pid_t)) {
        let mut number = None;
        self.for_each_byte(|byte| match (byte, number) {
            (b'0'..=b'9', _) => number = Some(push_digit(number.unwrap_or(0), byte)),
            (_, Some(pid)) => {
                visit(pid);
                number = None;
            }
            _ => {}
        });
        if let Some(pid) = number {
            visit(pid);
        }
    }

    /// Calls `visit` with each name of a directory that is a number.
    pub(super) fn for_each_numeric_entry(&self, mut visit: impl FnMut(libc::pid_t)) {
        /// Where the record length and the name are in a `linux_dirent64`.
        const LENGTH_AT: usize = 16;
        const NAME_AT: usize = 19;
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: the kernel writes at most the given length.
            let filled =
                unsafe { libc::syscall(libc::SYS_getdents64, self.0, buffer.as_mut_ptr(), buffer.len()) };
            let Some(mut records) = usize::try_from(filled).ok().and_then(|filled| buffer.get(..filled))
            else {
                return;
            };
            if records.is_empty() {
                return;
            }
            while let Some(&[low, high]) = records.get(LENGTH_AT..LENGTH_AT + 2) {
                let length = usize::from(u16::from_ne_bytes([low, high]));
                let (Some(record), Some(rest)) = (records.get(..length), records.get(length..)) else {
                    break;
                };
                if let Some(pid) = record.get(NAME_AT..).and_then(leading_number) {
                    visit(pid);
                }
                records = rest;
            }
        }
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned and closed once.
        unsafe { libc::close(self.0) };
    }
}

fn push_digit(number: libc::pid_t, digit: u8) -> libc::pid_t {
    number.wrapping_mul(10).wrapping_add(libc::pid_t::from(digit.wrapping_sub(b'0')))
}

/// The decimal number that `text` begins with.
pub(super) fn leading_number(text: &[u8]) -> Option<libc::pid_t> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number, digit| Some(push_digit(number.unwrap_or(0), *digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_of_proc_finds_this_process() {
        let mut found = false;
        // SAFETY: `getpid` has no preconditions.
        let own = unsafe { libc::getpid() };
        RawFile::open(c"/proc").unwrap().for_each_numeric_entry(|pid| found |= pid == own);
        assert!(found);
    }

    #[test]
    fn a_number_ends_where_its_digits_end() {
        assert_eq!(leading_number(b"12 34"), Some(12));
        assert_eq!(leading_number(b"x1"), None);
    }
}
