//! What a container workspace is made from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// The workspace root inside a container unless the caller says otherwise.
pub const DEFAULT_ROOT: &str = "/workspace";

/// How many processes a container may hold unless the caller says otherwise: enough for the
/// build tools of JVM, Go and Node projects.
pub const DEFAULT_PIDS_LIMIT: i64 = 1024;

/// How a container is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Access {
    /// By a helper where one can run, otherwise by the engine's own calls; which of them it is, and
    /// why, is in [`Details::access`](crate::Details::access) and `access_reason`.
    #[default]
    Auto,
    /// By a helper in the container, or not at all. What it is asked for takes about 2 ms, its
    /// container ends with its owner whatever ends that, and nothing of the image is needed.
    #[cfg(feature = "helper")]
    Helper,
    /// Only by the engine's own calls: nothing is put into the container.
    Engine,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Always, so that a tag that moved is noticed.
    Always,
    /// Never; a missing image is an error.
    Never,
}

/// How tightly a container is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// For untrusted code that installs packages: no-new-privileges, no capability but those that
    /// package managers need, the engine's seccomp and AppArmor profiles.
    #[default]
    Standard,
    /// For untrusted code that needs no root: no capability at all, a non-root user and a
    /// read-only root file system, with the workspace root on a volume and tmpfs on `/tmp` and
    /// `/run`.
    Strict,
}

/// Which network a container is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Network {
    /// None but its own loopback.
    #[default]
    None,
    /// The engine's default network, which reaches whatever the host reaches.
    Default,
    /// The network of this name, which must exist.
    Named(String),
}

/// A file system mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mount {
    /// What is mounted.
    pub kind: MountKind,
    /// Where, as an absolute path in the container.
    pub target: String,
    /// Whether it can be written. Default: no for a directory of the host, yes otherwise.
    pub writable: bool,
}

/// What a [`Mount`] mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MountKind {
    /// A file or directory of the engine's host.
    Bind(PathBuf),
    /// A volume of this name, made by the engine when it does not exist.
    Volume(String),
    /// Memory, of at most this many bytes.
    Tmpfs {
        /// The size in bytes; `None` for half of the host's memory.
        size: Option<u64>,
    },
}

impl Mount {
    /// `source` of the engine's host at `target`, read-only.
    pub fn bind(source: impl Into<PathBuf>, target: impl Into<String>) -> Self {
        Mount { kind: MountKind::Bind(source.into()), target: target.into(), writable: false }
    }

    /// The volume `name` at `target`.
    pub fn volume(name: impl Into<String>, target: impl Into<String>) -> Self {
        Mount { kind: MountKind::Volume(name.into()), target: target.into(), writable: true }
    }

    /// At most `size` bytes of memory at `target`.
    pub fn tmpfs(target: impl Into<String>, size: Option<u64>) -> Self {
        Mount { kind: MountKind::Tmpfs { size }, target: target.into(), writable: true }
    }

    /// Whether it can be written.
    #[must_use]
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }
}

/// A port of the container that the engine's host serves on its loopback address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostPort {
    /// The TCP port in the container.
    pub container: u16,
    /// The port of the host; 0 lets the engine choose one.
    pub host: u16,
}

impl HostPort {
    /// The container's port at a port of the host; 0 lets the engine choose one.
    pub fn new(container: u16, host: u16) -> Self {
        HostPort { container, host }
    }
}

/// How [`ContainerWorkspace::create`](crate::container::ContainerWorkspace::create) makes a container.
///
/// The defaults fit untrusted code: no network, no new privileges, few capabilities, a limit on
/// processes, an init as first process, no restart, no log. There is no option for privileged
/// mode, host namespaces, devices or the engine's socket.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerOptions {
    /// The image reference: `name`, `name:tag`, `name@sha256:...` or an image id.
    pub image: String,
    /// Refuses the image unless its id, or the digest of the container made from it, is this.
    /// Default: any.
    pub require_digest: Option<String>,
    /// When the image is pulled. Default: when it is missing.
    pub pull: PullPolicy,
    /// The platform, `os/arch[/variant]`. Default: the engine's own.
    pub platform: Option<String>,
    /// The absolute path of the workspace root, made if missing. Default: [`DEFAULT_ROOT`].
    pub root: String,
    /// The user that commands run as: `name`, `uid` or `uid:gid`. Default: the image's own.
    pub user: Option<String>,
    /// Variables over the image's environment. A container that is kept holds them in its
    /// configuration, which everybody who may use the engine can read; any other is never told.
    pub env: Environment,
    /// Whether the image's own environment is left out, and all that the engine adds but a `PATH`.
    pub clear_env: bool,
    /// File systems to mount.
    pub mounts: Vec<Mount>,
    /// Memory with swap, in bytes. Default: unlimited.
    pub memory: Option<u64>,
    /// Processor time in cores. Default: unlimited.
    pub cpus: Option<f64>,
    /// Processes. Default: [`DEFAULT_PIDS_LIMIT`].
    pub pids: i64,
    /// Bytes of the container's own layer. Only where the storage driver can enforce it;
    /// elsewhere the create is refused. Default: unlimited.
    pub disk: Option<u64>,
    /// Bytes of `/dev/shm`. Default: the engine's, 64 MiB.
    pub shm: Option<u64>,
    /// The network. Default: none.
    pub network: Network,
    /// Ports served on the loopback address of the engine's host.
    pub ports: Vec<HostPort>,
    /// Names for `/etc/hosts`, each with its address.
    pub extra_hosts: Vec<(String, String)>,
    /// Another runtime of the engine, such as `runsc`. Default: the engine's own.
    pub runtime: Option<String>,
    /// GPUs, `all` or a count. Default: none.
    pub gpus: Option<String>,
    /// Labels of the caller, beside those that say who owns the container.
    pub labels: BTreeMap<String, String>,
    /// The container's name. Default: one that is made up.
    pub name: Option<String>,
    /// Whether the root file system is read-only. The workspace root is then a volume of its own
    /// unless a mount covers it, and `/tmp` and `/run` are tmpfs.
    pub read_only: bool,
    /// How tightly it is confined.
    pub profile: Profile,
    /// Whether the container outlives the workspace; what runs in it is then ended as in
    /// [`attach`](crate::container::ContainerWorkspace::attach). It is removed only by name or id, or by
    /// [`prune`](crate::container::prune) with [`PruneOptions::kept`](crate::container::PruneOptions).
    pub keep: bool,
    /// How it is reached.
    pub access: Access,
}

