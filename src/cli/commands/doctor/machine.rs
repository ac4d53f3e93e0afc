//! This machine: what a local workspace needs.

use std::time::Duration;

use agentworkspace::local::LocalWorkspace;
use agentworkspace::{Command, Environment, Workspace as _};

use super::check::Check;

/// How long the smallest command may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks this machine.
pub(crate) async fn checks() -> Vec<Check> {
    vec![kernel(), local().await]
}

fn kernel() -> Check {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let found = format!("{} {release} on {}", uname.sysname().to_string_lossy(), std::env::consts::ARCH);
    // openat2, which confinement rests on, came with 5.6.
    match version(&release) {
        Some(version) if version < (5, 6) => Check::warn(
            "machine",
            found,
            "a kernel from 5.6 on confines file operations faster and more tightly: upgrade it",
        ),
        _ => Check::ok("machine", found),
    }
}

/// Major and minor number at the start of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Runs the smallest command in a workspace of this machine.
async fn local() -> Check {
    const NAME: &str = "local";
    let run = async {
        let workspace = LocalWorkspace::temporary(Environment::from_host_basics())?;
        let output = workspace.exec(Command::shell("exit 7").timeout(PATIENCE)).await;
        workspace.close().await?;
        output
    };
    let mend = "check that the temporary directory (TMPDIR) can be written and /bin/sh can be run";
    match run.await {
        Ok(output) if output.exit_code == 7 => Check::ok(NAME, "commands run in directories of this machine"),
        Ok(output) => Check::fail(NAME, format!("a shell that should exit with 7 {}", output.end), mend),
        Err(error) => Check::fail(NAME, format!("no command runs: {error}"), mend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_versions() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("5.4"), Some((5, 4)));
        assert_eq!(version("x"), None);
    }
}
