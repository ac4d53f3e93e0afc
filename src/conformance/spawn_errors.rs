//! Commands that never start: each reason is its own, and none looks like an exit.

use super::place::{Must as _, Place};
use crate::{Command, Error, SpawnErrorKind, WriteOptions, start};

cases!("spawn_errors" {
    a_missing_program_is_not_found;
    what_is_not_executable_is_said_so [Files];
    a_missing_interpreter_is_not_found [Files];
    a_directory_that_cannot_be_entered_is_said_so;
    an_unknown_user_is_said_so [User];
    arguments_that_are_too_long_are_said_so;
    a_program_that_exits_with_126_or_127_has_started;
    start_gives_the_same_errors [Start];
});

async fn assert_spawn(at: &Place, command: Command, expected: SpawnErrorKind) {
    let text: String = command.to_string().chars().take(200).collect();
    let program = command.program().to_owned();
    match at.ws().exec(command).await {
        Err(Error::Spawn { program: named, kind, .. }) => {
            assert_eq!((named, kind), (program, expected), "{text}");
        }
        other => panic!("{text} must not start ({expected:?}), and gave {other:?}"),
    }
}

/// By its path, by PATH, and where the path leads through a file.
pub async fn a_missing_program_is_not_found(at: &Place) {
    for program in ["no-such-program-here", "/no/such/program", "./missing", "sub/missing", "-rf", "a b"] {
        assert_spawn(at, Command::new(program), SpawnErrorKind::NotFound).await;
    }
    at.done("echo still works").await;
}

/// A file without the bit, a directory, and bytes that are no program.
pub async fn what_is_not_executable_is_said_so(at: &Place) {
    at.put("plain", "#!/bin/sh\necho ran\n").await;
    let binary = "garbage".parse().must("parse");
    at.ws()
        .write(&binary, (&b"\x7fELF\x01\xff\0\0garbage"[..]).into(), WriteOptions::default().mode(0o755))
        .await
        .must("write");
    at.done("mkdir dir").await;
    for program in ["./plain", "./dir", "./garbage"] {
        assert_spawn(at, Command::new(program), SpawnErrorKind::NotExecutable).await;
    }
}

/// The script is there, what should run it is not.
pub async fn a_missing_interpreter_is_not_found(at: &Place) {
    let script = "script".parse().must("parse");
    let options = WriteOptions::default().mode(0o755);
    at.ws().write(&script, "#!/no/such/interpreter\n".into(), options).await.must("write");
    assert_spawn(at, Command::new("./script"), SpawnErrorKind::NotFound).await;
}

/// Missing, a file, or without permission.
pub async fn a_directory_that_cannot_be_entered_is_said_so(at: &Place) {
    at.done("echo > f; mkdir locked; chmod 000 locked; ln -s gone dangling").await;
    for dir in ["missing", "f", "f/x", "missing/deeper", "dangling"] {
        assert_spawn(at, at.sh("echo ran").dir(dir), SpawnErrorKind::BadDirectory).await;
    }
    if at.fixture.ids().0 != 0 {
        assert_spawn(at, at.sh("echo ran").dir("locked"), SpawnErrorKind::BadDirectory).await;
    }
}

/// By name; and switching to somebody else without the right to.
pub async fn an_unknown_user_is_said_so(at: &Place) {
    assert_spawn(at, at.sh("echo ran").user("nobody-by-this-name"), SpawnErrorKind::UnknownUser).await;
    assert_spawn(at, at.sh("echo ran").user("1:2:3"), SpawnErrorKind::UnknownUser).await;
}

/// More than the system takes in one argument, or in all.
pub async fn arguments_that_are_too_long_are_said_so(at: &Place) {
    let huge = "x".repeat(200 << 10);
    assert_spawn(at, at.program("printf", ["%s", &huge]), SpawnErrorKind::ArgumentsTooLong).await;
    let many = at.program("true", []).args(std::iter::repeat_n("y".repeat(1000), 9000));
    assert_spawn(at, many, SpawnErrorKind::ArgumentsTooLong).await;
    assert_spawn(at, at.program("true", []).env("HUGE", huge), SpawnErrorKind::ArgumentsTooLong).await;
}

/// What a shell says of a missing program is the shell's exit.
pub async fn a_program_that_exits_with_126_or_127_has_started(at: &Place) {
    let ran = at.run(at.sh("no-such-program-here")).await;
    assert_eq!(ran.exit_code, 127, "{ran}");
    assert!(!ran.stderr.is_empty(), "{ran}");
    let ran = at
        .run(at.sh("echo 'OCI runtime exec failed: exec failed: no such file or directory' >&2; exit 126"))
        .await;
    assert_eq!(ran.exit_code, 126, "{ran}");
}

/// Before a process is handed out.
pub async fn start_gives_the_same_errors(at: &Place) {
    at.done("mkdir dir").await;
    for (command, expected) in [
        (Command::new("no-such-program-here"), SpawnErrorKind::NotFound),
        (Command::new("./dir"), SpawnErrorKind::NotExecutable),
        (at.sh("exit 0").dir("missing"), SpawnErrorKind::BadDirectory),
    ] {
        match start(at.ws(), command).await {
            Err(Error::Spawn { kind, .. }) => assert_eq!(kind, expected),
            other => panic!("it must not start ({expected:?}), and gave {other:?}"),
        }
    }
}
