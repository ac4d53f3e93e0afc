//! The helper: what is put into a container to serve its files and processes over one stream.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentworkspace::helper::run()
}
