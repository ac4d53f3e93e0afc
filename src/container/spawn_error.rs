//! What an engine says when a command could not be started.

use crate::error::{BoxError, Error, SpawnErrorKind};

/// The engine's own words as a source.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct EngineWords(String);

/// A command that was not started, with the engine's words if it had any.
pub(crate) fn spawn(program: &str, kind: SpawnErrorKind, words: &str) -> Error {
    let words = words.trim();
    let source = (!words.is_empty()).then(|| Box::new(EngineWords(words.to_owned())) as BoxError);
    Error::Spawn { program: program.to_owned(), kind, source }
}

/// Which kind a message of an engine is about. The words are the runtime's and differ by version,
/// so a kind is only chosen where they are plain.
pub(crate) fn kind_of(message: &str) -> SpawnErrorKind {
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["chdir to cwd", "getcwd", "cwd must be an absolute path"]) {
        SpawnErrorKind::BadDirectory
    } else if says(&["unable to find user", "no matching entries in passwd", "unable to find group"])
        || says(&["setuid", "setgid", "uid/gid", "user not found"])
    {
        SpawnErrorKind::UnknownUser
    } else if says(&["argument list too long", "larger than max", "message too large"]) {
        SpawnErrorKind::ArgumentsTooLong
    } else if says(&["resource temporarily unavailable", "cannot allocate memory", "too many open files"]) {
        SpawnErrorKind::NoResources
    } else if says(&["executable file not found", "no such file or directory", "not found"]) {
        SpawnErrorKind::NotFound
    } else if says(&["permission denied", "exec format error", "is a directory", "not a directory"]) {
        SpawnErrorKind::NotExecutable
    } else {
        SpawnErrorKind::Other
    }
}

/// What an error of the create or start call means for `program`: newer engines check the user
/// and the size of a request there already. Only words that are plain count, since anything else
/// may be about the container.
pub(crate) fn from_call(program: &str, error: Error) -> Error {
    match &error {
        Error::Engine { status: Some(400 | 500), message, .. } => match kind_of(message) {
            kind @ (SpawnErrorKind::UnknownUser | SpawnErrorKind::ArgumentsTooLong) => {
                spawn(program, kind, message)
            }
            _ => error,
        },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_engines_get_their_kind() {
        let cases = [
            (
                r#"OCI runtime exec failed: exec failed: unable to start container process: exec: "nope": executable file not found in $PATH: unknown"#,
                SpawnErrorKind::NotFound,
            ),
            (
                r#"OCI runtime exec failed: exec failed: unable to start container process: exec: "/etc": permission denied: unknown"#,
                SpawnErrorKind::NotExecutable,
            ),
            (
                r#"OCI runtime exec failed: exec failed: unable to start container process: chdir to cwd ("/x") set in config.json failed: no such file or directory: unknown"#,
                SpawnErrorKind::BadDirectory,
            ),
            (
                "unable to find user nobodyhere: no matching entries in passwd file",
                SpawnErrorKind::UnknownUser,
            ),
            ("exec /bin/true: argument list too long", SpawnErrorKind::ArgumentsTooLong),
            ("fork/exec /proc/self/exe: resource temporarily unavailable", SpawnErrorKind::NoResources),
            ("something else", SpawnErrorKind::Other),
        ];
        for (message, kind) in cases {
            assert_eq!(kind_of(message), kind, "{message}");
        }
    }
}
