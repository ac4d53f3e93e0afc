//! Started processes: talking to them, waiting for them, signalling them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::place::{Must as _, Place, assert_error};
use crate::{Command, End, Error, Process, Signal, output_channel, start};

cases!("process" {
    a_conversation_ends_with_end_of_file [Start];
    the_end_of_input_is_seen_when_it_is_dropped_or_shut_down [Start];
    directory_and_environment_are_those_of_the_command [Start];
    standard_error_is_complete_when_wait_returns [Start];
    standard_error_goes_nowhere_without_a_sink [Start];
    a_sink_that_is_dropped_never_blocks_the_process [Start];
    any_number_of_callers_wait_for_the_same_end [Start];
    pipes_can_be_used_from_other_tasks [Start];
    a_megabyte_and_a_half_is_echoed [Start];
    output_is_read_after_the_exit [Start];
    a_signal_ends_it_and_is_named [Start];
    signals_reach_everything_it_started [Start];
    a_process_can_be_stopped_and_continued [Start];
    a_process_that_has_exited_is_done [Start];
    impossible_starts_are_refused [Start];
});

/// Starts a command that must start.
pub(super) async fn started(at: &Place, command: Command) -> Process {
    let text = command.to_string();
    start(at.ws(), command).await.must(&format!("start {text}"))
}

/// Waits for the end, which must come soon.
pub(super) async fn ended(process: &Process) -> End {
    let end = tokio::time::timeout(Duration::from_secs(30), process.wait()).await;
    end.must("end in time").must("wait")
}

/// Everything on standard output, to its end.
pub(super) async fn output(process: &mut Process) -> String {
    let mut text = Vec::new();
    let Some(stdout) = process.stdout() else { panic!("standard output was taken") };
    let read = tokio::time::timeout(Duration::from_secs(30), stdout.read_to_end(&mut text)).await;
    read.must("reach the end of the output in time").must("read output");
    String::from_utf8_lossy(&text).into_owned()
}

