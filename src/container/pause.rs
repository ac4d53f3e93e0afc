//! The first process of a container: a program that needs nothing of the image.
//!
//! It ignores SIGCHLD, so that the kernel reaps what is left to it, and then waits for ever. As
//! the first process of its namespace it gets no signal from inside that it has no handler for,
//! SIGKILL included, so that `kill -9 -1` in the workspace does not end the container. It is not
//! dumpable, so that nothing beside it under the same user can trace it.

/// The program's directory in the container.
pub(crate) const DIRECTORY: &str = "/.agentworkspace";

/// The program's path in the container.
pub(crate) const PATH: &str = "/.agentworkspace/pause";

/// For x86-64.
#[rustfmt::skip]
const X86_64: [u8; 54] = [
    0xb8, 0x9d, 0x00, 0x00, 0x00,       // mov eax, 157         prctl(
    0xbf, 0x04, 0x00, 0x00, 0x00,       // mov edi, 4             PR_SET_DUMPABLE,
    0x31, 0xf6,                         // xor esi, esi           0)
    0x0f, 0x05,                         // syscall
    0x6a, 0x00,                         // push 0               sa_mask
    0x6a, 0x00,                         // push 0               sa_restorer
    0x6a, 0x00,                         // push 0               sa_flags
    0x6a, 0x01,                         // push 1               sa_handler = SIG_IGN
    0xb8, 0x0d, 0x00, 0x00, 0x00,       // mov eax, 13          rt_sigaction(
    0xbf, 0x11, 0x00, 0x00, 0x00,       // mov edi, 17            SIGCHLD,
    0x48, 0x89, 0xe6,                   // mov rsi, rsp           the structure above,
    0x31, 0xd2,                         // xor edx, edx           NULL,
    0x41, 0xba, 0x08, 0x00, 0x00, 0x00, // mov r10d, 8            8)
    0x0f, 0x05,                         // syscall
    0xb8, 0x22, 0x00, 0x00, 0x00,       // mov eax, 34    again: pause()
    0x0f, 0x05,                         // syscall
    0xeb, 0xf7,                         // jmp again
];

/// For 64-bit ARM, which has no `pause` and waits in `ppoll`.
#[rustfmt::skip]
const AARCH64: [u8; 84] = [
    0x80, 0x00, 0x80, 0xd2, // mov x0, #4              prctl(PR_SET_DUMPABLE,
    0xe1, 0x03, 0x1f, 0xaa, // mov x1, xzr               0)
    0xe8, 0x14, 0x80, 0xd2, // mov x8, #167
    0x01, 0x00, 0x00, 0xd4, // svc #0
    0xff, 0x83, 0x00, 0xd1, // sub sp, sp, #32
    0x21, 0x00, 0x80, 0xd2, // mov x1, #1
    0xe1, 0x7f, 0x00, 0xa9, // stp x1, xzr, [sp]       sa_handler = SIG_IGN, sa_flags
    0xff, 0x7f, 0x01, 0xa9, // stp xzr, xzr, [sp, #16] sa_restorer, sa_mask
    0x20, 0x02, 0x80, 0xd2, // mov x0, #17             rt_sigaction(SIGCHLD,
    0xe1, 0x03, 0x00, 0x91, // mov x1, sp                the structure above,
    0xe2, 0x03, 0x1f, 0xaa, // mov x2, xzr               NULL,
    0x03, 0x01, 0x80, 0xd2, // mov x3, #8                8)
    0xc8, 0x10, 0x80, 0xd2, // mov x8, #134
    0x01, 0x00, 0x00, 0xd4, // svc #0
    0xe0, 0x03, 0x1f, 0xaa, // mov x0, xzr      again: ppoll(NULL,
    0xe1, 0x03, 0x1f, 0xaa, // mov x1, xzr               0,
    0xe2, 0x03, 0x1f, 0xaa, // mov x2, xzr               NULL,
    0xe3, 0x03, 0x1f, 0xaa, // mov x3, xzr               NULL)
    0x28, 0x09, 0x80, 0xd2, // mov x8, #73
    0x01, 0x00, 0x00, 0xd4, // svc #0
    0xfa, 0xff, 0xff, 0x17, // b again
];

/// The program for an image's architecture, in the words of Go's `GOARCH`; `None` for those it
/// was not written for.
pub(crate) fn program(architecture: &str) -> Option<Vec<u8>> {
    /// `EM_X86_64` and `EM_AARCH64`.
    const MACHINES: (u16, u16) = (62, 183);
    match architecture {
        "amd64" => Some(executable(MACHINES.0, &X86_64)),
        "arm64" => Some(executable(MACHINES.1, &AARCH64)),
        _ => None,
    }
}

/// An ELF file of one segment, which holds the file's own header, too.
fn executable(machine: u16, code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const FILE_HEADER: u16 = 64;
    const PROGRAM_HEADER: u16 = 56;
    const HEADERS: u64 = (FILE_HEADER + PROGRAM_HEADER) as u64;
    let size = HEADERS + code.len() as u64;
    let mut file = Vec::new();
    // ELF, 64 bits, little-endian, version 1, System V.
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend_from_slice(&2u16.to_le_bytes()); // An executable at fixed addresses.
    file.extend_from_slice(&machine.to_le_bytes());
    file.extend_from_slice(&1u32.to_le_bytes());
    file.extend_from_slice(&(BASE + HEADERS).to_le_bytes()); // Entry point.
    file.extend_from_slice(&u64::from(FILE_HEADER).to_le_bytes()); // Where program headers are.
    file.extend_from_slice(&[0; 12]); // No sections, no flags.
    for half in [FILE_HEADER, PROGRAM_HEADER, 1, 0, 0, 0] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    file.extend_from_slice(&1u32.to_le_bytes()); // To be loaded,
    file.extend_from_slice(&5u32.to_le_bytes()); // readable and executable,
    // from the start of the file, to the base address, whole, at a page of any common size.
    for word in [0, BASE, BASE, size, size, 0x1_0000] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_point_is_the_first_byte_of_the_code() {
        let file = program("amd64").unwrap();
        assert_eq!(file.len(), 120 + X86_64.len());
        assert_eq!(file[24..32], 0x40_0078u64.to_le_bytes());
        assert_eq!(file[120..], X86_64);
        assert!(program("riscv64").is_none());
    }
}
