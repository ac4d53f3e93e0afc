//! Running commands to their end.

use std::time::Duration;

use super::place::{Must as _, Place, assert_error};
use crate::{Command, Content, End, Error, Signal};

cases!("exec" {
    status_and_both_streams_come_back;
    every_status_comes_back;
    an_end_by_signal_is_told_apart;
    no_shell_is_in_between;
    the_directory_is_cleaned_and_entered;
    standard_input_is_none_bytes_or_a_reader;
    input_that_is_not_read_does_not_block;
    input_that_fails_does_not_hang;
    a_command_has_its_own_session_and_group;
    the_duration_is_how_long_it_ran;
    another_user_may_be_asked_for [User];
    impossible_commands_are_refused;
    a_cancelled_token_refuses_before_anything_starts;
});

/// Both streams apart, the status beside them; a status other than 0 is no error.
pub async fn status_and_both_streams_come_back(at: &Place) {
    let ran = at.run(at.sh("echo out; echo err >&2; exit 3")).await;
    assert_eq!((ran.out().as_str(), ran.err().as_str()), ("out\n", "err\n"), "{ran}");
    assert_eq!((ran.end, ran.exit_code, ran.timed_out), (End::Exited(3), 3, false), "{ran}");
    assert!(!ran.success() && !ran.output_detached, "{ran}");
    let ran = at.run(at.sh("exit 0")).await;
    assert!(ran.success() && ran.stdout.is_empty() && ran.stderr.is_empty(), "{ran}");
}

/// 0 to 255 as they are, except where a status cannot be told from a signal.
pub async fn every_status_comes_back(at: &Place) {
    for status in [0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 143, 255] {
        let ran = at.run(at.sh(format!("exit {status}"))).await;
        match ran.end {
            End::Exited(code) => assert_eq!(code, status, "{ran}"),
            End::Signaled(signal) if !at.ws().capabilities().exact_signals => {
                assert_eq!(signal.number() + 128, status, "{ran}");
            }
            _ => panic!("an exit is an exit\n{ran}"),
        }
    }
}

/// The signal is named, the code is -1, and that is no error.
pub async fn an_end_by_signal_is_told_apart(at: &Place) {
    for (name, signal) in [("KILL", Signal::KILL), ("TERM", Signal::TERM), ("HUP", Signal::HUP)] {
        let ran = at.run(at.sh(format!("echo before; kill -{name} $$; sleep 5"))).await;
        assert_eq!(
            (ran.end, ran.exit_code, ran.out().as_str()),
            (End::Signaled(signal), -1, "before\n"),
            "{ran}"
        );
        assert!(!ran.timed_out, "{ran}");
    }
}

/// Arguments arrive byte for byte, whatever a shell would make of them.
pub async fn no_shell_is_in_between(at: &Place) {
    let args = [
        "$HOME",
        "a b",
        "*",
        "'q'",
        "\"d\"",
        "`id`",
        ";",
        "",
        "-n",
        "a\nb",
        "\\",
        "\u{e9}\u{1f600}",
        "&&",
        "\t",
    ];
    let ran = at.run(at.program("printf", ["[%s]"]).args(args)).await;
    assert_eq!(ran.out(), args.map(|arg| format!("[{arg}]")).concat(), "{ran}");
    let long = "x".repeat(100_000);
    let ran = at.run(at.program("printf", ["%s", &long])).await;
    assert!(ran.out() == long, "a long argument arrives whole");
}

/// `""` is the root; `./x`, `b/` and `a/../b` are cleaned.
pub async fn the_directory_is_cleaned_and_entered(at: &Place) {
    at.done("mkdir -p a/sub b 'c d'").await;
    let root = at.ws().descriptor().root;
    for (dir, below) in [
        ("", ""),
        (".", ""),
        ("a/sub", "a/sub"),
        ("./a", "a"),
        ("b/", "b"),
        ("a/../b", "b"),
        ("a//sub/.", "a/sub"),
        ("c d", "c d"),
    ] {
        let ran = at.run(at.sh("pwd").dir(dir)).await;
        let expected = if below.is_empty() { root.clone() } else { at.absolute(below) };
        assert_eq!(ran.out().trim_end(), expected, "{dir:?}\n{ran}");
    }
}

/// None is end of file at once; bytes and readers arrive whole.
pub async fn standard_input_is_none_bytes_or_a_reader(at: &Place) {
    let ran = at.run(at.program("cat", [])).await;
    assert!(ran.success() && ran.stdout.is_empty(), "{ran}");
    let ran = at.run(at.program("cat", []).stdin("")).await;
    assert!(ran.success() && ran.stdout.is_empty(), "{ran}");
    let data: Vec<u8> = (0..1_500_000u32).map(|i| (i % 256) as u8).collect();
    let ran = at.run(at.program("cat", []).stdin(data.clone())).await;
    assert!(*ran.stdout == *data, "1.5 MB of input come back: {}", ran.stdout.len());
    let reader = Content::reader(std::io::Cursor::new(data.clone()));
    let ran = at.run(at.program("cat", []).stdin(reader)).await;
    assert!(*ran.stdout == *data, "input from a reader comes back: {}", ran.stdout.len());
}

