//! `run` and `exec` over directories of this machine: output, statuses, JSON.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ran, command, finish, local, run, run_with_input, wait_for_exit};

fn run_in_fresh(args: &[&str], command: &[&str]) -> Ran {
    run(["run"].iter().chain(args).chain(&["--"]).chain(command))
}

#[test]
fn streams_pass_through_byte_for_byte() {
    let script = r"printf 'out\000\377'; printf 'err' >&2";
    let ran = run_in_fresh(&["-q"], &["sh", "-c", script]).expect(0);
    assert_eq!(ran.stdout, b"out\0\xff");
    assert_eq!(ran.stderr, "err");
}

#[test]
fn a_fresh_directory_is_said_not_to_be_isolated() {
    let ran = run_in_fresh(&[], &["pwd"]).expect(0);
    assert!(ran.stderr.contains("not isolated"), "{ran:?}");
    assert!(!std::path::Path::new(ran.text().trim()).exists(), "{ran:?}");
}

#[test]
fn the_status_tells_how_it_ended() {
    let cases: [(&[&str], &[&str], i32); 9] = [
        (&[], &["true"], 0),
        (&[], &["sh", "-c", "exit 7"], 7),
        (&[], &["sh", "-c", "exit 255"], 255),
        (&[], &["sh", "-c", "kill -TERM $$"], 143),
        (&["--timeout", "200ms"], &["sleep", "60"], 124),
        (&["--idle-timeout", "200ms"], &["sleep", "60"], 124),
        (&["--dir", "missing"], &["true"], 125),
        (&[], &["/etc/passwd"], 126),
        (&[], &["no-such-program"], 127),
    ];
    for (args, command, status) in cases {
        run_in_fresh(args, command).expect(status);
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &["run"][..],
        &["run", "true"],
        &["run", "--memory", "64m", "--", "true"],
        &["run", "--memory", "lots", "--image", "x", "--", "true"],
        &["run", "--image", "x", "--local", ".", "--", "true"],
        &["run", "--timeout", "0", "--", "true"],
        &["run", "--env", "AGENTWORKSPACE_TEST_MISSING", "--", "true"],
        &["run", "--dir", "../x", "--", "true"],
        &["run", "--collect", ".", "--", "true"],
        &["exec", "nowhere", "--", "true"],
        &["read", "local:.", "../x"],
        &["frobnicate"],
    ] {
        let ran = run(args).expect(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("error:"), "{ran:?}");
    }
}

#[test]
fn reserved_targets_are_not_supported() {
    for target in ["http://localhost:1", "https://host", "unix:/run/x", "swarm:image"] {
        let ran = run(["ls", target]).expect(2);
        assert!(ran.stderr.contains("not supported by this version"), "{ran:?}");
    }
}

#[test]
fn arguments_reach_the_command_unchanged() {
    let odd = ["a b", "", "*", "$HOME", "'", "\"", "\\", "-x", "--", "ä\n", ";", "--json"];
    let ran = run_in_fresh(&["-q"], &[&["printf", "%s|"][..], &odd].concat()).expect(0);
    assert_eq!(ran.text(), odd.join("|") + "|");
}

#[test]
fn the_environment_is_what_was_asked_for() {
    let mut child = command(["run", "-q", "-e", "A=1", "-e", "TAKEN", "-e", "B=x=y", "--", "env"]);
    child.env("TAKEN", "from here").env("SECRET_OF_THE_HOST", "1");
    let ran = finish(child, b"").expect(0);
    for line in ["A=1", "TAKEN=from here", "B=x=y"] {
        assert!(ran.text().lines().any(|found| found == line), "{line}: {ran:?}");
    }
    assert!(!ran.text().contains("SECRET_OF_THE_HOST"), "{ran:?}");
}

#[test]
fn standard_input_is_passed_on_only_when_asked() {
    let input = vec![b'x'; 300_000];
    assert_eq!(run_with_input(["run", "-q", "--stdin", "--", "cat"], &input).expect(0).stdout, input);
    assert_eq!(run_with_input(["run", "-q", "--", "cat"], &input).expect(0).stdout, b"");
    run_with_input(["run", "-q", "--stdin", "--", "true"], &input).expect(0);
}

