//! Standard input and output as one stream.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::net::unix::pipe;

/// Standard input and output, which nothing else of this process uses; pipes, as engines give them.
pub(super) fn stdio() -> io::Result<(pipe::Receiver, pipe::Sender)> {
    let (input, output) = (duplicate(io::stdin())?, duplicate(io::stdout())?);
    Ok((pipe::Receiver::from_owned_fd(input)?, pipe::Sender::from_owned_fd(output)?))
}

fn duplicate(stream: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(stream, 3)?)
}
