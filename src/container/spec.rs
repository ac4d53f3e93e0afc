//! What the engine is asked to make: a container that is confined unless an option says otherwise.

use std::collections::{BTreeSet, HashMap};

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum,
    HostConfigLogConfig, Mount as EngineMount, MountType, MountVolumeOptions, PortBinding, PortMap,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};

use super::check::{is_read_only, is_within};
use super::options::{ContainerOptions, Mount, MountKind, Network, Profile};
use super::pause;

/// What package managers need as root: `apt` drops to its own user for downloads, `dpkg` and
/// `pip` set owners and modes, and some packages give capabilities to their programs.
const PACKAGE_CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID"];

/// Who runs in a strict container unless the caller says otherwise: `nobody` of most systems.
const STRICT_USER: &str = "65534:65534";

/// Open files of one process: enough for build tools, few enough for programs that go through
/// all possible ones. Explicit, as Podman's own default may exceed what its host allows.
pub(crate) const MAX_OPEN_FILES: i64 = 16_384;

/// How much likelier than a process of the host the container's are to be ended when memory is
/// short.
const OOM_SCORE: i64 = 500;

/// The tmpfs of a read-only root file system. What is in them counts as the container's memory.
const SCRATCH: [(&str, &str); 2] =
    [("/tmp", "rw,nosuid,nodev,exec,size=1g"), ("/run", "rw,nosuid,nodev,exec,size=64m")];

/// The first process where the one of our own cannot run: a sleep of as long as busybox takes.
const FALLBACK_PROCESS: [&str; 2] = ["sleep", "2147483647"];

/// What goes into the create call besides the caller's options.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) labels: HashMap<String, String>,
    pub(crate) first_process: FirstProcess,
    /// Volumes of our own and where they are mounted; those without a name are the engine's to
    /// name, and to remove with their container.
    pub(crate) volumes: Vec<(Option<String>, String)>,
    /// The mount of the helper.
    pub(crate) helper: Option<EngineMount>,
    /// Whether the container is one that only fills the volumes and is never started.
    pub(crate) seeds: bool,
}

/// What runs first in a container, and ends it when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FirstProcess {
    /// The helper at this path, which serves whoever is attached to its input.
    #[cfg(feature = "helper")]
    Helper(String),
    /// [`pause`].
    Pause,
    /// What an image has itself.
    Sleep,
}

impl FirstProcess {
    /// Whether it serves whoever is attached to it, and ends with them.
    fn is_attached(&self) -> bool {
        !matches!(self, FirstProcess::Pause | FirstProcess::Sleep)
    }
}

/// The user of the container's processes, in the words of the engine; `None` for the image's own.
pub(crate) fn user(options: &ContainerOptions) -> Option<String> {
    let default = (options.profile == Profile::Strict).then(|| STRICT_USER.to_owned());
    options.user.clone().or(default)
}

/// Whether a volume of our own has to hold the workspace root.
pub(crate) fn needs_root_volume(options: &ContainerOptions) -> bool {
    is_read_only(options) && !options.mounts.iter().any(|mount| is_within(&options.root, &mount.target))
}

