//! The process between this one and a command, so that nothing the command starts outlives its
//! owner.
//!
//! The supervisor is the forked child of this process: it never executes another program. It is a
//! child subreaper, so that whatever the command's processes do, they stay below it: a process
//! whose parent has exited becomes its child. It holds one end of a socket. When the other end is
//! shut, because the owner let go of the command or died, it kills what is below it until nothing
//! is left, and exits. It tells the owner over the same socket how the command ended.
//!
//! It is forked with this process's memory, which costs copying the page tables, about 2 ms for
//! each 100 MiB in use. It gives the memory back at once, and closes every descriptor but the
//! socket.

#![expect(unsafe_code, reason = "the child of a fork in a multi-threaded process may only make system calls")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

use tokio::process::Command;

use super::children::for_each_child;
use super::forget::forget_the_heap;
use super::leader::Launch;

/// What the supervisor says: a tag and a number, in the byte order of the machine.
pub(super) const REPORT_BYTES: usize = 8;
/// The leader's process id.
pub(super) const LEADER: i32 = 1;
/// The leader's wait status.
pub(super) const STATUS: i32 = 2;
/// Nothing is left of the command, and the supervisor exits.
pub(super) const DONE: i32 = 3;
/// The program runs.
pub(super) const STARTED: i32 = 4;
/// The program could not be run; the number is an encoded [`Failure`](super::leader::Failure).
pub(super) const FAILED: i32 = 5;

/// What `ps` shows; the kernel keeps 15 bytes.
const NAME: &std::ffi::CStr = c"aw-supervisor";

/// While processes are being killed, how long the first and every later wait for one to go may
/// be. A killed process announces its end, so that the wait matters only for one that was forked
/// behind the back of a round or that the kernel does not let go of.
const FIRST_NAP_MS: c_int = 5;
const LONGEST_NAP_MS: c_int = 1000;

/// Makes `command` fork a supervisor that runs `launch`. The program that `command` names is never
/// run.
pub(super) fn install(command: &mut Command, launch: Launch) {
    // SAFETY: the hook runs in the forked child and keeps to system calls: nothing it reaches
    // allocates, locks or panics.
    unsafe { command.pre_exec(move || become_supervisor(&launch)) };
}

/// Turns the forked child into a supervisor.
fn become_supervisor(launch: &Launch) -> ! {
    let all = u64::MAX;
    let unasked = ptr::null_mut::<u64>();
    // SAFETY: system calls on numbers and on memory that is valid for their length. The mask is
    // set by a raw call because the C library's spares two signals that it uses itself, and those
    // would end the supervisor.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, unasked, size_of::<u64>());
        // With SIGCHLD ignored children would vanish without a status.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr(), 0, 0, 0);
    }
    // The standard library's pipe for a failed start is closed before the program runs: a program
    // that stops its supervisor would otherwise stop this process, which reads from that pipe.
    let [low, high] = launch.descriptors();
    close_between(3, low.saturating_sub(1));
    close_between(low.saturating_add(1), high.saturating_sub(1));
    close_between(high.saturating_add(1), c_int::MAX);
    match launch.clone_leader() {
        Ok(leader) => supervise(launch.link(), leader),
        Err(failure) => {
            report(launch.link(), FAILED, failure.encode());
            // SAFETY: `_exit` runs none of the handlers of the process this was forked from.
            unsafe { libc::_exit(1) }
        }
    }
}

/// Reports the leader's end, reaps what it adopts, and kills everything once the owner is gone.
fn supervise(link: RawFd, leader: libc::pid_t) -> ! {
    // SAFETY: system calls on numbers, a NUL-terminated string and initialized memory. The
    // descriptors that are closed belong to the copy of a process whose code never runs here again.
    let signals = unsafe {
        libc::dup2(link, 0);
        close_between(1, c_int::MAX);
        libc::chdir(c"/".as_ptr());
        // A process of the same user can then neither trace it nor read its memory.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        // This function never returns, and what it goes on with is on the stack.
        forget_the_heap();
        let mut mask = MaybeUninit::uninit();
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, mask.as_ptr(), libc::SFD_NONBLOCK)
    };
    report(0, STARTED, 0);
    loop {
        reap(leader);
        if wait_for_event(signals, true, -1) {
            kill_everything(signals, leader);
        }
    }
}

/// Closes every descriptor from `first` to `last`.
fn close_between(first: c_int, last: c_int) {
    if first > last {
        return;
    }
    // SAFETY: closes descriptors that nothing here uses; the limit is written by the kernel.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        // Kernels before 5.9.
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed().assume_init();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let highest = c_int::try_from(limit.rlim_cur.min(1 << 20)).unwrap_or(1 << 20);
        for fd in first..=last.min(highest) {
            libc::close(fd);
        }
    }
}

/// Tells the owner at the other end of `link`. It may be gone, and then there is nobody to tell.
pub(super) fn report(link: RawFd, tag: i32, value: i32) {
    let message = [tag, value];
    // SAFETY: the message is `REPORT_BYTES` long and initialized.
    unsafe {
        libc::send(link, message.as_ptr().cast(), REPORT_BYTES, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
}

/// Takes the status of every process that has ended; exits when no child is left.
fn reap(leader: libc::pid_t) {
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        if pid == 0 {
            return;
        }
        if pid == leader {
            report(0, STATUS, status);
        }
        if pid < 0 {
            report(0, DONE, 0);
            // SAFETY: `_exit` runs none of the handlers of the process this was forked from.
            unsafe { libc::_exit(0) };
        }
    }
}

/// Sleeps until a child has ended or the owner is gone, which is `true`, or the time is over.
fn wait_for_event(signals: c_int, watch_owner: bool, milliseconds: c_int) -> bool {
    let owner = if watch_owner { 0 } else { -1 };
    let mut events = [
        libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd: owner, events: libc::POLLIN, revents: 0 },
    ];
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    // SAFETY: both arrays are as long as is said; the descriptor of signals does not block.
    unsafe {
        libc::poll(events.as_mut_ptr(), 2, milliseconds);
        libc::read(signals, info.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>());
    }
    // The owner never sends anything: whatever happens on the socket is its end.
    events[1].revents != 0
}

/// Kills level by level: the orphans of what was killed become children and go in the next round.
/// A process that forks all the time cannot keep ahead: its group is killed in one step. Never
/// returns; `reap` exits once nothing is left.
fn kill_everything(signals: c_int, leader: libc::pid_t) -> ! {
    let mut nap = FIRST_NAP_MS;
    loop {
        if !for_each_child(kill_with_group) {
            kill_with_group(leader);
        }
        reap(leader);
        wait_for_event(signals, false, nap);
        reap(leader);
        nap = (nap * 2).min(LONGEST_NAP_MS);
    }
}

/// Kills a child and its process group. The child is not reaped yet, so that neither number can
/// stand for another; every member of its group is below the supervisor, because the sessions
/// there were all made there.
fn kill_with_group(child: libc::pid_t) {
    // SAFETY: system calls on numbers.
    unsafe {
        let group = libc::getpgid(child);
        if group > 1 && group != libc::getpgid(0) {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::kill(child, libc::SIGKILL);
    }
}

const _: () = assert!(size_of::<[i32; 2]>() == REPORT_BYTES);
