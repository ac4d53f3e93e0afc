//! The environment of commands, and where programs are found.

use std::collections::BTreeMap;

use super::place::{Must as _, Place, assert_error};
use crate::{Command, Environment, Error, SpawnErrorKind, WriteOptions};

cases!("environment" {
    a_command_gets_exactly_the_environment_of_the_workspace;
    variables_of_the_command_come_on_top;
    the_environment_is_a_copy;
    nothing_of_this_process_leaks_in;
    a_program_is_found_by_the_path_of_the_command [Files];
    a_relative_program_is_found_from_the_directory [Files];
    values_are_kept_byte_for_byte;
});

/// What a command sees, as `env` prints it, without what a backend may add for itself.
async fn seen(at: &Place, command: Command) -> BTreeMap<String, String> {
    let ran = at.run(command).await;
    assert!(ran.success(), "{ran}");
    let pairs = ran.out();
    pairs
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| !name.starts_with("AGENTWORKSPACE_"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn expected(environment: &Environment) -> BTreeMap<String, String> {
    environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Neither more nor less.
pub async fn a_command_gets_exactly_the_environment_of_the_workspace(at: &Place) {
    assert_eq!(seen(at, at.program("env", [])).await, expected(&at.ws().env()));
}

/// They are added, the later of two with one name wins, and the next command does not have them.
pub async fn variables_of_the_command_come_on_top(at: &Place) {
    let base = at.ws().env();
    let mut command = at.program("env", []).env("ADDED", "1").env("ADDED", "2").env("EMPTY", "");
    let mut over = Environment::empty();
    if let Some((name, _)) = base.iter().find(|(name, _)| *name != "PATH") {
        command = command.env(name, "replaced");
        over.insert(name, "replaced");
    }
    over.insert("ADDED", "2");
    over.insert("EMPTY", "");
    assert_eq!(seen(at, command).await, expected(&base.merged(&over)));
    assert_eq!(seen(at, at.program("env", [])).await, expected(&base));
}

/// What a caller does to it changes nothing.
pub async fn the_environment_is_a_copy(at: &Place) {
    let before = at.ws().env();
    let mut mine = at.ws().env();
    mine.insert("MINE", "1");
    assert_eq!(at.ws().env(), before);
    assert!(!seen(at, at.program("env", [])).await.contains_key("MINE"));
}

/// A variable of the process that uses the library is not there.
pub async fn nothing_of_this_process_leaks_in(at: &Place) {
    let base = at.ws().env();
    let seen = seen(at, at.program("env", [])).await;
    for (name, value) in std::env::vars() {
        if base.get(&name).is_none() {
            assert_ne!(seen.get(&name), Some(&value), "{name} leaked into the workspace");
        }
    }
}

/// Not by the caller's, and not by the workspace's when the command has its own.
pub async fn a_program_is_found_by_the_path_of_the_command(at: &Place) {
    let shell = at.fixture.shell();
    let interpreter = shell[0].clone();
    let script = match shell.len() {
        2 => format!("#!{interpreter}\necho mine\n"),
        _ => format!("#!{interpreter} {}\necho mine\n", shell[1]),
    };
    let path: crate::WorkspacePath = "bin/only-here".parse().must("parse");
    at.ws().write(&path, script.into(), WriteOptions::default().mode(0o755)).await.must("write a program");
    let ran = at.run(Command::new("only-here").env("PATH", at.absolute("bin"))).await;
    assert_eq!(ran.out(), "mine\n", "{ran}");
    let missing = at.ws().exec(Command::new("only-here")).await;
    assert_error!(missing, Error::Spawn { kind: SpawnErrorKind::NotFound, .. });
    let elsewhere = Command::new("only-here").env("PATH", "/nonexistent");
    assert_error!(at.ws().exec(elsewhere).await, Error::Spawn { kind: SpawnErrorKind::NotFound, .. });
    let second = Command::new("only-here").env("PATH", format!("/nonexistent:{}", at.absolute("bin")));
    assert!(at.run(second).await.success(), "every element of PATH is tried");
}

/// A name with a slash is resolved against the command's directory.
pub async fn a_relative_program_is_found_from_the_directory(at: &Place) {
    let shell = at.fixture.shell();
    let line = shell[..shell.len() - 1].join(" ");
    let script = format!("#!{line}\necho \"$@\"; pwd\n");
    let path: crate::WorkspacePath = "d/e/tool-of-ours".parse().must("parse");
    at.ws().write(&path, script.into(), WriteOptions::default().mode(0o755)).await.must("write a program");
    for (dir, program) in [
        ("d", "e/tool-of-ours"),
        ("d", "./e/tool-of-ours"),
        ("d/e", "./tool-of-ours"),
        ("d/e", "../e/tool-of-ours"),
    ] {
        let ran = at.run(Command::new(program).arg("arg").dir(dir)).await;
        assert_eq!(ran.out(), format!("arg\n{}\n", at.absolute(dir)), "{program} in {dir}\n{ran}");
    }
    let wrong = at.ws().exec(Command::new("./tool-of-ours").dir("d")).await;
    assert_error!(wrong, Error::Spawn { kind: SpawnErrorKind::NotFound, .. });
}

/// Spaces, newlines, quotes, `=` and letters of every kind.
pub async fn values_are_kept_byte_for_byte(at: &Place) {
    for value in ["", " a b ", "a\nb", "'\"$(id)`id`", "a=b=c", "caf\u{e9}\u{1f600}", "\\n"] {
        let ran = at.run(at.sh("printf '[%s]' \"$VALUE\"").env("VALUE", value)).await;
        assert_eq!(ran.out(), format!("[{value}]"), "{ran}");
    }
    let long = "v".repeat(100_000);
    let ran = at.run(at.sh("printf %s \"$VALUE\"").env("VALUE", long.as_str())).await;
    assert!(ran.out() == long, "a long value arrives whole");
}
