//! Commands in real containers.

use std::time::{Duration, Instant};

use super::engine::Engine;
use super::exec::exec;
use super::kill::end_everything;
use super::options::AttachOptions;
use super::test_container::{BUSYBOX, DEBIAN, STATIC, TestContainer, docker};
use super::workspace::ContainerWorkspace;
use crate::Workspace as _;
use crate::environment::Environment;
use crate::error::{Error, GoneReason, SpawnErrorKind};
use crate::output::{End, output_channel};
use crate::signal::Signal;
use crate::{CancellationToken, Command, Content, Leftovers, OutputChunk};

/// Waits until `done`, for 5 s at most.
async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn spawn_kind(error: &Error) -> Option<SpawnErrorKind> {
    match error {
        Error::Spawn { kind, .. } => Some(*kind),
        _ => None,
    }
}

#[tokio::test]
async fn commands_end_as_they_ended() {
    for image in [BUSYBOX, DEBIAN] {
        let container = TestContainer::run(image, &[]);
        let shared = container.attach("/tmp").await;
        let cases = [
            ("exit 0", End::Exited(0)),
            ("exit 7", End::Exited(7)),
            ("exit 126", End::Exited(126)),
            ("exit 127", End::Exited(127)),
            ("kill -9 $$", End::Signaled(Signal::KILL)),
            ("kill -15 $$", End::Signaled(Signal::TERM)),
            ("kill -11 $$", End::Signaled(Signal::new(11).unwrap())),
        ];
        for (script, end) in cases {
            let output = exec(&shared, Command::shell(script)).await.unwrap();
            assert_eq!(output.end, end, "{image}: {script}");
        }
        let output = exec(&shared, Command::shell("echo out; echo err >&2; pwd")).await.unwrap();
        assert_eq!(output.stdout.to_text(), "out\n/tmp\n");
        assert_eq!(output.stderr.to_text(), "err\n");
        // What engines print for a start that failed, printed by a program.
        let lie = "echo 'OCI runtime exec failed: exec failed: not found'; exit 126";
        assert_eq!(exec(&shared, Command::shell(lie)).await.unwrap().end, End::Exited(126));
    }
}

#[tokio::test]
async fn the_environment_is_what_was_asked_for() {
    let container = TestContainer::run(DEBIAN, &["-e", "FROM_IMAGE=1", "-e", "odd-name=2"]);
    let options = AttachOptions::default().root("/tmp").clear_env(true);
    let env: Environment = [("PATH", "/usr/bin:/bin"), ("A", "b c")].into_iter().collect();
    let shared = container.attach_with(options.env(env)).await;
    let output = exec(&shared, Command::new("env").env("A", "later\nline").env("HOME", "/h")).await.unwrap();
    let text = output.stdout.to_text();
    let mut lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("AGENTWORKSPACE_EXEC=")).collect();
    lines.sort_unstable();
    lines.retain(|line| !line.starts_with("HOSTNAME="));
    assert_eq!(lines, ["A=later", "HOME=/h", "PATH=/usr/bin:/bin", "line"], "{text}");

    let shared = container.attach("/tmp").await;
    let output = exec(&shared, Command::new("env").env("x.y", "3").env("PWD", "/nowhere")).await.unwrap();
    for line in ["FROM_IMAGE=1", "odd-name=2", "x.y=3", "PWD=/nowhere"] {
        assert!(output.stdout.to_text().lines().any(|have| have == line), "{line}: {output:?}");
    }
}

