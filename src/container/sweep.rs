//! One run of the script that looks for the processes of commands and signals them.

use std::time::Duration;

use futures::StreamExt as _;

use super::engine::Engine;
use super::plan::no_shell;
use super::raw_exec::RawExec;
use super::shared::{Shared, UserIds};
use crate::error::{Error, Result};
use crate::output::OutputChunk;

const SCRIPT: &str = include_str!("scripts/kill.sh");

/// How long one run of the script may take. It reads a few files a process.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(20);

/// How many processes are told to the script.
const MAX_KNOWN: usize = 1024;

/// More output than the script can have.
const MAX_REPORT: usize = 1024 * 1024;

/// What one run of the script came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    /// The processes that it met last, as `pid:start`.
    pub(crate) left: Vec<String>,
    /// Whether it met any at all.
    pub(crate) met: bool,
}

/// Runs the script once as `user`, for the processes of all commands with these markers.
pub(crate) async fn sweep(
    engine: &Engine,
    shared: &Shared,
    user: UserIds,
    signal: i32,
    markers: &[&str],
    known: &[String],
) -> Result<Swept> {
    let Some(shell) = &shared.shell else { return Err(no_shell("ending a command")) };
    let mut args: Vec<String> = [shell, "-c", SCRIPT, shell].map(str::to_owned).to_vec();
    args.extend([signal.to_string(), markers.join(" ")]);
    // The script finds the rest again by itself; more would not fit into its arguments.
    args.extend(known.iter().take(MAX_KNOWN).cloned());
    let exec = RawExec { args, env: Vec::new(), user: user.to_string(), dir: "/".to_owned(), stdin: false };
    // A pause of our own may take long, and nothing runs in it.
    let _gate = shared.pause_gate.read().await;
    let run = async {
        let asked = shared.execs.asking();
        let mut streams = asked.answered(engine.start_exec(&shared.id, exec).await)?;
        let mut report = Vec::new();
        while let Some(chunk) = streams.output.next().await {
            if let OutputChunk::Stdout(bytes) = chunk?
                && report.len() < MAX_REPORT
            {
                report.extend_from_slice(&bytes);
            }
        }
        shared.execs.note_ended(&streams.id);
        Ok(report)
    };
    let report = tokio::time::timeout(SWEEP_TIMEOUT, run).await.map_err(|_| Error::Timeout {
        operation: "looking for the processes of a command".to_owned(),
        after: SWEEP_TIMEOUT,
    })??;
    parse_report(&String::from_utf8_lossy(&report)).ok_or_else(|| Error::Engine {
        operation: "look for the processes of a command".to_owned(),
        status: None,
        message: String::from_utf8_lossy(&report).trim().to_owned(),
    })
}

/// What the script met; `None` when it did not get to its end.
fn parse_report(report: &str) -> Option<Swept> {
    let (left, rounds) = report.strip_suffix('\n')?.strip_prefix("left ")?.split_once("\ndone ")?;
    let met = rounds.parse::<u32>().ok()? > 0;
    Some(Swept { left: left.split_whitespace().map(str::to_owned).collect(), met })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_report_counts() {
        let left = vec!["12:3".to_owned(), "4:5".to_owned()];
        assert_eq!(parse_report("left 12:3 4:5 \ndone 100\n"), Some(Swept { left, met: true }));
        assert_eq!(parse_report("left \ndone 1\n"), Some(Swept { left: Vec::new(), met: true }));
        assert_eq!(parse_report("left \ndone 0\n"), Some(Swept { left: Vec::new(), met: false }));
        for broken in ["", "left 12:3 \n", "left 12:3 \ndone", "OCI runtime exec failed: no\r\n"] {
            assert_eq!(parse_report(broken), None, "{broken}");
        }
    }
}