#[test]
fn json_holds_the_whole_result() {
    let ran = run_in_fresh(&["--json"], &["sh", "-c", r"printf 'a\n'; printf '\377' >&2; exit 3"]).expect(3);
    let json = ran.json();
    assert_eq!(json["descriptor"]["kind"], "local");
    assert_eq!(json["descriptor"]["ref"], "");
    assert!(json["descriptor"]["root"].is_string());
    assert_eq!(json["end"], serde_json::json!({"exited": 3}));
    assert_eq!(json["exit_code"], 3);
    assert_eq!(json["timed_out"], false);
    assert_eq!(json["stdout"], "a\n");
    assert_eq!(json["stderr"], serde_json::json!({"base64": "/w=="}));
    assert_eq!(json["dropped"], serde_json::json!({"stdout": 0, "stderr": 0}));
    assert!(json["durations_ms"]["exec"].as_f64().unwrap() > 0.0);
    let durations = &json["durations_ms"];
    let steps = ["open", "exec", "close"].map(|step| durations[step].as_f64().unwrap());
    assert!(durations["total"].as_f64().unwrap() >= steps.iter().sum(), "{durations}");
    assert!(json["details"]["workspace_id"].is_string());
    assert!(json.get("error").is_none());
}

#[test]
fn json_tells_a_timeout_and_a_failure_apart() {
    let json =
        run_in_fresh(&["--json", "--timeout", "200ms"], &["sh", "-c", "echo a; sleep 60"]).expect(124).json();
    assert_eq!(
        (&json["end"], &json["timed_out"], &json["exit_code"]),
        (&"timed_out".into(), &true.into(), &(-1).into())
    );
    assert_eq!(json["stdout"], "a\n");
    let json = run_in_fresh(&["--json"], &["no-such-program"]).expect(127).json();
    assert_eq!((&json["end"], &json["exit_code"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(json["error"]["code"], "spawn");
    let ran = run(["run", "--json", "--local", "/no/such/directory", "--", "true"]).expect(125);
    assert_eq!(ran.json()["error"]["code"], "not_found");
    assert_eq!(ran.json()["descriptor"], serde_json::Value::Null);
}

#[test]
fn json_says_what_was_dropped() {
    let args = ["--json", "--output-limit", "1k"];
    let json = run_in_fresh(&args, &["sh", "-c", "head -c 5000 /dev/zero | tr '\\0' a"]).expect(0).json();
    let kept = json["stdout"].as_str().unwrap().len() as u64;
    assert_eq!(json["dropped"]["stdout"].as_u64().unwrap() + kept, 5000);
    assert_eq!(json["dropped"]["stdout_at"], 512);
}

#[test]
fn a_closed_standard_output_ends_the_command_without_an_error() {
    let mut child =
        command(["run", "-q", "--", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 2];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let status = wait_for_exit(&mut child, Duration::from_secs(10));
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(141), ""));
}

#[test]
fn exec_works_in_a_directory_that_stays() {
    let dir = tempfile::tempdir().unwrap();
    let target = local(dir.path());
    run(["exec", &target, "--dir", ".", "--", "sh", "-c", "mkdir sub && echo 1 > sub/f"]).expect(0);
    assert_eq!(run(["exec", &target, "--dir", "sub", "--", "cat", "f"]).expect(0).text(), "1\n");
    let json = run(["exec", "--json", &target, "--", "false"]).expect(1).json();
    assert_eq!(json["exit_code"], 1);
}

#[test]
fn errors_are_one_line_with_a_hint() {
    let ran = run_in_fresh(&[], &["echo hello"]).expect(127);
    let mut lines = ran.stderr.lines().skip_while(|line| line.starts_with("note:"));
    let error = lines.next().unwrap();
    assert!(
        error.starts_with("error: failed to run the command: `echo hello` could not be started"),
        "{error}"
    );
    assert!(lines.next().unwrap().starts_with("hint: arguments are words of their own"), "{ran:?}");
    assert_eq!(lines.next(), None);
}
