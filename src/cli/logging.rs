//! The log, on standard error.

use std::io;

use tracing_subscriber::EnvFilter;

use super::printer::Verbosity;

/// The variable that says what is logged, as in `agentworkspace=trace,bollard=debug`.
const VARIABLE: &str = "AGENTWORKSPACE_LOG";

/// Sends the log to standard error: what the variable says, otherwise more with each `-v`.
///
/// # Errors
///
/// What is wrong with the variable; the log is then as without it.
pub(crate) fn install(verbosity: Verbosity, verbose: u8) -> Result<(), String> {
    let default = match (verbosity, verbose) {
        (Verbosity::Quiet, _) => "error",
        (_, 0) => "agentworkspace=warn",
        (_, 1) => "agentworkspace=info",
        _ => "agentworkspace=debug",
    };
    let asked = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let (filter, result) = match asked.map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, Ok(())),
        Some(Err(error)) => (EnvFilter::new(default), Err(format!("{VARIABLE} is malformed: {error}"))),
        None => (EnvFilter::new(default), Ok(())),
    };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // It fails only when there is a subscriber already.
    let _ = subscriber.try_init();
    result
}
