//! What the engine is asked to run for a command.

use std::time::Duration;

use super::accounts::{self, User};
use super::kill::Target;
use super::raw_exec::RawExec;
use super::shared::Shared;
use super::spawn_error::spawn;
use crate::command::{Command, Leftovers};
use crate::descriptor::Kind;
use crate::environment::Environment;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::path::WorkspacePath;
use crate::random::random_hex;

/// Enters the directory and becomes the program.
const RUN_SCRIPT: &str = include_str!("scripts/run.sh");

/// The longest argument or variable that Linux takes, its final zero byte included.
const MAX_STRING: usize = 128 * 1024;

/// What Linux takes of arguments and environment together under the usual stack limit of 8 MiB,
/// less some room for what the engine adds.
const MAX_STRINGS: usize = 2 * 1024 * 1024 - 64 * 1024;

/// The largest message between an engine and its runtime is 4 MiB.
const MAX_REQUEST: usize = 4 * 1024 * 1024 - 128 * 1024;

/// Variables that shells set, count with or refuse to take, so that they do not survive one.
const SHELL_VARIABLES: [&str; 16] = [
    "PWD", "OLDPWD", "SHLVL", "_", "IFS", "PPID", "UID", "EUID", "GROUPS", "OPTIND", "OPTARG", "OPTERR",
    "LINENO", "RANDOM", "SECONDS", "FUNCNAME",
];

/// How a command is put to the engine.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: String,
    pub(crate) exec: RawExec,
    pub(crate) target: Target,
    /// What the lines of the start script begin with; `None` when the program is run directly.
    pub(crate) nonce: Option<String>,
    /// The directory below the root that the engine has to enter, since no script can.
    pub(crate) enter: Option<WorkspacePath>,
}

/// Makes the plan of a command whose directory is `dir`.
pub(crate) async fn plan(shared: &Shared, command: &Command, dir: &WorkspacePath) -> Result<Plan> {
    check_killable(shared, command)?;
    let program = command.program().to_owned();
    let user = resolve_user(shared, command.user.as_deref(), &program).await?;
    shared.execs.note_user(user.ids);
    let env = shared.env.merged(&command.env);
    let unset = superfluous(shared, &env);
    let is_other = command.user.is_some() && shared.home_is_the_users && command.env.get("HOME").is_none();
    let marker = shared.execs.marker();
    // Left out here, the engine gives another user its own home directory.
    let given = env.iter().filter(|(name, _)| !is_other || *name != "HOME");
    let mut variables: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
    variables.push(marker.clone());

    let script = shared.shell.as_deref().filter(|_| env.iter().all(|(name, _)| survives_shell(name)));
    let (args, nonce, enter) = match script {
        Some(shell) => {
            let nonce = random_hex();
            let root = shared.root.trim_end_matches('/').to_owned();
            let dir = if dir.is_root() { String::new() } else { dir.as_str().to_owned() };
            let mut args = [shell, "-c", RUN_SCRIPT, shell].map(str::to_owned).to_vec();
            let wait = if command.tty.is_some() { "wait" } else { "" };
            args.extend([
                nonce.clone(),
                root,
                dir,
                unset.join(" "),
                "\u{1}\u{2}".to_owned(),
                wait.to_owned(),
            ]);
            args.extend(command.args.iter().cloned());
            (args, Some(nonce), None)
        }
        None if !unset.is_empty() => return Err(cannot_unset(&unset)),
        None => (command.args.clone(), None, (!dir.is_root()).then(|| dir.clone())),
    };
    check_length(&args, &variables, &program)?;
    let stdin = command.stdin.is_some();
    let exec = RawExec { args, env: variables, user: user.words, dir: shared.root.clone(), stdin };
    Ok(Plan { program, exec, target: Target::new(marker, user.ids), nonce, enter })
}

/// Refuses what could not be ended: without a shell nothing in the container can send a signal.
fn check_killable(shared: &Shared, command: &Command) -> Result<()> {
    let needs = [
        (command.timeout.is_some(), "a command with a timeout"),
        (command.idle_timeout.is_some(), "a command with an idle timeout"),
        (command.cancel.is_some(), "a command with a cancellation token"),
        (command.leftovers == Leftovers::Kill, "ending what a command leaves behind"),
    ];
    match needs.into_iter().find(|(needed, _)| *needed) {
        Some((_, operation)) if shared.shell.is_none() => Err(no_shell(operation)),
        _ => Ok(()),
    }
}