/// The body of the create call.
pub(crate) fn body(options: &ContainerOptions, plan: &Plan) -> ContainerCreateBody {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let (entrypoint, cmd) = match &plan.first_process {
        #[cfg(feature = "helper")]
        FirstProcess::Helper(path) => (words(&[path]), words(&[])),
        FirstProcess::Pause => (words(&[pause::PATH]), words(&[])),
        FirstProcess::Sleep => (words(&FALLBACK_PROCESS[..1]), words(&FALLBACK_PROCESS[1..])),
    };
    let attached = Some(plan.first_process.is_attached());
    let ports: BTreeSet<String> = options.ports.iter().map(|port| port_name(port.container)).collect();
    ContainerCreateBody {
        image: Some(options.image.clone()),
        user: user(options),
        // Whoever attaches to a container that is kept knows nothing of these options.
        env: options
            .keep
            .then(|| options.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        entrypoint,
        cmd,
        // Engines make a missing directory, as root and before its owner could be said. Commands
        // name theirs.
        working_dir: Some("/".to_owned()),
        labels: Some(plan.labels.clone()),
        tty: Some(false),
        // Its input ends with the one who is attached.
        open_stdin: attached,
        stdin_once: attached,
        attach_stdin: attached,
        attach_stdout: attached,
        attach_stderr: attached,
        exposed_ports: (!ports.is_empty()).then(|| ports.into_iter().collect()),
        // Checks of the image run its code beside the caller's.
        healthcheck: Some(HealthConfig { test: words(&["NONE"]), ..Default::default() }),
        stop_signal: Some("SIGKILL".to_owned()),
        host_config: Some(host_config(options, plan)),
        ..Default::default()
    }
}

fn host_config(options: &ContainerOptions, plan: &Plan) -> HostConfig {
    let bytes = |bytes: u64| i64::try_from(bytes).ok();
    let memory = options.memory.and_then(bytes);
    let capabilities = match options.profile {
        Profile::Strict => Vec::new(),
        Profile::Standard => PACKAGE_CAPABILITIES.map(str::to_owned).to_vec(),
    };
    let disk = options.disk.map(|disk| HashMap::from([("size".to_owned(), disk.to_string())]));
    let hosts: Vec<String> =
        options.extra_hosts.iter().map(|(name, address)| format!("{name}:{address}")).collect();
    HostConfig {
        // Our own first process reaps; another needs the engine's init to.
        init: Some(plan.first_process == FirstProcess::Sleep),
        network_mode: Some(match &options.network {
            Network::None => "none".to_owned(),
            Network::Default => "default".to_owned(),
            Network::Named(name) => name.clone(),
        }),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(capabilities),
        security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
        readonly_rootfs: Some(is_read_only(options) && !plan.seeds),
        pids_limit: Some(options.pids),
        memory,
        // Without this, as much swap again as memory may be used.
        memory_swap: memory,
        // Checked to be positive and far below the largest number.
        nano_cpus: options.cpus.map(|cpus| (cpus * 1e9).round() as i64),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        ulimits: Some(vec![ulimit("nofile", MAX_OPEN_FILES), ulimit("core", 0)]),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(plan.first_process.is_attached() && !plan.seeds),
        oom_score_adj: Some(OOM_SCORE),
        storage_opt: disk,
        shm_size: options.shm.and_then(bytes),
        port_bindings: port_bindings(options),
        extra_hosts: (!hosts.is_empty()).then_some(hosts),
        runtime: options.runtime.clone(),
        device_requests: options.gpus.as_deref().map(gpus),
        tmpfs: Some(tmpfs(options)),
        mounts: Some(mounts(options, plan)),
        ..Default::default()
    }
}

fn ulimit(name: &str, limit: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(limit), hard: Some(limit) }
}

fn port_name(port: u16) -> String {
    format!("{port}/tcp")
}

/// Ports on the loopback address of the engine's host only.
fn port_bindings(options: &ContainerOptions) -> Option<PortMap> {
    let mut bindings = PortMap::new();
    for port in &options.ports {
        let host_port = if port.host == 0 { String::new() } else { port.host.to_string() };
        let binding = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(host_port) };
        bindings.entry(port_name(port.container)).or_default().get_or_insert_default().push(binding);
    }
    (!bindings.is_empty()).then_some(bindings)
}

fn gpus(gpus: &str) -> Vec<DeviceRequest> {
    // Checked to be a count or `all`, which engines call -1.
    let count = gpus.parse().unwrap_or(-1);
    vec![DeviceRequest {
        count: Some(count),
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..Default::default()
    }]
}

