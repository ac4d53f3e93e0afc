//! What `exec` promises.

use std::time::{Duration, Instant};

use super::test_support::{Place, needs_root, output, running};
use crate::CancellationToken;
use crate::command::{Command, Leftovers};
use crate::environment::Environment;
use crate::error::{Error, SpawnErrorKind};
use crate::eventually::eventually;
use crate::files::Content;
use crate::output::{End, OutputChunk, output_channel};
use crate::signal::Signal;

#[tokio::test]
async fn a_command_reports_its_end_and_both_streams() {
    let place = Place::new();
    for (script, end, stdout, stderr) in [
        ("echo out; echo err >&2", End::Exited(0), "out\n", "err\n"),
        ("exit 7", End::Exited(7), "", ""),
        ("kill -KILL $$", End::Signaled(Signal::KILL), "", ""),
        ("kill -TERM $$", End::Signaled(Signal::TERM), "", ""),
        ("cat", End::Exited(0), "", ""),
        ("printf '%s' \"$A\"", End::Exited(0), "workspace", ""),
        ("cd sub && basename \"$PWD\"", End::Exited(0), "sub\n", ""),
        ("yes | head -n 1", End::Exited(0), "y\n", ""),
    ] {
        let result = place.exec(Command::shell(script)).await.unwrap();
        assert_eq!(result.end, end, "{script}: {result:?}");
        assert_eq!((&*output(&result.stdout), &*output(&result.stderr)), (stdout, stderr), "{script}");
        assert!(!result.output_detached, "{script}");
    }
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let place = Place::new();
    let result = place.exec(Command::new("/usr/bin/env").env("A", "later").env("B", "x=y")).await.unwrap();
    let text = output(&result.stdout);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["A=later", "B=x=y", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_command_starts_in_its_own_session_with_default_signals_and_no_other_descriptors() {
    let place = Place::new();
    let script = "ls -1 /proc/self/fd | wc -l; cat /proc/self/stat; grep -E '^Sig(Blk|Ign)' /proc/self/status; \
                  cut -d' ' -f1,5,6 /proc/$$/stat";
    let result = place.exec(Command::shell(script)).await.unwrap();
    let text = output(&result.stdout);
    let lines: Vec<&str> = text.lines().collect();
    // The three streams and the one that `ls` opens.
    assert_eq!(lines[0], "4", "{text}");
    for mask in &lines[2..4] {
        assert!(mask.ends_with("\t0000000000000000"), "{text}");
    }
    let ids: Vec<&str> = lines[4].split(' ').collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "pid, group and session differ: {text}");
}

#[tokio::test]
async fn a_program_is_found_in_the_commands_own_path() {
    let place = Place::new();
    place.script("sub/tool", "#!/bin/sh\necho found\n");
    let absolute = place.path().join("sub");
    let path = format!("/nonexistent:{}", absolute.display());
    for command in [
        Command::new("tool").env("PATH", path),
        Command::new("tool").env("PATH", "sub"),
        Command::new("sub/tool"),
        Command::new("./sub/tool"),
    ] {
        let line = command.to_string();
        assert_eq!(output(&place.exec(command).await.unwrap().stdout), "found\n", "{line}");
    }
    for command in [Command::new("tool"), Command::new("sh").env("PATH", "")] {
        assert_eq!(place.spawn_error(command).await, SpawnErrorKind::NotFound);
    }
    let bare = place.processes.exec(place.dir(), &Environment::empty(), Command::new("sh")).await;
    assert!(matches!(bare, Err(Error::Spawn { kind: SpawnErrorKind::NotFound, .. })), "{bare:?}");
}

#[tokio::test]
async fn what_cannot_be_started_is_told_apart() {
    let place = Place::new();
    place.script("no-interpreter", "#!/nonexistent/sh\n");
    place.script("no-format", "echo a shell must not run this\n");
    std::fs::write(place.path().join("plain"), "x").unwrap();
    for (command, kind) in [
        (Command::new("missing"), SpawnErrorKind::NotFound),
        (Command::new("./missing"), SpawnErrorKind::NotFound),
        (Command::new("./plain/x"), SpawnErrorKind::NotFound),
        (Command::new("./no-interpreter"), SpawnErrorKind::NotFound),
        (Command::new("./no-format"), SpawnErrorKind::NotExecutable),
        (Command::new("./plain"), SpawnErrorKind::NotExecutable),
        (Command::new("./sub"), SpawnErrorKind::NotExecutable),
        (Command::new("true").arg("x".repeat(1 << 20)), SpawnErrorKind::ArgumentsTooLong),
        (Command::new("true").user("no such user"), SpawnErrorKind::UnknownUser),
    ] {
        let line = command.program().to_owned();
        assert_eq!(place.spawn_error(command).await, kind, "{line}");
    }
    place.assert_no_children().await;
}

#[tokio::test]
async fn another_user_is_switched_to_with_its_groups_alone() {
    needs_root();
    let place = Place::new();
    place.open_to_all();
    for (user, id) in [("1234:5678", "1234 5678 5678\n"), ("4321", "4321 4321 4321\n"), ("0", "0 0 0\n")] {
        let command = Command::shell("echo $(id -u) $(id -g) $(id -G)").user(user);
        let result = place.exec(command).await.unwrap();
        assert!(output(&result.stdout).starts_with(id.trim_end()), "{user}: {result:?}");
    }
    place.close_to_others();
    assert_eq!(place.spawn_error(Command::new("id").user("1234")).await, SpawnErrorKind::BadDirectory);
}

#[tokio::test]
async fn standard_input_is_fed_while_output_is_read() {
    let place = Place::new();
    let data: Vec<u8> = (0..10 << 20).map(|i: u32| (i % 251) as u8).collect();
    for content in [Content::from(data.clone()), Content::reader(std::io::Cursor::new(data.clone()))] {
        let result = place.exec(Command::new("cat").stdin(content).output_limit(u64::MAX)).await.unwrap();
        assert_eq!(result.end, End::Exited(0));
        assert!(*result.stdout == data[..], "{} bytes came back", result.stdout.len());
    }
}

#[tokio::test]
async fn input_that_nobody_reads_is_discarded() {
    let place = Place::new();
    let endless = Content::reader(tokio::io::repeat(b'x'));
    let result = place.exec(Command::new("true").stdin(endless)).await.unwrap();
    assert_eq!(result.end, End::Exited(0));
    let unread = Command::shell("exec <&-; sleep 0.2; echo done").stdin(vec![0; 1 << 20]);
    assert_eq!(output(&place.exec(unread).await.unwrap().stdout), "done\n");
}

#[tokio::test]
async fn input_that_cannot_be_read_fails_the_command() {
    let place = Place::new();
    let short = Content::sized_reader(&b"abc"[..], 4);
    let result = place.exec(Command::new("cat").stdin(short)).await;
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    place.assert_no_children().await;
}

#[tokio::test]
async fn a_timeout_keeps_the_output_and_ends_a_whole_tree() {
    let place = Place::new();
    let begin = Instant::now();
    let runs = (0..20).map(|index| {
        let marker = place.marker(index);
        let script = format!(
            "echo begun; sleep {marker} & setsid sleep {marker} & \
             (env -i setsid sh -c 'sleep {marker} & exec sleep {marker}' &) ; sleep {marker}"
        );
        place.exec(Command::shell(script).timeout(Duration::from_secs(1)))
    });
    for result in futures::future::join_all(runs).await {
        let result = result.unwrap();
        assert_eq!((result.end, result.exit_code, result.timed_out), (End::TimedOut, -1, true));
        assert_eq!(output(&result.stdout), "begun\n");
    }
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    for index in 0..20 {
        let marker = place.marker(index);
        eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
    }
    place.assert_no_children().await;
}

#[tokio::test]
async fn silence_ends_a_command_and_output_does_not() {
    let place = Place::new();
    let idle = Duration::from_millis(600);
    let talking = Command::shell("for i in 1 2 3 4 5; do echo $i >&2; sleep 0.3; done").idle_timeout(idle);
    assert_eq!(place.exec(talking).await.unwrap().end, End::Exited(0));
    let silent = place.exec(Command::shell("echo a; sleep 60").idle_timeout(idle)).await.unwrap();
    assert_eq!((silent.end, silent.timed_out), (End::IdleTimedOut, true));
    assert_eq!(output(&silent.stdout), "a\n");
}

#[tokio::test]
async fn a_grace_lets_a_command_end_itself() {
    let place = Place::new();
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let command = Command::shell(script).timeout(Duration::from_millis(500));
    let result = place.exec(command.kill_grace(Duration::from_secs(5))).await.unwrap();
    assert_eq!(result.end, End::TimedOut);
    assert_eq!(output(&result.stdout), "ready\nbye\n");
    let stubborn = Command::shell("trap '' TERM; sleep 60 & wait").timeout(Duration::from_millis(300));
    let begin = Instant::now();
    let result = place.exec(stubborn.kill_grace(Duration::from_millis(300))).await.unwrap();
    assert_eq!(result.end, End::TimedOut);
    assert!(begin.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_cancelled_command_is_ended() {
    let place = Place::new();
    let token = CancellationToken::new();
    let marker = place.marker(0);
    let run = place.exec(Command::shell(format!("sleep {marker} & wait")).cancel(token.clone()));
    let cancel = async {
        eventually(Duration::from_secs(5), || async { running(&marker) }, |count| *count == 1).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(run, cancel);
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    assert_eq!(running(&marker), 0);
}

#[tokio::test]
async fn dropping_the_future_kills_everything() {
    let place = Place::new();
    let marker = place.marker(0);
    {
        let run = place.exec(Command::shell(format!("setsid sleep {marker} & sleep {marker}")));
        tokio::select! {
            result = run => panic!("it ended: {result:?}"),
            () = eventually(Duration::from_secs(5), || async { running(&marker) }, |count| *count == 2) => {}
        }
    }
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 0).await;
    place.assert_no_children().await;
}

#[tokio::test]
async fn leftovers_live_until_the_workspace_closes() {
    let place = Place::new();
    let marker = place.marker(0);
    let script = format!("sleep {marker} >/dev/null 2>&1 & echo done");
    let result = place.exec(Command::shell(&script)).await.unwrap();
    assert_eq!((result.end, result.output_detached), (End::Exited(0), false));
    eventually(Duration::from_secs(3), || async { running(&marker) }, |count| *count == 1).await;
    let killed = Command::shell(&script).leftovers(Leftovers::Kill);
    place.exec(killed).await.unwrap();
    assert_eq!(running(&marker), 1);
    place.processes.close().await.unwrap();
    assert_eq!(running(&marker), 0);
    place.processes.close().await.unwrap();
    assert!(matches!(place.exec(Command::new("true")).await, Err(Error::Closed)));
}

#[tokio::test]
async fn output_that_leftovers_hold_open_is_detached() {
    let place = Place::new();
    let begin = Instant::now();
    let script = "(for i in 1 2 3 4 5 6 7; do sleep 0.5; echo late; done; echo end >mark) & echo early";
    let result = place.exec(Command::shell(script)).await.unwrap();
    let took = begin.elapsed();
    assert!(result.output_detached && result.end == End::Exited(0), "{result:?}");
    assert!(output(&result.stdout).starts_with("early\n"));
    assert!(took > Duration::from_millis(1900) && took < Duration::from_secs(4), "{took:?}");
    // What it prints later is read by somebody, or it would have been ended by a broken pipe.
    eventually(Duration::from_secs(10), || async { place.path().join("mark").exists() }, |there| *there)
        .await;
    let killed = Command::shell("sleep 60 & echo early").leftovers(Leftovers::Kill);
    let result = place.exec(killed).await.unwrap();
    assert!(!result.output_detached && output(&result.stdout) == "early\n", "{result:?}");
}

#[tokio::test]
async fn a_long_line_comes_back_exactly() {
    let place = Place::new();
    let script = "head -c 10485760 /dev/zero | tr '\\0' x";
    let result = place.exec(Command::shell(script)).await.unwrap();
    assert_eq!((result.stdout.len(), result.stdout.dropped()), (10 << 20, 0));
    assert!(result.stdout.iter().all(|byte| *byte == b'x'));
}

#[tokio::test]
async fn a_flood_is_cut_and_counted() {
    let place = Place::new();
    let command = Command::new("yes").timeout(Duration::from_secs(1)).output_limit(1000);
    let result = place.exec(command).await.unwrap();
    assert_eq!((result.end, result.stdout.len()), (End::TimedOut, 1000));
    assert!(result.stdout.dropped() > 1 << 20, "{}", result.stdout.dropped());
}

#[tokio::test]
async fn output_is_streamed_and_then_not_kept() {
    let place = Place::new();
    let (sink, mut receiver) = output_channel();
    let read = async {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some(chunk) = receiver.recv().await {
            match chunk {
                OutputChunk::Stdout(bytes) => out.extend(bytes),
                OutputChunk::Stderr(bytes) => err.extend(bytes),
            }
        }
        (out, err)
    };
    let run = place.exec(Command::shell("echo out; echo err >&2").stream(sink));
    let (result, (out, err)) = tokio::join!(run, read);
    assert!(result.unwrap().stdout.is_empty());
    assert_eq!((&*out, &*err), (&b"out\n"[..], &b"err\n"[..]));
}

#[tokio::test]
async fn a_timeout_is_kept_while_nobody_reads_the_stream() {
    let place = Place::new();
    let (sink, receiver) = output_channel();
    let begin = Instant::now();
    let command = Command::new("yes").stream(sink).timeout(Duration::from_secs(1));
    // The silence is the reader's, so that only the other timeout may pass.
    let command = command.idle_timeout(Duration::from_millis(300));
    assert_eq!(place.exec(command).await.unwrap().end, End::TimedOut);
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    drop(receiver);
}

#[tokio::test]
async fn closing_the_workspace_ends_a_command_in_flight() {
    let place = Place::new();
    let marker = place.marker(0);
    let run = place.exec(Command::new("sleep").arg(&marker));
    let close = async {
        eventually(Duration::from_secs(5), || async { running(&marker) }, |count| *count == 1).await;
        place.processes.close().await.unwrap();
        assert_eq!(running(&marker), 0);
    };
    let (result, ()) = tokio::join!(run, close);
    assert!(matches!(result, Err(Error::Closed)), "{result:?}");
}

#[tokio::test]
async fn a_chunk_that_waits_for_its_reader_at_the_exit_is_not_lost() {
    let place = Place::new();
    let (sink, mut receiver) = output_channel();
    // More chunks than a channel holds, each printed on its own so that they are not read as one.
    let script =
        "echo $$ > pid; i=0; while [ $i -lt 100 ]; do echo $i; sleep 0.01; i=$((i+1)); done; : > done";
    let run = place.exec(Command::shell(script).stream(sink));
    let read = async {
        let pid = || std::fs::read_to_string(place.path().join("pid")).unwrap_or_default();
        let exited = || !std::path::Path::new("/proc").join(pid().trim()).exists();
        let over = || async { place.path().join("done").exists() && exited() };
        eventually(Duration::from_secs(20), over, |over| *over).await;
        // By the time this one has ended, the end of the first was told.
        place.exec(Command::new("true")).await.unwrap();
        let mut text = String::new();
        while let Some(chunk) = receiver.recv().await {
            text.push_str(std::str::from_utf8(chunk.bytes()).unwrap());
        }
        text
    };
    let (result, text) = tokio::join!(run, read);
    assert_eq!(result.unwrap().end, End::Exited(0));
    assert_eq!(text, (0..100).map(|i| format!("{i}\n")).collect::<String>());
}