/// The error of something that takes a shell in the container.
pub(crate) fn no_shell(operation: &str) -> Error {
    Error::Unsupported {
        operation: operation.to_owned(),
        backend: Kind::Container,
        reason: "its image has no POSIX shell to send signals with; use an image that has `/bin/sh`"
            .to_owned(),
    }
}

fn cannot_unset(names: &[&str]) -> Error {
    Error::Unsupported {
        operation: format!("running a command without the container's own `{}`", names.join("`, `")),
        backend: Kind::Container,
        reason: "the engine gives every process the container's own environment, and without a POSIX \
                 shell that can take all of the other variables nothing removes it"
            .to_owned(),
    }
}

async fn resolve_user(shared: &Shared, user: Option<&str>, program: &str) -> Result<User> {
    let Some(user) = user else {
        return Ok(User { ids: shared.user, words: shared.user_words.clone() });
    };
    match accounts::resolve(&shared.engine, &shared.id, user).await {
        Err(Error::InvalidArgument { reason }) => {
            // A container that is gone has no list of accounts either.
            shared.monitor.check(&shared.engine, &shared.id).await?;
            Err(spawn(program, SpawnErrorKind::UnknownUser, &reason))
        }
        resolved => resolved,
    }
}

/// What the engine gives that the command is not to have. One that a shell does not take is not
/// handed on by it either.
fn superfluous<'a>(shared: &'a Shared, env: &Environment) -> Vec<&'a str> {
    shared.engine_env.names().filter(|name| survives_shell(name) && env.get(name).is_none()).collect()
}

/// Whether a variable of this name passes through a shell unchanged. One whose name is no
/// identifier is dropped by most shells.
fn survives_shell(name: &str) -> bool {
    let identifier = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    identifier && !name.starts_with("BASH") && !SHELL_VARIABLES.contains(&name)
}

/// Refuses arguments that would only fail after the engine has started something, which then
/// looks like the program's own failure.
fn check_length(args: &[String], variables: &[String], program: &str) -> Result<()> {
    let strings = || args.iter().chain(variables);
    let pointer = size_of::<usize>();
    let total: usize = strings().map(|string| string.len() + 1 + pointer).sum();
    let request: usize = strings().map(|string| json_length(string)).sum();
    if strings().any(|string| string.len() >= MAX_STRING) || total > MAX_STRINGS || request > MAX_REQUEST {
        return Err(spawn(program, SpawnErrorKind::ArgumentsTooLong, ""));
    }
    Ok(())
}

/// How long a string can get in the engine's JSON, which escapes some characters by six.
fn json_length(string: &str) -> usize {
    let escaped = |byte: u8| byte < 0x20 || byte == 0x7f || b"<>&".contains(&byte);
    string
        .bytes()
        .map(|byte| if escaped(byte) { 6 } else { 1 + usize::from(b"\"\\".contains(&byte)) })
        .sum::<usize>()
        + 3
}

/// How long a command may take to start: many at once wait for each other in the engine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_shell_keeps_go_through_one() {
        for name in ["PATH", "_x", "a1"] {
            assert!(survives_shell(name), "{name}");
        }
        for name in ["1a", "a-b", "a.b", "PWD", "BASH_ENV", "ü"] {
            assert!(!survives_shell(name), "{name}");
        }
    }

    #[test]
    fn arguments_that_linux_refuses_are_refused_before() {
        let fits = |args: &[String]| check_length(args, &[], "x").is_ok();
        assert!(fits(&["a".repeat(MAX_STRING - 1)]));
        assert!(!fits(&["a".repeat(MAX_STRING)]));
        assert!(!fits(&vec!["a".repeat(100_000); 30]));
        assert!(!fits(&vec!["\u{1}".repeat(100_000); 10]));
        assert!(fits(&vec!["a".repeat(100_000); 10]));
    }
}
