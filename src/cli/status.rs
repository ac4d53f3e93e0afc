//! Exit statuses.

use agentworkspace::{End, Error, SpawnErrorKind};

use super::failure::{Interrupted, NotOpened, StdoutClosed, Usage, workspace_error};

/// What this process exits with.
pub(crate) type Status = u8;

/// It went well.
pub(crate) const OK: Status = 0;
/// What was asked for could not be done: no such file, a check that failed.
pub(crate) const FAILED: Status = 1;
/// The arguments make no sense.
pub(crate) const USAGE: Status = 2;
/// The command was ended by a time limit.
pub(crate) const TIMED_OUT: Status = 124;
/// The workspace failed, or could not be made.
pub(crate) const WORKSPACE: Status = 125;
/// The program is there and cannot be executed.
pub(crate) const NOT_EXECUTABLE: Status = 126;
/// There is no such program.
pub(crate) const NOT_FOUND: Status = 127;

/// What every help text says about them.
pub(crate) const HELP: &str = "\
Exit status:
  run and exec: the command's own, 128+N when signal N ended it, 137 when memory ran out,
  124 timed out, 125 the workspace failed, 126 not executable, 127 not found.
  Others: 0 done, 1 it could not be done, 125 the workspace failed.
  All: 2 wrong usage, 130 and 143 interrupted, 141 standard output was closed.";

/// The status for a command that ended.
pub(crate) fn of_end(end: End) -> Status {
    match end {
        End::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Signaled(signal) => after_signal(signal.number()),
        End::TimedOut | End::IdleTimedOut => TIMED_OUT,
        End::OutOfMemory => after_signal(libc::SIGKILL),
        _ => WORKSPACE,
    }
}

/// The status of a process that a signal ended, as shells give it.
fn after_signal(number: i32) -> Status {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

/// The status for a subcommand that failed.
pub(crate) fn of_failure(failure: &anyhow::Error) -> Status {
    if let Some(Interrupted(signal)) = failure.downcast_ref() {
        return after_signal(signal.number());
    }
    if failure.downcast_ref::<StdoutClosed>().is_some() {
        return after_signal(libc::SIGPIPE);
    }
    if failure.downcast_ref::<Usage>().is_some() {
        return USAGE;
    }
    match workspace_error(failure).map_or(FAILED, of_error) {
        FAILED if failure.is::<NotOpened>() => WORKSPACE,
        status => status,
    }
}

/// The same where 1 could be taken for the command's own status.
pub(crate) fn of_command_failure(failure: &anyhow::Error) -> Status {
    match of_failure(failure) {
        FAILED => WORKSPACE,
        status => status,
    }
}

fn of_error(error: &Error) -> Status {
    match error {
        Error::InvalidArgument { .. } | Error::InvalidPath { .. } => USAGE,
        Error::Spawn { kind, .. } => match kind {
            SpawnErrorKind::NotFound => NOT_FOUND,
            SpawnErrorKind::NotExecutable | SpawnErrorKind::ArgumentsTooLong => NOT_EXECUTABLE,
            _ => WORKSPACE,
        },
        Error::Limit { .. }
        | Error::Gone { .. }
        | Error::Closed
        | Error::Cancelled
        | Error::Timeout { .. }
        | Error::NoEngine { .. }
        | Error::Engine { .. }
        | Error::Image { .. }
        | Error::NoContainer { .. } => WORKSPACE,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use agentworkspace::Signal;

    use super::*;

    #[test]
    fn ends_map_as_documented() {
        for (end, status) in [
            (End::Exited(0), 0),
            (End::Exited(7), 7),
            (End::Exited(255), 255),
            (End::Signaled(Signal::TERM), 143),
            (End::TimedOut, 124),
            (End::IdleTimedOut, 124),
            (End::OutOfMemory, 137),
        ] {
            assert_eq!(of_end(end), status, "{end}");
        }
    }

    #[test]
    fn failures_map_as_documented() {
        let spawn = |kind| anyhow::Error::from(Error::Spawn { program: "a".into(), kind, source: None });
        let missing = || anyhow::Error::from(Error::NotFound { path: "a".into() });
        assert_eq!(of_failure(&spawn(SpawnErrorKind::NotFound)), 127);
        assert_eq!(of_failure(&spawn(SpawnErrorKind::NotExecutable).context("failed to run")), 126);
        assert_eq!(of_failure(&spawn(SpawnErrorKind::UnknownUser)), 125);
        assert_eq!(of_failure(&missing()), 1);
        assert_eq!(of_failure(&missing().context(NotOpened("local:x".into()))), 125);
        assert_eq!(of_command_failure(&missing()), 125);
        assert_eq!(of_failure(&Error::Closed.into()), 125);
        assert_eq!(of_failure(&Usage("a".into()).into()), 2);
        assert_eq!(of_failure(&Interrupted(Signal::INT).into()), 130);
        assert_eq!(of_failure(&StdoutClosed.into()), 141);
    }
}
