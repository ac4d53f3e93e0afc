//! A pseudo-terminal, as the side that shows it has it.

#![expect(unsafe_code, reason = "the runtime takes a descriptor of another kind than its own only on trust")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::command::TtySize;

/// The master of a terminal. It is closed, which hangs up the processes on it, with the last of
/// its clones.
#[derive(Clone, Debug)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// A terminal of this size, and the slave that becomes a process's standard streams.
    pub(super) fn open(size: TtySize) -> io::Result<(Terminal, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        // Through the master, so that no other mount of devpts can come between.
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        // SAFETY: an owned descriptor stays the same one, and open, for as long as it is registered.
        let registered = unsafe { AsyncFd::register(master) }?;
        let terminal = Terminal(Arc::new(registered));
        terminal.resize(size)?;
        Ok((terminal, slave))
    }

    /// Sets the size; the processes in its foreground get SIGWINCH.
    pub(super) fn resize(&self, size: TtySize) -> io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.0.get_ref(), size)?)
    }

    /// Types the end-of-file character, which is all the end of file that a terminal has. One in
    /// raw mode has none.
    fn type_end_of_file(&self) {
        let Ok(attributes) = tcgetattr(self.0.get_ref()) else { return };
        if attributes.local_modes.contains(LocalModes::ICANON) {
            // A terminal whose input is full has nobody who would read it.
            let _ = rustix::io::write(self.0.get_ref(), &[attributes.special_codes[SpecialCodeIndex::VEOF]]);
        }
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

/// What the processes print.
#[derive(Debug)]
pub(super) struct Screen(pub(super) Terminal);

impl AsyncRead for Screen {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.0.poll_read_ready(cx))?;
            let unfilled = buf.initialize_unfilled();
            match guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut *unfilled)?)) {
                Ok(Ok(read)) => {
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                // The kernel's way to say that no process has the terminal open any more.
                Ok(Err(error)) if Errno::from_io_error(&error) == Some(Errno::IO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

/// What is typed.
#[derive(Debug)]
pub(super) struct Keyboard(pub(super) Terminal);

impl AsyncWrite for Keyboard {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.0.poll_write_ready(cx))?;
            if let Ok(written) = guard.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), buf)?)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The end of file is typed when this is dropped, as it is after a shutdown.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.0.type_end_of_file();
    }
}