/// Waits for the first line of output.
pub(super) async fn first_line(process: &mut Process) -> String {
    let mut line = Vec::new();
    let Some(stdout) = process.stdout() else { panic!("standard output was taken") };
    while !line.ends_with(b"\n") {
        let byte = tokio::time::timeout(Duration::from_secs(30), stdout.read_u8()).await;
        line.push(byte.must("print a line in time").must("read a line"));
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// Lines go in, lines come out, and when the input is closed the process ends by itself.
pub async fn a_conversation_ends_with_end_of_file(at: &Place) {
    let mut process = started(at, at.sh("while read -r line; do echo \"got $line\"; done; echo bye")).await;
    for word in ["one", "two", "three"] {
        let Some(stdin) = process.stdin() else { panic!("standard input is there") };
        stdin.write_all(format!("{word}\n").as_bytes()).await.must("write");
        stdin.flush().await.must("flush");
        assert_eq!(first_line(&mut process).await, format!("got {word}\n"));
    }
    drop(process.take_stdin());
    assert!(process.stdin().is_none() && process.take_stdin().is_none(), "it was taken");
    assert_eq!(output(&mut process).await, "bye\n");
    assert_eq!(ended(&process).await, End::Exited(0));
}

/// Either is end of file.
pub async fn the_end_of_input_is_seen_when_it_is_dropped_or_shut_down(at: &Place) {
    for shut_down in [true, false] {
        let mut process = started(at, at.program("cat", [])).await;
        let Some(mut stdin) = process.take_stdin() else { panic!("standard input is there") };
        stdin.write_all(b"all").await.must("write");
        if shut_down {
            stdin.shutdown().await.must("shut down");
            let error = stdin.write_all(b"more").await.expect_err("it is closed");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        } else {
            drop(stdin);
        }
        assert_eq!(output(&mut process).await, "all");
        assert_eq!(ended(&process).await, End::Exited(0));
    }
}

/// As for `exec`.
pub async fn directory_and_environment_are_those_of_the_command(at: &Place) {
    at.done("mkdir -p a/b").await;
    let mut process = started(at, at.sh("pwd; echo $WORD; exit 3").dir("a/../a/b").env("WORD", "said")).await;
    assert_eq!(output(&mut process).await, format!("{}\nsaid\n", at.absolute("a/b")));
    assert_eq!(ended(&process).await, End::Exited(3));
}

/// All of it was passed on by then.
pub async fn standard_error_is_complete_when_wait_returns(at: &Place) {
    let (sink, mut receiver) = output_channel();
    let mut process = started(
        at,
        at.sh("i=0; while [ $i -lt 200 ]; do echo err $i >&2; i=$((i+1)); done; echo out").stream(sink),
    )
    .await;
    let collect = tokio::spawn(async move {
        let mut text = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            text.extend_from_slice(chunk.bytes());
        }
        text
    });
    assert_eq!(output(&mut process).await, "out\n");
    assert_eq!(ended(&process).await, End::Exited(0));
    let collected = tokio::time::timeout(Duration::from_secs(10), collect).await.must("end in time");
    let text = String::from_utf8_lossy(&collected.must("collect")).into_owned();
    assert_eq!(text.lines().count(), 200, "{text}");
    assert!(text.ends_with("err 199\n"), "{text}");
}

/// It is not mixed into standard output and does not fill a pipe.
pub async fn standard_error_goes_nowhere_without_a_sink(at: &Place) {
    let mut process = started(at, at.sh("head -c 1000000 /dev/zero >&2; echo out")).await;
    assert_eq!(output(&mut process).await, "out\n");
    assert_eq!(ended(&process).await, End::Exited(0));
}

/// The copying goes on without it.
pub async fn a_sink_that_is_dropped_never_blocks_the_process(at: &Place) {
    let (sink, receiver) = output_channel();
    let mut process =
        started(at, at.sh("echo out; head -c 9000000 /dev/zero >&2; echo end").stream(sink)).await;
    drop(receiver);
    assert_eq!(output(&mut process).await, "out\nend\n");
    assert_eq!(ended(&process).await, End::Exited(0));
}

/// At the same time, and again later.
pub async fn any_number_of_callers_wait_for_the_same_end(at: &Place) {
    let process = started(at, at.sh("read -r line; exit 9")).await;
    {
        let cancelled = tokio::time::timeout(Duration::from_millis(200), process.wait()).await;
        assert!(cancelled.is_err(), "it still runs, and a dropped wait does not end it");
    }
    let waits = futures::future::join_all((0..10).map(|_| process.wait()));
    let (ends, closed) = tokio::join!(waits, process.close());
    for end in ends {
        assert_eq!(end.must("wait"), End::Exited(9));
    }
    assert_eq!(closed.must("close"), End::Exited(9));
    assert_eq!(ended(&process).await, End::Exited(9));
}

/// One task writes, one reads, a third waits.
pub async fn pipes_can_be_used_from_other_tasks(at: &Place) {
    let mut process = started(at, at.program("cat", [])).await;
    let (stdin, stdout) = (process.take_stdin(), process.take_stdout());
    assert!(process.stdout().is_none());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { panic!("both are there") };
    let writer = tokio::spawn(async move {
        for line in 0..1000 {
            stdin.write_all(format!("{line}\n").as_bytes()).await?;
        }
        io::Result::Ok(())
    });
    let reader = tokio::spawn(async move {
        let mut lines = BufReader::new(stdout).lines();
        let mut count = 0;
        while let Some(line) = lines.next_line().await? {
            assert_eq!(line, count.to_string());
            count += 1;
        }
        io::Result::Ok(count)
    });
    assert_eq!(ended(&process).await, End::Exited(0));
    writer.await.must("join").must("write");
    assert_eq!(reader.await.must("join").must("read"), 1000);
}

/// More than any pipe or frame holds, every byte the same.
pub async fn a_megabyte_and_a_half_is_echoed(at: &Place) {
    let data: Vec<u8> = (0..1_500_000u32).map(|i| (i % 256) as u8).collect();
    let mut process = started(at, at.program("cat", [])).await;
    let Some(mut stdin) = process.take_stdin() else { panic!("standard input is there") };
    let sent = data.clone();
    let writer = tokio::spawn(async move { stdin.write_all(&sent).await });
    let mut back = Vec::new();
    let Some(stdout) = process.stdout() else { panic!("standard output is there") };
    stdout.read_to_end(&mut back).await.must("read");
    writer.await.must("join").must("write");
    assert!(back == data, "{} of {} bytes came back", back.len(), data.len());
    assert_eq!(ended(&process).await, End::Exited(0));
}

/// What was in the pipe is not lost.
pub async fn output_is_read_after_the_exit(at: &Place) {
    let mut process = started(at, at.sh("echo kept; exit 4")).await;
    assert_eq!(ended(&process).await, End::Exited(4));
    assert_eq!(output(&mut process).await, "kept\n");
}

/// That is an end, not an error.
pub async fn a_signal_ends_it_and_is_named(at: &Place) {
    for signal in [Signal::TERM, Signal::KILL, Signal::HUP] {
        let mut process = started(at, at.sh("echo ready; exec sleep 60")).await;
        first_line(&mut process).await;
        process.signal(signal).await.must("signal");
        let end = ended(&process).await;
        assert_eq!((end, end.exit_code()), (End::Signaled(signal), -1));
    }
}

/// Children in sessions of their own and those whose parent is gone as well.
pub async fn signals_reach_everything_it_started(at: &Place) {
    let marker = at.marker();
    let script = format!(
        "sleep {marker} & setsid sleep {marker} & (setsid sleep {marker} &); echo ready; exec sleep {marker}"
    );
    let mut process = started(at, at.sh(script)).await;
    first_line(&mut process).await;
    at.await_alive(&marker, |alive| alive >= 4, Duration::from_secs(10)).await;
    process.signal(Signal::TERM).await.must("signal");
    assert_eq!(ended(&process).await, End::Signaled(Signal::TERM));
    at.await_none(&marker, Duration::from_secs(5)).await;
}

/// SIGSTOP and SIGCONT are signals like any other.
pub async fn a_process_can_be_stopped_and_continued(at: &Place) {
    let mut process =
        started(at, at.sh("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done")).await;
    first_line(&mut process).await;
    process.signal(Signal::STOP).await.must("stop");
    process.signal(Signal::USR1).await.must("signal");
    process.signal(Signal::CONT).await.must("continue");
    assert_eq!(first_line(&mut process).await, "usr1\n");
    process.signal(Signal::KILL).await.must("kill");
    assert_eq!(ended(&process).await, End::Signaled(Signal::KILL));
}

/// After the exit no signal is sent to whoever has its number then.
pub async fn a_process_that_has_exited_is_done(at: &Place) {
    let process = started(at, at.sh("exit 0")).await;
    assert_eq!(ended(&process).await, End::Exited(0));
    assert_error!(process.signal(Signal::TERM).await, Error::ProcessDone);
    assert_eq!(process.close().await.must("close"), End::Exited(0));
    assert_error!(process.signal(Signal::KILL).await, Error::ProcessDone);
}

/// No program, standard input, a directory outside, a cancelled token: nothing starts.
pub async fn impossible_starts_are_refused(at: &Place) {
    at.done(&format!("ln -s {} out", at.site.outside)).await;
    let empty: [&str; 0] = [];
    let marked = || at.sh("echo > ran");
    let refused = async |command| start(at.ws(), command).await;
    assert_error!(refused(Command::from_args(empty)).await, Error::InvalidArgument { .. });
    assert_error!(refused(marked().stdin("x")).await, Error::InvalidArgument { .. });
    assert_error!(refused(marked().timeout(Duration::ZERO)).await, Error::InvalidArgument { .. });
    assert_error!(refused(marked().dir("../")).await, Error::OutsideWorkspace { .. });
    assert_error!(refused(marked().dir("out")).await, Error::OutsideWorkspace { .. });
    let token = crate::CancellationToken::new();
    token.cancel();
    assert_error!(refused(marked().cancel(token)).await, Error::Cancelled);
    assert_eq!(at.done("ls").await, "out\n", "nothing ran");
}
