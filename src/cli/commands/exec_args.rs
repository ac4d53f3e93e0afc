//! How a command is run: options that `run` and `exec` share.

use std::time::Duration;

use agentworkspace::{Command, Environment};
use clap::Args;

use crate::cli::failure::Usage;
use crate::cli::{parse, stdio};

/// What to run, and how.
#[derive(Args)]
pub(crate) struct CommandArgs {
    /// Run in this directory, relative to the workspace's root.
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true, value_parser = dir)]
    dir: String,
    /// Set an environment variable; NAME alone takes its value from here.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Run as this user: a name, uid or uid:gid.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Pass standard input on; otherwise the command sees its end at once.
    #[arg(long)]
    stdin: bool,
    /// End the command and all it started after this long, such as 90s or 2m.
    #[arg(long, value_name = "TIME", value_parser = parse::timeout)]
    timeout: Option<Duration>,
    /// End it when it has printed nothing for this long.
    #[arg(long, value_name = "TIME", value_parser = parse::timeout)]
    idle_timeout: Option<Duration>,
    /// With --json, keep this much of each output stream: the first and the last half [default: 16m].
    #[arg(long, value_name = "SIZE", value_parser = parse::size, requires = "json")]
    output_limit: Option<u64>,
    /// The command and its arguments; no shell is in between.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// A directory as `--dir` takes it, checked.
fn dir(text: &str) -> Result<String, String> {
    agentworkspace::WorkspacePath::parse_dir(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

impl CommandArgs {
    /// The variables of `--env`.
    pub(crate) fn environment(&self) -> Result<Environment, Usage> {
        parse::environment(&self.env, |name| std::env::var(name))
    }

    /// The command. `env` goes over the workspace's own, `user` in place of it.
    pub(crate) fn command(self, env: Environment, user: Option<String>) -> Command {
        let mut command = Command::from_args(self.command).dir(self.dir);
        command.env = env;
        command.user = user;
        command.timeout = self.timeout;
        command.idle_timeout = self.idle_timeout;
        if let Some(limit) = self.output_limit {
            command = command.output_limit(limit);
        }
        if self.stdin {
            command = command.stdin(stdio::stdin());
        }
        command
    }
}
