//! How long is waited for what is out of this process's hands.

use std::time::Duration;

/// How long output is awaited that others still hold open after a command has exited, and how long
/// the last output of a killed one may wait for its reader.
pub(super) const DRAIN: Duration = Duration::from_secs(2);

/// How long killed processes may take to be gone. Only the kernel can hold one up for longer, in a
/// system call that cannot be interrupted.
pub(super) const KILL: Duration = Duration::from_secs(5);

/// How long closing waits for processes, those among them that are asked to end before they are
/// killed.
pub(super) const CLOSE: Duration = Duration::from_secs(10);
