//! What a subcommand reports when it fails, and how it is told to a person.

use std::fmt::Write as _;

use agentworkspace::{Error, GoneReason, ImageErrorKind, Signal, SpawnErrorKind};

/// The arguments contradict each other, in a way that their parser cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// A signal asked this process to end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("ended by {0}")]
pub(crate) struct Interrupted(pub(crate) Signal);

/// There is no workspace to work in; the context of why not.
#[derive(Debug, thiserror::Error)]
#[error("failed to open {0}")]
pub(crate) struct NotOpened(pub(crate) String);

/// Whoever read standard output is gone, which is no mistake.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("standard output is closed")]
pub(crate) struct StdoutClosed;

/// The workspace error in a chain, if there is one.
pub(crate) fn workspace_error(failure: &anyhow::Error) -> Option<&Error> {
    failure.chain().find_map(|cause| {
        cause.downcast_ref::<Error>().or_else(|| {
            // An error in the middle of a stream travels in an `io::Error`.
            cause.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<Error>()
        })
    })
}

/// The whole chain as one line, outermost first. A cause that the one before it quotes already is
/// left out.
pub(crate) fn text(failure: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in failure.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

/// What would help, for the failures that people meet first.
pub(crate) fn hint(failure: &anyhow::Error) -> Option<String> {
    let error = workspace_error(failure)?;
    Some(match error {
        Error::NoEngine { .. } if text(failure).contains("ermission denied") => {
            "this user may not use the engine's socket: join its group (`sudo usermod -aG docker $USER`, then \
             log in again), or point DOCKER_HOST at an engine of your own"
                .to_owned()
        }
        Error::NoEngine { .. } => {
            "start an engine (`make engine` in a checkout, or your system's docker or podman service), or set \
             DOCKER_HOST; `agentworkspace doctor` says what is missing, and `run` without --image needs none"
                .to_owned()
        }
        Error::Spawn { program, kind: SpawnErrorKind::NotFound, .. } if program.contains(char::is_whitespace) => {
            "arguments are words of their own: leave the quotes out, or use `sh -c '...'`".to_owned()
        }
        Error::Spawn { kind: SpawnErrorKind::NotFound, .. } => {
            "the program is looked up in the PATH inside the workspace; a shell's own commands need \
             `sh -c '...'`"
                .to_owned()
        }
        Error::Spawn { kind: SpawnErrorKind::NotExecutable, .. } => {
            "set its x bit, and check that it is for this architecture and has a `#!` line if it is a script"
                .to_owned()
        }
        Error::Image { kind: ImageErrorKind::NotPresent, .. } => {
            "pull or build the image first, or leave out `--pull never`".to_owned()
        }
        Error::Image { kind: ImageErrorKind::NotFound { .. }, .. } => {
            "check the reference; for a private registry log in with `docker login` first".to_owned()
        }
        Error::NoContainer { .. } => "`agentworkspace list` shows the containers that it made".to_owned(),
        Error::Limit { .. } => "`agentworkspace doctor` lists the limits that this engine can enforce".to_owned(),
        Error::Gone { why: GoneReason::OutOfMemory } => "give it more with --memory".to_owned(),
        Error::OutsideWorkspace { .. } => {
            "names are relative to the workspace's root, and links may not lead out of it".to_owned()
        }
        Error::IsADirectory { .. } if text(failure).starts_with("failed to remove") => "use -r".to_owned(),
        Error::StorageFull { .. } => "`agentworkspace prune` removes what dead runs left behind".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_chain_is_one_line_without_repetition() {
        let source = std::io::Error::from_raw_os_error(libc::EIO);
        let words = source.to_string();
        let error = Error::Io { operation: "read".into(), path: "x".into(), source };
        let failure = Err::<(), _>(error).context("failed to read `x` in local:.").unwrap_err();
        assert_eq!(text(&failure), format!("failed to read `x` in local:.: failed to read `x`: {words}"));
        let failure = anyhow::anyhow!("inner").context("outer: inner");
        assert_eq!(text(&failure), "outer: inner");
    }

    #[test]
    fn an_error_inside_of_a_stream_is_found() {
        let io: std::io::Error = Error::Changed { path: "x".into() }.into();
        let failure = anyhow::Error::from(io).context("failed to copy");
        assert!(matches!(workspace_error(&failure), Some(Error::Changed { .. })));
    }
}
