//! Gives back the memory that a supervisor was forked with.
//!
//! A fork shares every page until one side writes to it. A supervisor that lives as long as a
//! server would in time hold a second copy of all that its owner had changed since, so it unmaps
//! what its few system calls do not need. It needs code, the libraries' own data, its stack and
//! the thread's control block, where the C library keeps `errno` and the kernel writes.

#![expect(unsafe_code, reason = "unmaps memory of a forked process by system calls")]

use super::raw_file::RawFile;

/// Unmaps anonymous and shared memory, except what the calling thread stands on.
///
/// # Safety
///
/// The process has this one thread, and nothing that it does from here on, destructors of its
/// callers included, uses memory from the heap.
pub(super) unsafe fn forget_the_heap() {
    let Some(maps) = RawFile::open(c"/proc/self/maps") else { return };
    let on_stack = 0u8;
    // SAFETY: the location of `errno` is always valid.
    let in_control_block = unsafe { libc::__errno_location() };
    let kept = [(&raw const on_stack).addr(), in_control_block.addr()];
    let mut line = Line::new();
    let mut end_of_file_data = 0;
    maps.for_each_byte(|byte| {
        if byte != b'\n' {
            line.push(byte);
            return;
        }
        let Some(mapping) = Mapping::parse(&line) else { return line.clear() };
        line.clear();
        let needed = kept.iter().any(|address| (mapping.start..mapping.end).contains(address));
        // A library's zeroed data is anonymous and begins where its mapped file ends.
        let zeroed_data = mapping.start == end_of_file_data;
        if mapping.from_file {
            end_of_file_data = mapping.end;
        } else if mapping.forgettable && !needed && !zeroed_data {
            // SAFETY: the caller vouches that nothing uses the heap; this is neither the stack,
            // the control block nor a library's data.
            unsafe {
                libc::munmap(std::ptr::without_provenance_mut(mapping.start), mapping.end - mapping.start)
            };
        }
    });
}

/// The beginning of a line; what a longer one says after that is a file's name.
struct Line {
    bytes: [u8; 128],
    length: usize,
}

impl Line {
    fn new() -> Line {
        Line { bytes: [0; 128], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// One line of `/proc/self/maps`: `start-end perms offset device inode name`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    /// Whether it is private memory of a file: a program or a library.
    from_file: bool,
    /// Whether it is data that belongs to nobody here: memory of the heap or shared memory.
    forgettable: bool,
}

impl Mapping {
    fn parse(line: &Line) -> Option<Mapping> {
        let mut fields = line.get().split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        let mut range = fields.next()?.split(|byte| *byte == b'-');
        let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
        let permissions = fields.next()?;
        let inode = fields.nth(2)?;
        let name = fields.next().unwrap_or_default();
        let shared = permissions.last() == Some(&b's');
        let executable = permissions.get(2) == Some(&b'x');
        let anonymous =
            inode == b"0" && (name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:"));
        Some(Mapping {
            start,
            end,
            from_file: inode != b"0" && !shared,
            forgettable: !executable && (shared || anonymous),
        })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        number.checked_mul(16)?.checked_add(usize::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(bool, bool)> {
        let mut line = Line::new();
        text.bytes().for_each(|byte| line.push(byte));
        Mapping::parse(&line).map(|mapping| (mapping.from_file, mapping.forgettable))
    }

    #[test]
    fn only_memory_of_no_file_is_forgotten() {
        for (text, expected) in [
            ("7f00-7f10 rw-p 00000000 00:00 0 ", (false, true)),
            ("7f00-7f10 rw-p 00000000 00:00 0                          [heap]", (false, true)),
            ("7f00-7f10 ---p 00000000 00:00 0 ", (false, true)),
            ("7f00-7f10 rw-p 00000000 00:00 0                          [stack]", (false, false)),
            ("7f00-7f10 r-xp 00000000 00:00 0                          [vdso]", (false, false)),
            ("7f00-7f10 rwxp 00000000 00:00 0 ", (false, false)),
            ("7f00-7f10 rw-p 00001000 fe:00 77                         /lib/libc.so.6", (true, false)),
            ("7f00-7f10 rw-s 00001000 00:01 77                         /dev/shm/x", (false, true)),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        assert_eq!(parse("nonsense"), None);
    }
}
