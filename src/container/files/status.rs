//! What the exit status of a script means.

use std::borrow::Cow;
use std::io;

use crate::descriptor::Kind;
use crate::error::{Error, GoneReason};
use crate::files::FileKind;

/// A component of the path was swapped while it was walked; nothing was done.
pub(super) const RACED: i64 = 105;

/// The script says on standard error which program it misses.
const MISSING_PROGRAM: i64 = 112;

/// A program of the script failed and said why on standard error.
const SYSTEM: i64 = 113;

/// What a script that ended with `status` means for `path`.
pub(super) fn error(operation: &'static str, path: &str, status: i64, stderr: &[u8]) -> Error {
    let path = path.to_owned();
    match status {
        101 | RACED => Error::OutsideWorkspace { path },
        102 => Error::NotFound { path },
        103 | 118 => Error::NotADirectory { path },
        104 => Error::TooManyLinks { path },
        106 | 119 => Error::IsADirectory { path },
        108 => Error::AlreadyExists { path },
        109 => Error::NotALink { path },
        110 => Error::PermissionDenied { path },
        111 => Error::Gone { why: GoneReason::RootRemoved },
        MISSING_PROGRAM => missing_program(operation, stderr),
        114 => failed(operation, path, "the content was cut on its way".to_owned()),
        115 => Error::InvalidArgument { reason: format!("`{path}` cannot be copied onto itself") },
        116 => Error::CrossesDevices { path },
        117 => Error::InvalidArgument { reason: format!("`{path}` cannot be moved into itself") },
        121 => Error::NotAFile { path, kind: FileKind::Fifo },
        122 => Error::NotAFile { path, kind: FileKind::Socket },
        123 => Error::NotAFile { path, kind: FileKind::BlockDevice },
        124 => Error::NotAFile { path, kind: FileKind::CharDevice },
        125 => Error::NotAFile { path, kind: FileKind::Unknown },
        SYSTEM => system_error(operation, path, stderr),
        other => {
            let text = String::from_utf8_lossy(stderr);
            failed(operation, path, format!("the script ended with status {other}: {}", text.trim()))
        }
    }
}

fn missing_program(operation: &'static str, stderr: &[u8]) -> Error {
    let text = String::from_utf8_lossy(stderr);
    let program = text.rsplit("missing program: ").next().unwrap_or_default().trim().to_owned();
    Error::Unsupported {
        operation: format!("to {operation} a file"),
        backend: Kind::Container,
        reason: format!("the image has no `{program}`; add it"),
    }
}

fn failed(operation: &'static str, path: String, detail: String) -> Error {
    Error::Io { operation: Cow::Borrowed(operation), path, source: io::Error::other(detail) }
}

/// The words that programs end a line with, by C library: glibc, musl, and what busybox's shell has
/// of its own. Scripts run under `LC_ALL=C`.
const WORDS: [(&str, i32); 27] = [
    ("No space left on device", libc::ENOSPC),
    ("Disk quota exceeded", libc::EDQUOT),
    ("Quota exceeded", libc::EDQUOT),
    ("Read-only file system", libc::EROFS),
    ("Permission denied", libc::EACCES),
    ("Operation not permitted", libc::EPERM),
    ("Directory not empty", libc::ENOTEMPTY),
    ("Not a directory", libc::ENOTDIR),
    ("Is a directory", libc::EISDIR),
    ("is a directory", libc::EISDIR),
    ("No such file or directory", libc::ENOENT),
    ("No such file", libc::ENOENT),
    ("no such file", libc::ENOENT),
    ("nonexistent directory", libc::ENOENT),
    ("Directory nonexistent", libc::ENOENT),
    ("File exists", libc::EEXIST),
    ("Too many levels of symbolic links", libc::ELOOP),
    ("Symbolic link loop", libc::ELOOP),
    ("Invalid cross-device link", libc::EXDEV),
    ("Cross-device link", libc::EXDEV),
    ("Device or resource busy", libc::EBUSY),
    ("Resource busy", libc::EBUSY),
    ("Text file busy", libc::ETXTBSY),
    ("File name too long", libc::ENAMETOOLONG),
    ("Filename too long", libc::ENAMETOOLONG),
    ("File too large", libc::EFBIG),
    ("Input/output error", libc::EIO),
];

/// What a program said on standard error: the last line that ends in words of the system counts,
/// since statistics and consequences may come with it.
fn system_error(operation: &'static str, path: String, stderr: &[u8]) -> Error {
    let text = String::from_utf8_lossy(stderr);
    let errno = text.lines().rev().find_map(|line| {
        let (_, words) = line.trim_end().rsplit_once(": ").unwrap_or(("", line));
        WORDS.iter().find(|(known, _)| words.ends_with(known)).map(|(_, errno)| *errno)
    });
    match errno {
        // The user may not do it, whichever of the two the system says.
        Some(libc::EPERM) => Error::PermissionDenied { path },
        Some(errno) => Error::from_io(operation, &path, io::Error::from_raw_os_error(errno)),
        None => failed(operation, path, text.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_c_library_get_their_variant() {
        let cases = [
            (
                "dd: error writing 'standard output': No space left on device\n0+1 records in\n",
                "storage_full",
            ),
            ("head: write error: Quota exceeded\n", "storage_full"),
            ("sh: 12: cannot create ./a: Read-only file system\n", "read_only"),
            ("sh: can't open ./x: no such file\n", "not_found"),
            ("rmdir: './No space left on device': Directory not empty\n", "directory_not_empty"),
            ("mv: cannot move 'a' to 'b': Device or resource busy\n", "io"),
            ("chmod: x: Operation not permitted", "permission_denied"),
            ("whatever", "io"),
        ];
        for (stderr, code) in cases {
            assert_eq!(error("write", "a", SYSTEM, stderr.as_bytes()).code(), code, "{stderr}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = error("read", "a", MISSING_PROGRAM, b"missing program: stat\n");
        assert!(error.to_string().contains("`stat`"), "{error}");
    }
}