#[tokio::test]
async fn a_directory_is_entered_only_inside_the_root() {
    for image in [BUSYBOX, DEBIAN] {
        let container = TestContainer::run(image, &[]);
        let shared = container.attach("/tmp").await;
        let tree = "mkdir -p r/a/b; ln -s a/b r/in; ln -s /tmp/r/a r/abs; ln -s ../../etc r/out; touch r/file; \
                    ln -s loop r/loop; mkdir 'r/sp ace'";
        assert!(exec(&shared, Command::shell(tree)).await.unwrap().success());
        let shared = container.attach("/tmp/r").await;
        for (dir, pwd) in
            [("", "/tmp/r"), ("a/b", "/tmp/r/a/b"), ("in", "/tmp/r/a/b"), ("sp ace", "/tmp/r/sp ace")]
        {
            let output = exec(&shared, Command::new("/bin/pwd").dir(dir)).await.unwrap();
            assert_eq!(output.stdout.to_text(), format!("{pwd}\n"), "{dir}");
        }
        for dir in ["abs", "out", "in/../../../..", "../x"] {
            let error = exec(&shared, Command::new("pwd").dir(dir)).await.unwrap_err();
            assert!(error.is_outside(), "{dir}: {error:?}");
        }
        for dir in ["missing", "file", "loop", "a/missing"] {
            let error = exec(&shared, Command::new("pwd").dir(dir)).await.unwrap_err();
            assert_eq!(spawn_kind(&error), Some(SpawnErrorKind::BadDirectory), "{dir}: {error:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    for image in [BUSYBOX, DEBIAN] {
        let container = TestContainer::run(image, &[]);
        let shared = container.attach("/tmp").await;
        let files =
            "echo text > plain; echo x > odd; chmod +x odd; printf '#!/nope\\n' > orphan; chmod +x orphan";
        assert!(exec(&shared, Command::shell(files)).await.unwrap().success());
        let cases = [
            (Command::new("no-such-program"), SpawnErrorKind::NotFound),
            (Command::new("/no/such/program"), SpawnErrorKind::NotFound),
            (Command::new("./orphan"), SpawnErrorKind::NotFound),
            (Command::new("./plain"), SpawnErrorKind::NotExecutable),
            (Command::new("./odd"), SpawnErrorKind::NotExecutable),
            (Command::new("/etc"), SpawnErrorKind::NotExecutable),
            (Command::new("true").user("nobody-here"), SpawnErrorKind::UnknownUser),
            (Command::new("true").arg("x".repeat(131_072)), SpawnErrorKind::ArgumentsTooLong),
            (Command::new("true").args(vec!["x".repeat(100_000); 30]), SpawnErrorKind::ArgumentsTooLong),
        ];
        for (command, kind) in cases {
            let name = command.program().to_owned();
            let error = exec(&shared, command).await.unwrap_err();
            assert_eq!(spawn_kind(&error), Some(kind), "{image} {name}: {error:?}");
        }
        let long = Command::new("true").arg("x".repeat(131_071)).args(vec!["y".repeat(100_000); 15]);
        assert!(exec(&shared, long).await.unwrap().success());
    }
}

#[tokio::test]
async fn an_image_without_a_shell_runs_commands() {
    let container = TestContainer::run(STATIC, &["-e", "A=1"]);
    let shared = container.attach("/").await;
    let run = |args: &[&str]| exec(&shared, Command::from_args(args.iter().copied()));
    assert_eq!(run(&["/busybox", "echo", "hi"]).await.unwrap().stdout.to_text(), "hi\n");
    assert_eq!(run(&["/busybox", "sh", "-c", "exit 126"]).await.unwrap().end, End::Exited(126));
    let error = run(&["/nope"]).await.unwrap_err();
    assert_eq!(spawn_kind(&error), Some(SpawnErrorKind::NotFound), "{error:?}");
    let error = run(&["/etc"]).await.unwrap_err();
    assert_eq!(spawn_kind(&error), Some(SpawnErrorKind::NotExecutable), "{error:?}");
    let stdin = exec(&shared, Command::from_args(["/busybox", "wc", "-c"]).stdin("12345")).await.unwrap();
    assert_eq!(stdin.stdout.to_text().trim(), "5");
    let timeout = Command::new("/busybox").timeout(Duration::from_secs(1));
    assert!(exec(&shared, timeout).await.unwrap_err().is_unsupported());
}

#[tokio::test]
async fn closing_says_when_a_command_without_a_shell_runs_on() {
    let container = TestContainer::run(STATIC, &[]);
    let engine = Engine::connect().await.unwrap();
    let workspace =
        ContainerWorkspace::attach(&engine, &container.id, AttachOptions::default()).await.unwrap();
    let command =
        Command::from_args(["/busybox", "sh", "-c", "until [ -e /over ]; do /busybox sleep 1; done"]);
    let dropped = tokio::time::timeout(Duration::from_secs(2), exec(workspace.shared(), command)).await;
    assert!(dropped.is_err());
    assert!(workspace.close().await.unwrap_err().is_unsupported());
    docker(&["exec", &container.id, "/busybox", "sh", "-c", ": > /over"]);
    let deadline = Instant::now() + Duration::from_secs(5);
    while let Err(error) = workspace.close().await {
        assert!(Instant::now() < deadline, "{error}");
    }
}

#[tokio::test]
async fn a_named_user_keeps_its_supplementary_groups() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let accounts = "echo logger:x:1001:1002::/:/bin/sh >> /etc/passwd; echo own:x:1002: >> /etc/group; \
                    echo logs:x:1040:other,logger >> /etc/group";
    docker(&["exec", "-u", "0", &container.id, "sh", "-c", accounts]);
    let id = Command::from_args(["id", "-G"]);
    let shared = container.attach_with(AttachOptions::default().user("logger")).await;
    assert_eq!(exec(&shared, id).await.unwrap().stdout.to_text(), "1002 1040\n");
    for (user, groups) in
        [("logger", "1002 1040"), ("1001", "1002 1040"), ("logger:1002", "1002"), ("7", "7")]
    {
        let id = Command::from_args(["id", "-G"]).user(user);
        assert_eq!(exec(&shared, id).await.unwrap().stdout.to_text().trim(), groups, "{user}");
    }
}

/// Leaves a child, a child in another session and a grandchild without a parent.
const FAMILY: &str = "sleep 1001 & setsid sleep 1002 & (setsid sh -c 'sleep 1003 & sleep 1004' &) ; \
                      env -i sleep 1005 & sleep 1006";

#[tokio::test]
async fn a_timeout_ends_the_whole_family() {
    for image in [BUSYBOX, DEBIAN] {
        let container = TestContainer::run(image, &[]);
        let shared = container.attach("/tmp").await;
        let began = Instant::now();
        let commands = (0..20).map(|_| {
            exec(&shared, Command::shell(format!("echo start; {FAMILY}")).timeout(Duration::from_secs(1)))
        });
        for output in futures::future::join_all(commands).await {
            let output = output.unwrap();
            assert_eq!(output.end, End::TimedOut);
            assert_eq!(output.stdout.to_text(), "start\n");
        }
        println!("{image}: 20 timeouts in {:?}", began.elapsed());
        assert_eq!(container.processes(), [""; 0]);
        let alone = Instant::now();
        let output = exec(&shared, Command::shell(FAMILY).timeout(Duration::from_secs(1))).await.unwrap();
        assert!(output.timed_out && alone.elapsed() < Duration::from_secs(3), "{:?}", alone.elapsed());
        let hidden = Command::from_args(["env", "-i", "sleep", "1007"]).timeout(Duration::from_secs(1));
        assert_eq!(exec(&shared, hidden).await.unwrap().end, End::TimedOut);
        assert_eq!(container.processes(), [""; 0]);
        assert!(exec(&shared, Command::new("true")).await.unwrap().success());
    }
}

#[tokio::test]
async fn a_grace_lets_a_command_say_goodbye() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let polite = Command::shell("trap 'echo bye; exit 0' TERM; sleep 1000 & wait")
        .timeout(Duration::from_secs(1))
        .kill_grace(Duration::from_secs(5));
    let output = exec(&shared, polite).await.unwrap();
    assert_eq!((output.end, output.stdout.to_text().as_str()), (End::TimedOut, "bye\n"));
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn dropping_or_cancelling_ends_a_command() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    drop(tokio::time::timeout(Duration::from_millis(700), exec(&shared, Command::shell(FAMILY))).await);
    eventually("a dropped command lives", || container.processes().is_empty()).await;
    // Dropped before the engine has a process.
    for millis in [1, 5, 20] {
        drop(
            tokio::time::timeout(Duration::from_millis(millis), exec(&shared, Command::shell(FAMILY))).await,
        );
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    eventually("an early dropped command lives", || container.processes().is_empty()).await;
    let token = CancellationToken::new();
    let run = exec(&shared, Command::shell(FAMILY).cancel(token.clone()));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(run, cancel);
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn many_dropped_commands_are_ended_at_once() {
    const COUNT: usize = 24;
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let commands = (0..COUNT).map(|_| exec(&shared, Command::from_args(["sleep", "1008"])));
    let running = async {
        while container.processes().len() < COUNT {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        _ = futures::future::join_all(commands) => panic!("they do not end by themselves"),
        started = tokio::time::timeout(Duration::from_secs(60), running) => started.unwrap(),
    }
    shared.execs.tasks.close();
    tokio::time::timeout(Duration::from_secs(30), shared.execs.tasks.wait()).await.unwrap();
    assert_eq!(container.processes(), [""; 0]);
    let id = format!("container={}", container.id);
    let now = docker(&["info", "-f", "{{.SystemTime}}"]);
    let events =
        docker(&["events", "--since", "10m", "--until", &now, "--filter", &id, "--format", "{{.Action}}"]);
    let execs = events.lines().filter(|action| action.starts_with("exec_create")).count();
    // Engines keep the last events only, so there may be more than they tell.
    assert!(execs < COUNT + COUNT / 2, "{execs} execs for {COUNT} commands and their end");
}

#[test]
fn dropping_outside_of_a_runtime_ends_a_command() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let shared = runtime.block_on(container.attach("/tmp"));
    let mut run = Box::pin(exec(&shared, Command::shell(FAMILY)));
    runtime.block_on(async {
        drop(tokio::time::timeout(Duration::from_millis(700), &mut run).await);
    });
    drop(runtime);
    drop(run);
    let deadline = Instant::now() + Duration::from_secs(5);
    while !container.processes().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", container.processes());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn leftovers_are_kept_or_killed() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let leave = || Command::shell("sleep 1000 >/dev/null 2>&1 &");
    let output = exec(&shared, leave().leftovers(Leftovers::Kill)).await.unwrap();
    assert!(output.success() && !output.output_detached);
    assert_eq!(container.processes(), [""; 0]);
    assert!(exec(&shared, leave()).await.unwrap().success());
    assert_eq!(container.processes().len(), 1);
    let held = exec(&shared, Command::shell("echo a; sleep 1000 &")).await.unwrap();
    assert!(held.success() && held.output_detached, "{held:?}");
    assert_eq!(held.stdout.to_text(), "a\n");
    let slow = exec(&shared, Command::shell("sleep 3; echo b")).await.unwrap();
    assert!(!slow.output_detached);
    end_everything(&shared).await.unwrap();
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn input_and_output_of_any_size_pass() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let five = vec![b'x'; 5_000_000];
    let output = exec(&shared, Command::from_args(["wc", "-c"]).stdin(five.clone())).await.unwrap();
    assert_eq!(output.stdout.to_text().trim(), "5000000");
    let began = Instant::now();
    assert!(exec(&shared, Command::new("true").stdin(vec![0; 20_000_000])).await.unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(3));
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let output = exec(&shared, Command::new("cat").stdin(binary.clone())).await.unwrap();
    assert!(*output.stdout == binary[..]);
    let output = exec(&shared, Command::shell("cat >&2; echo done").stdin(Content::from(binary.clone())))
        .await
        .unwrap();
    assert!(*output.stderr == binary[..]);
    let line = exec(&shared, Command::shell("head -c 10485760 /dev/zero | tr '\\0' a; echo")).await.unwrap();
    assert_eq!((line.stdout.len(), line.stdout.dropped()), (10_485_761, 0));
    let flood = Command::shell("head -c 50000000 /dev/zero; echo end").output_limit(1000);
    let output = exec(&shared, flood).await.unwrap();
    assert_eq!((output.stdout.len(), output.stdout.dropped()), (1000, 50_000_004 - 1000));
    assert!(output.stdout.ends_with(b"end\n"));
}

#[tokio::test]
async fn output_streams_and_silence_is_noticed() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let (sink, mut receiver) = output_channel();
    let run = exec(&shared, Command::shell("echo a; echo b >&2; sleep 1; echo c").stream(sink));
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
    let (output, (out, err)) = tokio::join!(run, read);
    assert!(output.unwrap().stdout.is_empty());
    assert_eq!((out.as_slice(), err.as_slice()), (&b"a\nc\n"[..], &b"b\n"[..]));
    let silent = Command::shell("echo a; sleep 0.5; echo b; sleep 1000").idle_timeout(Duration::from_secs(1));
    let output = exec(&shared, silent).await.unwrap();
    assert_eq!((output.end, output.stdout.to_text().as_str()), (End::IdleTimedOut, "a\nb\n"));
    assert_eq!(container.processes(), [""; 0]);
}

#[tokio::test]
async fn two_hundred_commands_at_once_are_all_right() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let began = Instant::now();
    let commands = (0..200).map(|n| exec(&shared, Command::shell(format!("echo {n}; exit {}", n % 100))));
    for (n, output) in futures::future::join_all(commands).await.into_iter().enumerate() {
        let output = output.unwrap();
        assert_eq!((output.stdout.to_text(), output.exit_code), (format!("{n}\n"), n as i32 % 100));
    }
    println!("200 commands in {:?}", began.elapsed());
}

