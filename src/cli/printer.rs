//! Who says what where: results on standard output, everything else on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use super::failure::{self, StdoutClosed};
use super::progress::Step;

/// How much is said beside the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Warnings, notes, and progress on a terminal.
    Normal,
    /// What is done as well.
    Verbose,
}

/// Decides how results and everything else are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    verbosity: Verbosity,
    json: bool,
    progress: bool,
}

impl Printer {
    /// A printer for this process. Progress is shown on a terminal, unless the terminal is dumb,
    /// `NO_COLOR` is set, or the log goes to the same place.
    pub(crate) fn new(verbosity: Verbosity, json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let progress = verbosity == Verbosity::Normal && io::stderr().is_terminal() && !dumb && !plain;
        Printer { verbosity, json, progress }
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes one line of results.
    pub(crate) fn line(&self, line: impl Display) -> anyhow::Result<()> {
        self.bytes(format!("{line}\n").as_bytes())
    }

    /// Writes results as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(stdout_error)
    }

    /// Writes a result as one JSON document, indented on a terminal.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = match io::stdout().is_terminal() {
            true => serde_json::to_string_pretty(value)?,
            false => serde_json::to_string(value)?,
        };
        self.line(text)
    }

    /// Says what was done, when asked to.
    pub(crate) fn detail(&self, text: impl Display) {
        self.say(Verbosity::Verbose, "", text);
    }

    /// Says what a person should know.
    pub(crate) fn note(&self, text: impl Display) {
        self.say(Verbosity::Normal, "note: ", text);
    }

    /// Says what may not be as a person expects.
    pub(crate) fn warning(&self, text: impl Display) {
        self.say(Verbosity::Normal, "warning: ", text);
    }

    /// Says what went wrong.
    pub(crate) fn error(&self, text: impl Display) {
        self.say(Verbosity::Quiet, "error: ", text);
    }

    /// Says what went wrong in a subcommand, and what would help.
    pub(crate) fn failure(&self, failure: &anyhow::Error) {
        self.error(failure::text(failure));
        if let Some(hint) = failure::hint(failure) {
            self.say(Verbosity::Normal, "hint: ", hint);
        }
    }

    /// A step that may take long; its progress shows once it does.
    pub(crate) fn step(&self, label: impl Into<String>) -> Step {
        Step::start(label.into(), self.progress)
    }

    fn say(&self, at: Verbosity, prefix: &str, text: impl Display) {
        if self.verbosity >= at {
            // Nothing is left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "{prefix}{text}");
        }
    }
}

/// What a failed write to standard output means.
pub(crate) fn stdout_error(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => StdoutClosed.into(),
        _ => anyhow::Error::from(error).context("failed to write to standard output"),
    }
}
