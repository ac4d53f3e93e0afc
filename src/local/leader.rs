//! What becomes the command itself: from the clone to `execve`, with nothing but system calls.

#![expect(unsafe_code, reason = "between clone and execve only raw system calls are allowed")]

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::supervisor::{LEADER, report};
use crate::accounts::Account;

/// Which step of the launch failed; its error number is beside it in a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Clone = 1,
    Terminal = 2,
    User = 3,
    Directory = 4,
    Exec = 5,
}

/// A failed launch, as one number: only a raw error number crosses from a forked child to its
/// parent through the standard library, and the system's own stay far below 65536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: i32,
}

impl Failure {
    const STAGE_SHIFT: u32 = 16;

    pub(super) fn encode(self) -> i32 {
        ((self.stage as i32) << Self::STAGE_SHIFT) | self.errno
    }

    /// `None` for a plain error number, which comes from the standard library's own steps.
    pub(super) fn decode(code: i32) -> Option<Failure> {
        let stage = match code >> Self::STAGE_SHIFT {
            1 => Stage::Clone,
            2 => Stage::Terminal,
            3 => Stage::User,
            4 => Stage::Directory,
            5 => Stage::Exec,
            _ => return None,
        };
        Some(Failure { stage, errno: code & 0xffff })
    }

    /// The failure of the call just made.
    pub(super) fn last(stage: Stage) -> Failure {
        Failure { stage, errno: io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// Strings with the null-terminated pointer array that `execve` takes.
struct StringArray {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

// SAFETY: the pointers are into the heap buffers of `_strings`, which are owned, never changed and
// freed together with them.
unsafe impl Send for StringArray {}
// SAFETY: as above; nothing is ever written through the pointers.
unsafe impl Sync for StringArray {}

impl StringArray {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        StringArray { pointers, _strings: strings }
    }
}

/// Everything the leader needs, made before the fork because nothing can be allocated after it.
pub(super) struct Launch {
    /// The supervisor's end of the socket to the owner.
    link: OwnedFd,
    dir: OwnedFd,
    /// The paths to try, in order; relative ones count from `dir`.
    candidates: Vec<CString>,
    args: StringArray,
    env: StringArray,
    user: Option<Account>,
    tty: bool,
    /// The stack of the leader until `execve`.
    stack: Box<[UnsafeCell<u128>]>,
    /// Where the leader, which shares this memory, leaves its failure; 0 when it got to `execve`.
    outcome: AtomicI32,
}

// SAFETY: only the stack's cells are not `Sync`, and those are touched by nobody but the leader,
// of which there is one, because it is cloned in a forked child that has one thread.
unsafe impl Sync for Launch {}

/// The leader's frames are a few hundred bytes; unoptimized ones a few thousand.
const STACK_BYTES: usize = 64 * 1024;

impl Launch {
    pub(super) fn new(
        link: OwnedFd,
        dir: OwnedFd,
        candidates: Vec<CString>,
        args: Vec<CString>,
        env: Vec<CString>,
        user: Option<Account>,
        tty: bool,
    ) -> Self {
        Launch {
            link,
            dir,
            candidates,
            args: StringArray::new(args),
            env: StringArray::new(env),
            user,
            tty,
            stack: (0..STACK_BYTES / size_of::<u128>()).map(|_| UnsafeCell::new(0)).collect(),
            outcome: AtomicI32::new(0),
        }
    }

    /// The supervisor's end of the socket to the owner.
    pub(super) fn link(&self) -> RawFd {
        self.link.as_raw_fd()
    }

    /// The descriptors that are needed until the program runs, the lower one first.
    pub(super) fn descriptors(&self) -> [RawFd; 2] {
        let (link, dir) = (self.link.as_raw_fd(), self.dir.as_raw_fd());
        [link.min(dir), link.max(dir)]
    }

    /// Clones the leader off the calling process, which must be single-threaded and have all
    /// signals blocked, and waits until its program runs or could not be run. The leader's
    /// process id.
    pub(super) fn clone_leader(&self) -> Result<libc::pid_t, Failure> {
        let top = UnsafeCell::raw_get(self.stack.as_ptr_range().end);
        let launch: *const Launch = self;
        // The child borrows this memory until it executes its program, so that the page tables are
        // not copied a second time and its failure is seen here.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `top` is the aligned end of a stack that outlives the child's use of it, because
        // CLONE_VFORK suspends this process until then. The child writes to it while `self` is
        // borrowed here and there, which its cells allow, and nobody else reads or writes it.
        // `leader` keeps to async-signal-safe calls.
        let pid = unsafe { libc::clone(leader, top.cast(), flags, launch.cast_mut().cast()) };
        if pid < 0 {
            return Err(Failure::last(Stage::Clone));
        }
        match Failure::decode(self.outcome.load(Ordering::Relaxed)) {
            None => Ok(pid),
            Some(failure) => {
                // SAFETY: reaps the child just made; a null status pointer is allowed.
                unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) };
                Err(failure)
            }
        }
    }
}

/// The first function of the leader.
extern "C" fn leader(launch: *mut c_void) -> c_int {
    // SAFETY: `clone_leader` passes a `Launch` that lives on while it is suspended.
    let launch = unsafe { &*launch.cast_const().cast::<Launch>() };
    let failure = match set_up(launch) {
        Ok(()) => execute(launch),
        Err(failure) => failure,
    };
    launch.outcome.store(failure.encode(), Ordering::Relaxed);
    // SAFETY: `_exit` runs no handlers of the process whose memory this is.
    unsafe { libc::_exit(127) }
}

/// The kernel's `struct sigaction` with SIG_DFL, no flags and an empty mask; the kernel reads no
/// more than this on any architecture with 64 signals.
const DEFAULT_ACTION: [u64; 4] = [0; 4];

/// Makes the process what its program expects: session, terminal, user, directory, signals.
fn set_up(launch: &Launch) -> Result<(), Failure> {
    let check = |result: libc::c_long, stage| if result < 0 { Err(Failure::last(stage)) } else { Ok(()) };
    // SAFETY: plain system calls on numbers and on memory that `launch` owns. The raw ones stand in
    // for wrappers that would take locks or signal the threads of the process this was forked from.
    unsafe {
        libc::setsid();
        // Here and not by the supervisor, which the program may have killed before it comes to that.
        report(launch.link(), LEADER, libc::getpid());
        if launch.tty {
            check(libc::ioctl(0, libc::TIOCSCTTY, 0).into(), Stage::Terminal)?;
        }
        if let Some(user) = &launch.user {
            let groups = &user.groups;
            check(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()), Stage::User)?;
            check(libc::syscall(libc::SYS_setresgid, user.gid, user.gid, user.gid), Stage::User)?;
            check(libc::syscall(libc::SYS_setresuid, user.uid, user.uid, user.uid), Stage::User)?;
        }
        check(libc::fchdir(launch.dir.as_raw_fd()).into(), Stage::Directory)?;
        // Should the supervisor be killed, the kernel ends at least the leader with it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        // Whatever a library of this process opened without close-on-exec stays here. Kernels
        // before 5.11 lack this, and what the standard library opens is close-on-exec anyway.
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        // By raw calls, because the C library refuses two signals that it uses itself, and somebody
        // may have had this process ignore them.
        let none = 0u64;
        let unasked = ptr::null_mut::<u64>();
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT_ACTION.as_ptr(), unasked, size_of::<u64>());
        }
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            unasked,
            size_of::<u64>(),
        );
    }
    Ok(())
}

/// Runs the first candidate that can be run; returns only with the reason why none could.
fn execute(launch: &Launch) -> Failure {
    let mut refused = false;
    for candidate in &launch.candidates {
        // SAFETY: all three are NUL-terminated strings and null-terminated arrays of such.
        unsafe {
            libc::execve(candidate.as_ptr(), launch.args.pointers.as_ptr(), launch.env.pointers.as_ptr())
        };
        let failure = Failure::last(Stage::Exec);
        match failure.errno {
            // A later directory of `PATH` may have it.
            libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP | libc::ESTALE => {}
            libc::EACCES => refused = true,
            _ => return failure,
        }
    }
    Failure { stage: Stage::Exec, errno: if refused { libc::EACCES } else { libc::ENOENT } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_as_one_number() {
        for stage in [Stage::Clone, Stage::Terminal, Stage::User, Stage::Directory, Stage::Exec] {
            let failure = Failure { stage, errno: libc::EACCES };
            assert_eq!(Failure::decode(failure.encode()), Some(failure));
        }
        assert_eq!(Failure::decode(libc::EAGAIN), None);
    }
}
