//! How a command's end is told.

use std::time::Instant;

use agentworkspace::container::Timings;
use agentworkspace::{Descriptor, Details, End, Output, Workspace};
use serde::Serialize;

use crate::cli::json::{Bytes, Failure, Stream, millis};
use crate::cli::printer::Printer;

/// What came of a command, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Where it ran; null when no workspace could be opened.
    pub(crate) descriptor: Option<Descriptor>,
    /// How it ended: `{"exited": N}`, `{"signaled": N}`, `timed_out`, `idle_timed_out` or
    /// `out_of_memory`; null when it did not run.
    end: Option<End>,
    /// Its exit status; -1 when it did not exit by itself, null when it did not run.
    exit_code: Option<i32>,
    /// Whether a time limit ended it.
    timed_out: bool,
    /// Its output: a string, or `{"base64": ".."}` when it is not UTF-8.
    stdout: Option<Bytes>,
    stderr: Option<Bytes>,
    /// What is missing in the two.
    dropped: Dropped,
    /// Whether a process that it left behind still held its output open.
    output_detached: bool,
    /// How long each step took.
    pub(crate) durations_ms: Durations,
    /// Image, engine, limits and warnings.
    pub(crate) details: Option<Details>,
    /// Why the workspace, and not the command, failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    #[serde(skip)]
    begun: Instant,
    /// When there was nothing left to do but to close the workspace.
    #[serde(skip)]
    worked: Option<Instant>,
}

/// How many bytes of each stream are missing, and where.
#[derive(Debug, Default, Serialize)]
struct Dropped {
    stdout: u64,
    stderr: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_at: Option<u64>,
}

/// How long each step took, in milliseconds; a step that there was none of is left out. The total
/// is a little more than their sum: it has the time to find the engine and to ask what it can.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Durations {
    /// Opening a directory or a container that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pull: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) create: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exec: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collect: Option<f64>,
    /// Ending what still runs, and removing what was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    close: Option<f64>,
    /// From the first to the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
}

impl Durations {
    /// Takes in how long a container took.
    pub(crate) fn made(&mut self, timings: Timings) {
        self.pull = Some(millis(timings.pull));
        self.create = Some(millis(timings.create));
        self.start = Some(millis(timings.start));
    }
}

impl Outcome {
    /// Of a command that has not run yet.
    pub(crate) fn new() -> Outcome {
        Outcome {
            descriptor: None,
            end: None,
            exit_code: None,
            timed_out: false,
            stdout: None,
            stderr: None,
            dropped: Dropped::default(),
            output_detached: false,
            durations_ms: Durations::default(),
            details: None,
            error: None,
            begun: Instant::now(),
            worked: None,
        }
    }

    /// Takes in where it runs.
    pub(crate) fn opened(&mut self, workspace: &dyn Workspace) {
        self.descriptor = Some(workspace.descriptor());
        self.details = Some(workspace.details());
        if self.durations_ms.create.is_none() {
            self.durations_ms.open = Some(millis(self.begun.elapsed()));
        }
    }

    /// Takes in that the workspace is only to be closed now.
    pub(crate) fn worked(&mut self) {
        self.worked = Some(Instant::now());
    }

    /// Takes in that the workspace, if there was one, is closed.
    pub(crate) fn closed(&mut self) {
        self.durations_ms.close = self.worked.map(|worked| millis(worked.elapsed()));
        self.durations_ms.total = Some(millis(self.begun.elapsed()));
    }

    /// Takes in what came of it.
    pub(crate) fn ran(&mut self, output: Output) {
        let (stdout, stderr) = (Stream::new(output.stdout), Stream::new(output.stderr));
        self.end = Some(output.end);
        self.exit_code = Some(output.exit_code);
        self.timed_out = output.timed_out;
        self.output_detached = output.output_detached;
        self.dropped = Dropped {
            stdout: stdout.dropped,
            stderr: stderr.dropped,
            stdout_at: stdout.dropped_at,
            stderr_at: stderr.dropped_at,
        };
        self.stdout = Some(stdout.bytes);
        self.stderr = Some(stderr.bytes);
    }
}

/// Says what an exit status alone does not.
pub(crate) fn explain(printer: &Printer, output: &Output) {
    match output.end {
        End::Exited(_) => {}
        End::OutOfMemory => {
            printer.error("the command was killed because memory ran out; --memory sets the limit")
        }
        end @ (End::TimedOut | End::IdleTimedOut) => {
            let after = humantime::format_duration(std::time::Duration::from_millis(
                u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            ));
            printer.error(format_args!("the command {end} after {after}"));
        }
        end => printer.note(format_args!("the command {end}")),
    }
    if output.output_detached {
        printer.note("a process that the command left behind still holds its output; what it prints is lost");
    }
}
