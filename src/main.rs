//! The `agentworkspace` command.
fn main() {}
