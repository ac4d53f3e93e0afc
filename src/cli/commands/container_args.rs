//! How a container is made: options that `run` and `create` share.

use agentworkspace::Environment;
use agentworkspace::container::{Access, ContainerOptions, Mount, Network, Profile, PullPolicy};
use clap::{Args, ValueEnum};

use crate::cli::parse;

/// How the container is made. Only together with an image, from the subcommand's group `source`.
#[derive(Args)]
#[command(next_help_heading = "Container")]
pub(crate) struct ContainerArgs {
    /// The workspace's root in the container, made if missing [default: /workspace].
    #[arg(long, value_name = "DIR", requires = "source")]
    root: Option<String>,
    /// Memory with swap, such as 512m; beyond it processes are killed.
    #[arg(long, value_name = "SIZE", value_parser = parse::size, requires = "source")]
    memory: Option<u64>,
    /// Processor time in cores, such as 1.5.
    #[arg(long, value_name = "CORES", requires = "source")]
    cpus: Option<f64>,
    /// Processes [default: 1024].
    #[arg(long, value_name = "N", requires = "source")]
    pids: Option<i64>,
    /// The network: none, default, or the name of one.
    #[arg(long, value_name = "MODE", value_parser = parse::network, requires = "source")]
    network: Option<Network>,
    /// Make the root file system read-only, but for the workspace's root, /tmp and /run.
    #[arg(long, requires = "source")]
    read_only: bool,
    /// How tightly the container is confined.
    #[arg(long, value_enum, requires = "source")]
    profile: Option<ProfileArg>,
    /// Mount a file system: type=bind|volume|tmpfs,source=..,target=..[,readonly|rw][,size=..].
    #[arg(long = "mount", value_name = "MOUNT", value_parser = parse::mount, requires = "source")]
    mounts: Vec<Mount>,
    /// When the image is pulled.
    #[arg(long, value_enum, requires = "source")]
    pull: Option<PullArg>,
    /// How the container is reached.
    #[arg(long, value_enum, requires = "source")]
    access: Option<AccessArg>,
    /// The image's platform, os/arch[/variant].
    #[arg(long, value_name = "PLATFORM", requires = "source")]
    platform: Option<String>,
}

/// [`Profile`] as an argument.
#[derive(Clone, Copy, ValueEnum)]
enum ProfileArg {
    /// For code that installs packages: no new privileges, few capabilities.
    Standard,
    /// For code that needs no root: no capability, not root, a read-only root file system.
    Strict,
}

/// [`Access`] as an argument.
#[derive(Clone, Copy, ValueEnum)]
enum AccessArg {
    /// By a helper where one can run, otherwise by the engine.
    Auto,
    /// By a helper in the container, or not at all.
    Helper,
    /// By the engine's own calls: nothing is put into the container.
    Engine,
}

/// [`PullPolicy`] as an argument.
#[derive(Clone, Copy, ValueEnum)]
enum PullArg {
    /// When the engine does not have it.
    Missing,
    /// Always, so that a tag that moved is noticed.
    Always,
    /// Never.
    Never,
}

impl ContainerArgs {
    /// The options for a container of `image`.
    pub(crate) fn options(self, image: String, env: Environment, user: Option<String>) -> ContainerOptions {
        let mut options = ContainerOptions::new(image).env(env).mounts(self.mounts).read_only(self.read_only);
        options.user = user;
        options.memory = self.memory;
        options.cpus = self.cpus;
        options.platform = self.platform;
        if let Some(root) = self.root {
            options.root = root;
        }
        if let Some(pids) = self.pids {
            options.pids = pids;
        }
        if let Some(network) = self.network {
            options.network = network;
        }
        if let Some(profile) = self.profile {
            options.profile = match profile {
                ProfileArg::Standard => Profile::Standard,
                ProfileArg::Strict => Profile::Strict,
            };
        }
        if let Some(access) = self.access {
            options.access = match access {
                AccessArg::Auto => Access::Auto,
                AccessArg::Helper => Access::Helper,
                AccessArg::Engine => Access::Engine,
            };
        }
        if let Some(pull) = self.pull {
            options.pull = match pull {
                PullArg::Missing => PullPolicy::Missing,
                PullArg::Always => PullPolicy::Always,
                PullArg::Never => PullPolicy::Never,
            };
        }
        options
    }
}