fn tmpfs(options: &ContainerOptions) -> HashMap<String, String> {
    let is_taken = |target: &str| options.mounts.iter().any(|mount| mount.target == target);
    let mut tmpfs = HashMap::new();
    if is_read_only(options) {
        let free = SCRATCH.iter().filter(|(target, _)| !is_taken(target) && options.root != *target);
        tmpfs.extend(free.map(|(target, flags)| ((*target).to_owned(), (*flags).to_owned())));
    }
    for mount in &options.mounts {
        if let MountKind::Tmpfs { size } = &mount.kind {
            let access = if mount.writable { "rw" } else { "ro" };
            let size = size.map(|size| format!(",size={size}")).unwrap_or_default();
            // Engines add `noexec` unless told otherwise, and builds run from such places.
            tmpfs.insert(mount.target.clone(), format!("{access},nosuid,nodev,exec{size}"));
        }
    }
    tmpfs
}

fn mounts(options: &ContainerOptions, plan: &Plan) -> Vec<EngineMount> {
    let own = plan.volumes.iter().map(|(volume, target)| EngineMount {
        typ: Some(MountType::VOLUME),
        source: volume.clone(),
        target: Some(target.clone()),
        // Nothing but the engine itself writes where the first process comes from.
        read_only: Some(target == pause::DIRECTORY && !plan.seeds),
        // An empty volume takes content and owner from the image whenever it is mounted, which
        // must happen only once, before it is given to the workspace's user.
        // A create that was given up makes the volume again, if it has been removed by then, and
        // must label it so that it is found.
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(volume.is_some() && !plan.seeds),
            labels: Some(plan.labels.clone()),
            ..Default::default()
        }),
        ..Default::default()
    });
    own.chain(plan.helper.clone()).chain(options.mounts.iter().filter_map(mount)).collect()
}

fn mount(mount: &Mount) -> Option<EngineMount> {
    let (typ, source) = match &mount.kind {
        MountKind::Bind(source) => (MountType::BIND, source.to_string_lossy().into_owned()),
        MountKind::Volume(name) => (MountType::VOLUME, name.clone()),
        MountKind::Tmpfs { .. } => return None,
    };
    Some(EngineMount {
        typ: Some(typ),
        source: Some(source),
        target: Some(mount.target.clone()),
        read_only: Some(!mount.writable),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            labels: HashMap::new(),
            first_process: FirstProcess::Pause,
            volumes: Vec::new(),
            helper: None,
            seeds: false,
        }
    }

    #[test]
    fn the_default_has_no_network_and_no_dangerous_capability() {
        let body = body(&ContainerOptions::new("image"), &plan());
        let host = body.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
        let added = host.cap_add.unwrap();
        assert!(
            !added.iter().any(|cap| ["SYS_ADMIN", "NET_RAW", "MKNOD", "SYS_PTRACE"].contains(&cap.as_str()))
        );
        assert_eq!(host.privileged, None);
        assert_eq!(body.entrypoint.unwrap(), [pause::PATH]);
    }

    #[test]
    fn strict_is_read_only_without_capabilities_and_not_root() {
        let options = ContainerOptions::new("image").profile(Profile::Strict);
        let body = body(&options, &plan());
        let host = body.host_config.unwrap();
        assert_eq!((host.readonly_rootfs, host.cap_add), (Some(true), Some(Vec::new())));
        assert_eq!(body.user.as_deref(), Some("65534:65534"));
        assert!(host.tmpfs.unwrap().contains_key("/tmp"));
        assert!(needs_root_volume(&options));
    }

    #[test]
    fn a_memory_limit_is_one_with_swap() {
        let host = host_config(&ContainerOptions::new("image").memory(64 << 20).cpus(1.5), &plan());
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!(host.nano_cpus, Some(1_500_000_000));
    }

    #[test]
    fn only_a_kept_container_holds_the_variables_itself() {
        let options = ContainerOptions::new("image").env([("A", "b=c")].into_iter().collect());
        assert_eq!(body(&options, &plan()).env, None);
        assert_eq!(body(&options.keep(true), &plan()).env.unwrap(), ["A=b=c"]);
    }

    #[test]
    fn a_root_under_a_mount_needs_no_volume() {
        let options = ContainerOptions::new("image").read_only(true).root("/data/work");
        assert!(!needs_root_volume(&options.clone().mounts(vec![Mount::volume("data", "/data")])));
        assert!(needs_root_volume(&options.mounts(vec![Mount::volume("data", "/data/work/below")])));
    }
}