#[tokio::test]
async fn a_container_that_dies_is_gone_and_not_an_exit_status() {
    for signal in ["KILL", "TERM"] {
        let container = TestContainer::run(BUSYBOX, &[]);
        let shared = container.attach("/tmp").await;
        let run = exec(&shared, Command::shell("echo a; sleep 1000"));
        let kill = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            docker(&["kill", "-s", signal, &container.id]);
        };
        let (result, ()) = tokio::join!(run, kill);
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{signal}: {error:?}");
        assert!(matches!(exec(&shared, Command::new("true")).await, Err(Error::Gone { .. })));
    }
}

#[tokio::test]
async fn a_lack_of_memory_is_told_apart() {
    let container = TestContainer::run(DEBIAN, &["-m", "64m", "--memory-swap", "64m"]);
    let shared = container.attach("/tmp").await;
    let output = exec(&shared, Command::from_args(["tail", "/dev/zero"])).await.unwrap();
    assert_eq!(output.end, End::OutOfMemory, "{output:?}");
    let output = exec(&shared, Command::shell("kill -9 $$")).await.unwrap();
    assert_eq!(output.end, End::Signaled(Signal::KILL));
}

#[tokio::test]
async fn a_paused_container_is_waited_for_and_then_gone() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    docker(&["pause", &container.id]);
    let resume = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        docker(&["unpause", &container.id]);
    };
    let (output, ()) = tokio::join!(exec(&shared, Command::new("true")), resume);
    assert!(output.unwrap().success());
    docker(&["pause", &container.id]);
    let error = exec(&shared, Command::new("true")).await.unwrap_err();
    docker(&["unpause", &container.id]);
    assert!(matches!(error, Error::Gone { why: GoneReason::ContainerPaused }), "{error:?}");
}