impl ContainerOptions {
    /// A container of `image` with every default.
    pub fn new(image: impl Into<String>) -> Self {
        ContainerOptions {
            image: image.into(),
            require_digest: None,
            pull: PullPolicy::Missing,
            platform: None,
            root: DEFAULT_ROOT.to_owned(),
            user: None,
            env: Environment::empty(),
            clear_env: false,
            mounts: Vec::new(),
            memory: None,
            cpus: None,
            pids: DEFAULT_PIDS_LIMIT,
            disk: None,
            shm: None,
            network: Network::None,
            ports: Vec::new(),
            extra_hosts: Vec::new(),
            runtime: None,
            gpus: None,
            labels: BTreeMap::new(),
            name: None,
            read_only: false,
            profile: Profile::Standard,
            keep: false,
            access: Access::Auto,
        }
    }
}

/// Makes the consuming setter of each listed field.
macro_rules! setters {
    ($options:ident { $($(#[$doc:meta])* $field:ident: $type:ty => $value:expr;)* }) => {
        impl $options {
            $($(#[$doc])*
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $value;
                self
            })*
        }
    };
}

pub(super) use setters;

setters!(ContainerOptions {
    /// Refuses another image than the one of this digest.
    require_digest: impl Into<String> => Some(require_digest.into());
    /// Sets when the image is pulled.
    pull: PullPolicy => pull;
    /// Sets the platform.
    platform: impl Into<String> => Some(platform.into());
    /// Sets the workspace root.
    root: impl Into<String> => root.into();
    /// Sets the user.
    user: impl Into<String> => Some(user.into());
    /// Sets the variables over the image's environment.
    env: Environment => env;
    /// Leaves the image's own environment out.
    clear_env: bool => clear_env;
    /// Sets the mounts.
    mounts: Vec<Mount> => mounts;
    /// Limits memory with swap, in bytes.
    memory: u64 => Some(memory);
    /// Limits processor time, in cores.
    cpus: f64 => Some(cpus);
    /// Limits processes.
    pids: i64 => pids;
    /// Limits the container's own layer, in bytes.
    disk: u64 => Some(disk);
    /// Sets the size of `/dev/shm`, in bytes.
    shm: u64 => Some(shm);
    /// Sets the network.
    network: Network => network;
    /// Sets the ports.
    ports: Vec<HostPort> => ports;
    /// Sets names for `/etc/hosts`.
    extra_hosts: Vec<(String, String)> => extra_hosts;
    /// Sets the runtime.
    runtime: impl Into<String> => Some(runtime.into());
    /// Sets the GPUs.
    gpus: impl Into<String> => Some(gpus.into());
    /// Sets the caller's labels.
    labels: BTreeMap<String, String> => labels;
    /// Sets the container's name.
    name: impl Into<String> => Some(name.into());
    /// Makes the root file system read-only.
    read_only: bool => read_only;
    /// Sets the profile.
    profile: Profile => profile;
    /// Lets the container outlive the workspace.
    keep: bool => keep;
    /// Sets how the container is reached.
    access: Access => access;
});

/// How [`ContainerWorkspace::attach`](crate::container::ContainerWorkspace::attach) uses a container that
/// somebody else made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AttachOptions {
    /// The absolute path of the workspace root, which must exist. Default: the container's
    /// working directory.
    pub root: Option<String>,
    /// The user that commands run as. Default: the container's own.
    pub user: Option<String>,
    /// Variables over the container's environment.
    pub env: Environment,
    /// Whether the container's own environment is left out, and all that the engine adds but a
    /// `PATH`.
    pub clear_env: bool,
    /// How it is reached.
    pub access: Access,
}

setters!(AttachOptions {
    /// Sets the workspace root.
    root: impl Into<String> => Some(root.into());
    /// Sets the user.
    user: impl Into<String> => Some(user.into());
    /// Sets the variables over the container's environment.
    env: Environment => env;
    /// Leaves the container's own environment out.
    clear_env: bool => clear_env;
    /// Sets how the container is reached.
    access: Access => access;
});
