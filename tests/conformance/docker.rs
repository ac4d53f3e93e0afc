//! The engine's own command line, as a way to containers that is independent of the code under test.

use std::process::{Output, Stdio};

use tokio::process::Command;

/// Runs `docker` with these arguments and this input.
pub(crate) async fn run(arguments: &[&str], input: &[u8]) -> Output {
    use tokio::io::AsyncWriteExt as _;
    let mut command = Command::new("docker");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("the docker command line; see `make engine`");
    let mut stdin = child.stdin.take().expect("a pipe");
    let fed = async move { stdin.write_all(input).await };
    let (fed, output) = tokio::join!(fed, child.wait_with_output());
    let output = output.expect("an output");
    assert!(fed.is_ok() || !output.status.success(), "docker {arguments:?} did not read its input");
    output
}

/// As [`run`], for what must succeed; gives what was printed.
pub(crate) async fn must(arguments: &[&str], input: &[u8]) -> String {
    let output = run(arguments, input).await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "docker {arguments:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// How many processes of a container have `marker` among their arguments; none when it is gone.
pub(crate) async fn alive(container: &str, marker: &str) -> usize {
    let output = run(&["top", container, "-eo", "pid,args"], b"").await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The last one is of a container that ends while it is asked.
    let gone = ["No such container", "is not running", "removal of container", "ttrpc: closed"];
    if !output.status.success() {
        assert!(gone.iter().any(|text| err.contains(text)), "docker top {container}: {err}");
        return 0;
    }
    out.lines().filter(|line| line.contains(marker)).count()
}

/// Containers, volumes and networks that the process `pid` owns, as lines for a report.
pub(crate) fn owned_by(pid: u32) -> Vec<String> {
    let filter = format!("label=agentworkspace.owner.pid={pid}");
    let lists = [
        ("container", vec!["ps", "-aq"]),
        ("volume", vec!["volume", "ls", "-q"]),
        ("network", vec!["network", "ls", "-q"]),
    ];
    let mut found = Vec::new();
    for (kind, arguments) in lists {
        let output =
            std::process::Command::new("docker").args(arguments).args(["--filter", &filter]).output();
        // Without an engine nothing was made in one.
        let Ok(output) = output else { continue };
        found.extend(String::from_utf8_lossy(&output.stdout).lines().map(|id| format!("{kind} {id}")));
    }
    found
}
