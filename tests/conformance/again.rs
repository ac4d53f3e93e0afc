//! Runs one trial in a process of its own.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Set in a process that runs one trial for another.
pub(crate) const CHILD: &str = "AGENTWORKSPACE_CONFORMANCE_CHILD";

/// Whether this process runs one trial for another.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs the trial `name`, as another user if one is given.
pub(crate) fn run(name: &str, user: Option<u32>) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--exact", name, "--test-threads=1"]).env(CHILD, "1").current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().map_err(|error| format!("no process: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && stdout.contains(" 1 passed") {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("in a process of its own ({}):\n{stdout}{stderr}", output.status))
}