#[tokio::test]
async fn users_are_numbers_names_and_pairs() {
    let container = TestContainer::run(DEBIAN, &[]);
    let shared = container.attach("/tmp").await;
    for (user, ids) in [("daemon", "1:1"), ("1", "1:1"), ("1000:1001", "1000:1001"), ("4711", "4711:4711")] {
        let output = exec(&shared, Command::shell("echo $(id -u):$(id -g)").user(user)).await.unwrap();
        assert_eq!(output.stdout.to_text().trim(), ids, "{user}");
    }
    let timeout = Command::shell(FAMILY).user("1000:1000").timeout(Duration::from_secs(1));
    assert_eq!(exec(&shared, timeout).await.unwrap().end, End::TimedOut);
    assert_eq!(container.processes(), [""; 0]);
}

/// Prints medians beside those of the engine's own command line; run by name with `--ignored`.
#[tokio::test]
#[ignore = "measures"]
async fn time_of_a_command() {
    let container = TestContainer::run(BUSYBOX, &[]);
    let shared = container.attach("/tmp").await;
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let began = Instant::now();
        exec(&shared, Command::new("true")).await.unwrap();
        ours.push(began.elapsed());
        let began = Instant::now();
        docker(&["exec", &container.id, "true"]);
        theirs.push(began.elapsed());
    }
    println!("exec of true: ours {:?}, docker exec {:?}", median(ours), median(theirs));
}