/// What the command leaves unread is discarded, also when the reader never ends.
pub async fn input_that_is_not_read_does_not_block(at: &Place) {
    let run = async {
        let ran = at.run(at.sh("echo done").stdin(vec![b'x'; 4 << 20])).await;
        assert!(ran.success() && ran.out() == "done\n", "{ran}");
        let ran = at.run(at.sh("head -c 5").stdin(Content::reader(tokio::io::repeat(b'x')))).await;
        assert_eq!(ran.out(), "xxxxx", "{ran}");
        let (_kept, never) = tokio::io::duplex(8);
        let ran = at.run(at.sh("echo done").stdin(Content::reader(never))).await;
        assert_eq!(ran.out(), "done\n", "{ran}");
    };
    tokio::time::timeout(Duration::from_secs(30), run).await.must("end in time");
}

/// Input that breaks in the middle is an error or an early end, never a command that waits for ever.
pub async fn input_that_fails_does_not_hang(at: &Place) {
    let short = Content::sized_reader(&b"abc"[..], 10);
    let run = at.ws().exec(at.program("cat", []).stdin(short));
    let result = tokio::time::timeout(Duration::from_secs(30), run).await.must("end in time");
    if let Ok(output) = result {
        assert_eq!(&*output.stdout, b"abc");
    }
}

/// It leads a session and a process group of its own.
pub async fn a_command_has_its_own_session_and_group(at: &Place) {
    let ran = at.run(at.sh("read -r line < /proc/$$/stat; echo $$ ${line##*)}")).await;
    let out = ran.out();
    let fields: Vec<&str> = out.split_whitespace().collect();
    // After the name: state, parent, process group, session.
    let (group, session) = (fields[3], fields[4]);
    assert_eq!(group, session, "the group is the session's first\n{ran}");
    let other = at.run(at.sh("read -r line < /proc/$$/stat; echo $$ ${line##*)}")).await;
    assert_ne!(
        other.out().split_whitespace().nth(4),
        Some(session),
        "two commands share no session\n{other}"
    );
}

/// Counted from the start to the end.
pub async fn the_duration_is_how_long_it_ran(at: &Place) {
    let ran = at.run(at.sh("sleep 1")).await;
    assert!((Duration::from_millis(950)..Duration::from_secs(30)).contains(&ran.duration), "{ran}");
}

/// By number, and by number and group; the files it makes are that user's.
pub async fn another_user_may_be_asked_for(at: &Place) {
    let (uid, gid) = at.fixture.ids();
    let ran = at.run(at.sh("id -u; id -g").user(format!("{uid}:{gid}"))).await;
    assert_eq!(ran.out(), format!("{uid}\n{gid}\n"), "its own user always\n{ran}");
    if uid != 0 {
        return;
    }
    let ran = at.run(at.sh("id -u; id -g").user("2345:3456")).await;
    assert_eq!(ran.out(), "2345\n3456\n", "{ran}");
    let ran = at.run(at.sh("id -u").user("2345")).await;
    assert_eq!(ran.out(), "2345\n", "{ran}");
    let ran = at.run(at.sh("id -u")).await;
    assert_eq!(ran.out(), "0\n", "{ran}");
}

/// Nothing to run, impossible arguments and variables, a timeout of 0, a terminal.
pub async fn impossible_commands_are_refused(at: &Place) {
    let empty: [&str; 0] = [];
    let zero = Duration::ZERO;
    let marked = || at.sh("echo > ran");
    for command in [
        Command::from_args(empty),
        Command::new(""),
        marked().arg("a\0b"),
        marked().env("", "x"),
        marked().env("A=B", "x"),
        marked().env("A", "x\0"),
        marked().user(""),
        marked().timeout(zero),
        marked().idle_timeout(zero),
        marked().tty(crate::TtySize::new(24, 80)),
    ] {
        let text = format!("{command:?}");
        let result = at.ws().exec(command).await;
        assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{text} gave {result:?}");
    }
    assert_error!(at.ws().exec(marked().dir("a\0b")).await, Error::InvalidPath { .. });
    assert_eq!(at.done("ls -A").await, "", "nothing ran");
}

/// A token that is cancelled already starts nothing.
pub async fn a_cancelled_token_refuses_before_anything_starts(at: &Place) {
    let token = crate::CancellationToken::new();
    token.cancel();
    assert_error!(at.ws().exec(at.sh("echo > ran").cancel(token)).await, Error::Cancelled);
    assert_eq!(at.done("ls -A").await, "", "nothing ran");
}
