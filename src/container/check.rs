//! Refuses options that contradict each other or would open the host to the container.

use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use super::labels;
use super::options::{ContainerOptions, Mount, MountKind, Network, Profile};
use super::pause;
use crate::error::{Error, ImageErrorKind, Result};

/// The least memory that engines accept: below it no process of a container starts.
const MIN_MEMORY: u64 = 6 * 1024 * 1024;

/// The least share of a processor that engines accept.
const MIN_CPUS: f64 = 0.01;

/// What no workspace root or mount may lie in: the kernel's file systems and our own directory.
const RESERVED: [&str; 4] = ["/proc", "/sys", "/dev", pause::DIRECTORY];

/// Checks everything that can be told without asking the engine.
pub(crate) fn check(options: &ContainerOptions, engine_address: &str) -> Result<()> {
    check_image(options)?;
    options.env.check()?;
    check_root(options)?;
    check_limits(options)?;
    check_names(options)?;
    check_network(options)?;
    check_mounts(&options.mounts, engine_address)?;
    check_user(options)
}

fn invalid<T>(reason: String) -> Result<T> {
    Err(Error::InvalidArgument { reason })
}

fn check_image(options: &ContainerOptions) -> Result<()> {
    let image = &options.image;
    // The reference becomes part of a URL unescaped.
    let is_reference = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if image.is_empty() || !image.chars().all(is_reference) || image.split('/').any(|part| part == "..") {
        let detail = "it is not of the form name[:tag][@digest]".to_owned();
        return Err(Error::Image {
            reference: image.clone(),
            kind: ImageErrorKind::InvalidReference { detail },
        });
    }
    if let Some(digest) = &options.require_digest {
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return invalid(format!("`{}` is not a sha256 digest", digest.escape_debug()));
        }
    }
    if let Some(platform) = &options.platform {
        let parts: Vec<&str> = platform.split('/').collect();
        if !(2..=3).contains(&parts.len()) || parts.iter().any(|part| part.is_empty()) {
            return invalid(format!("`{}` is not a platform os/arch[/variant]", platform.escape_debug()));
        }
    }
    Ok(())
}

fn check_root(options: &ContainerOptions) -> Result<()> {
    let root = options.root.as_str();
    check_path("workspace root", root)?;
    if let Some(reserved) = RESERVED.iter().find(|reserved| is_within(root, reserved)) {
        return invalid(format!("the workspace root `{root}` is in `{reserved}`"));
    }
    if root == "/" && is_read_only(options) {
        return invalid(
            "the workspace root `/` cannot be written on a read-only root file system".to_owned(),
        );
    }
    let below_tmpfs = options.mounts.iter().find(|mount| {
        matches!(mount.kind, MountKind::Tmpfs { .. })
            && is_within(root, &mount.target)
            && root != mount.target
    });
    if let Some(mount) = below_tmpfs {
        return invalid(format!("the workspace root `{root}` is below the tmpfs `{}`", mount.target));
    }
    Ok(())
}

fn check_limits(options: &ContainerOptions) -> Result<()> {
    if options.memory.is_some_and(|memory| memory < MIN_MEMORY || i64::try_from(memory).is_err()) {
        return invalid("a memory limit must be at least 6 MiB".to_owned());
    }
    if options.cpus.is_some_and(|cpus| !(cpus.is_finite() && (MIN_CPUS..=1e6).contains(&cpus))) {
        return invalid("a processor limit must be at least 0.01 cores".to_owned());
    }
    if options.pids < 1 && options.pids != -1 {
        return invalid("a limit on processes must be at least 1, or -1 for none".to_owned());
    }
    for (name, bytes) in [("disk", options.disk), ("shm", options.shm)] {
        if bytes.is_some_and(|bytes| bytes == 0 || i64::try_from(bytes).is_err()) {
            return invalid(format!("the {name} limit must be at least 1 byte"));
        }
    }
    if options.disk.is_some() && is_read_only(options) {
        return Err(Error::Limit {
            limit: "disk".to_owned(),
            reason: "it is one on the container's own layer, which is read-only".to_owned(),
        });
    }
    if let Some(gpus) = &options.gpus
        && gpus != "all"
        && !gpus.parse::<u32>().is_ok_and(|count| count > 0)
    {
        return invalid(format!("`{}` is not a number of GPUs, nor `all`", gpus.escape_debug()));
    }
    Ok(())
}

fn check_names(options: &ContainerOptions) -> Result<()> {
    if let Some(name) = &options.name
        && !is_name(name)
    {
        return invalid(format!("`{}` is not a container name", name.escape_debug()));
    }
    match options.labels.keys().find(|label| label.is_empty() || labels::is_reserved(label)) {
        Some(label) => invalid(format!("the label `{}` is not the caller's to set", label.escape_debug())),
        None => Ok(()),
    }
}

/// Whether engines take it as a name of a container or volume.
fn is_name(name: &str) -> bool {
    (2..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

fn check_network(options: &ContainerOptions) -> Result<()> {
    if let Network::Named(name) = &options.network {
        if !is_name(name) {
            return invalid(format!("`{}` is not a network name", name.escape_debug()));
        }
        if name == "host" {
            return invalid("the host's own network is not on offer".to_owned());
        }
    }
    if options.network == Network::None && !options.ports.is_empty() {
        return invalid("ports need a network".to_owned());
    }
    if options.ports.iter().any(|port| port.container == 0) {
        return invalid("there is no port 0".to_owned());
    }
    for (name, address) in &options.extra_hosts {
        let is_host = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(is_host) {
            return invalid(format!("`{}` is not a host name", name.escape_debug()));
        }
        if address != "host-gateway" && address.parse::<IpAddr>().is_err() {
            return invalid(format!("`{}` is not an address", address.escape_debug()));
        }
    }
    Ok(())
}

fn check_user(options: &ContainerOptions) -> Result<()> {
    let user = options.user.as_deref().unwrap_or_default();
    let is_root = |part: &str| part == "root" || part.parse::<u32>() == Ok(0);
    if options.profile == Profile::Strict && user.split(':').next().is_some_and(is_root) {
        return invalid("the strict profile does not run as root".to_owned());
    }
    Ok(())
}

/// Whether the root file system will be read-only.
pub(crate) fn is_read_only(options: &ContainerOptions) -> bool {
    options.read_only || options.profile == Profile::Strict
}

fn check_mounts(mounts: &[Mount], engine_address: &str) -> Result<()> {
    for (index, mount) in mounts.iter().enumerate() {
        let target = mount.target.as_str();
        check_path("mount target", target)?;
        if target == "/" {
            return invalid("nothing can be mounted over `/`".to_owned());
        }
        if let Some(reserved) = RESERVED.iter().find(|reserved| is_within(target, reserved)) {
            return invalid(format!("the mount target `{target}` is in `{reserved}`"));
        }
        if mounts[..index].iter().any(|earlier| earlier.target == target) {
            return invalid(format!("two mounts have the target `{target}`"));
        }
        match &mount.kind {
            MountKind::Bind(source) => check_bind(source, engine_address)?,
            MountKind::Volume(name) if !is_name(name) => {
                return invalid(format!("`{}` is not a volume name", name.escape_debug()));
            }
            MountKind::Tmpfs { size: Some(0) } => {
                return invalid(format!("the tmpfs `{target}` has no size"));
            }
            MountKind::Volume(_) | MountKind::Tmpfs { .. } => {}
        }
    }
    Ok(())
}

/// The names of sockets whose owner can do anything on the host.
const SOCKETS: [&str; 6] =
    ["docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock", "dockershim.sock"];

/// Directories of the host that hold such sockets, the engine's own data or the kernel.
const GUARDED: [&str; 12] = [
    "/run/docker",
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/user",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/proc",
    "/sys",
    "/dev",
];

/// Refuses a directory of the host that is or holds an engine's socket.
fn check_bind(source: &Path, engine_address: &str) -> Result<()> {
    let is_clean =
        source.is_absolute() && !source.components().any(|part| matches!(part, Component::ParentDir));
    if !is_clean || source.to_str().is_none_or(|source| source.contains('\0')) {
        return invalid(format!("the mount source `{}` is not an absolute path", source.display()));
    }
    // On this machine links are resolved; elsewhere the engine's own view is all there is.
    let resolved = std::fs::canonicalize(source).unwrap_or_else(|_| source.to_path_buf());
    let own = engine_address.strip_prefix("unix://").map(PathBuf::from);
    for path in [source, &resolved] {
        let is_socket = path.file_name().is_some_and(|name| SOCKETS.iter().any(|socket| name == *socket));
        let holds_socket = SOCKETS.iter().any(|socket| path.join(socket).exists());
        let is_guarded = GUARDED.iter().any(|guarded| {
            // The socket directories are refused with what is above and below them, `/` included.
            Path::new(guarded).starts_with(path) || path.starts_with(guarded)
        });
        let holds_own = own.as_ref().is_some_and(|own| {
            own.starts_with(path) || std::fs::canonicalize(own).is_ok_and(|own| own.starts_with(path))
        });
        if is_socket || holds_socket || is_guarded || holds_own {
            return invalid(format!(
                "the mount source `{}` is or holds an engine's socket or data, or the host's kernel",
                source.display()
            ));
        }
    }
    Ok(())
}

/// An absolute path without `.`, `..`, empty components or a trailing `/`.
fn check_path(what: &str, path: &str) -> Result<()> {
    let is_clean = path == "/"
        || path.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| !matches!(part, "" | "." | "..") && part.len() <= 255)
        });
    if !is_clean || path.contains('\0') || path.len() > 4095 {
        return invalid(format!("the {what} `{}` is not a clean absolute path", path.escape_debug()));
    }
    Ok(())
}

/// Whether `path` is `dir` or below it, by name.
pub(crate) fn is_within(path: &str, dir: &str) -> bool {
    Path::new(path).starts_with(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "unix:///srv/engine/api.sock";

    fn refused(options: ContainerOptions) -> bool {
        check(&options, ADDRESS).is_err()
    }

    fn base() -> ContainerOptions {
        ContainerOptions::new("image")
    }

    #[test]
    fn defaults_are_accepted() {
        assert!(!refused(base()));
        assert!(!refused(base().root("/")));
        assert!(!refused(base().profile(Profile::Strict).user("1000:1000")));
    }

    #[test]
    fn roots_that_are_not_clean_or_belong_to_the_kernel_are_refused() {
        for root in ["", "work", "/work/", "/a/../b", "//a", "/proc", "/dev/shm", "/.agentworkspace/x"] {
            assert!(refused(base().root(root)), "{root}");
        }
        assert!(refused(base().root("/").read_only(true)));
        assert!(refused(base().root("/a/b").mounts(vec![Mount::tmpfs("/a", None)])));
    }

    #[test]
    fn mounts_that_open_the_host_are_refused() {
        let sources = [
            "/",
            "/run",
            "/var",
            "/var/run/docker.sock",
            "/srv/engine",
            "/x/podman.sock",
            "/proc",
            "a",
            "/a/../b",
        ];
        for source in sources {
            assert!(refused(base().mounts(vec![Mount::bind(source, "/mnt")])), "{source}");
        }
        assert!(!refused(base().mounts(vec![Mount::bind("/opt/data", "/mnt")])));
    }

    #[test]
    fn mounts_over_what_is_ours_or_twice_are_refused() {
        for target in ["/", "/.agentworkspace", "/proc/x", "mnt", "/mnt/"] {
            assert!(refused(base().mounts(vec![Mount::volume("data", target)])), "{target}");
        }
        let twice = vec![Mount::volume("data", "/mnt"), Mount::tmpfs("/mnt", None)];
        assert!(refused(base().mounts(twice)));
        assert!(refused(base().mounts(vec![Mount::volume("../x", "/mnt")])));
    }

    #[test]
    fn limits_that_cannot_hold_are_refused() {
        assert!(refused(base().memory(1024)));
        for cpus in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(base().cpus(cpus)), "{cpus}");
        }
        assert!(refused(base().pids(0)));
        assert!(refused(base().shm(0)));
        assert!(refused(base().disk(1 << 30).read_only(true)));
        assert!(refused(base().gpus("many")));
    }

    #[test]
    fn names_and_networks_out_of_form_are_refused() {
        assert!(refused(base().name("-x")));
        assert!(refused(base().labels([("agentworkspace.kept".into(), "true".into())].into())));
        assert!(refused(base().network(Network::Named("host".into()))));
        assert!(refused(base().network(Network::Named("container:x".into()))));
        assert!(refused(base().ports(vec![super::super::options::HostPort::new(80, 0)])));
        assert!(refused(base().extra_hosts(vec![("a:b".into(), "1.2.3.4".into())])));
        assert!(refused(ContainerOptions::new("a b")));
        assert!(refused(base().require_digest("sha256:zz")));
        assert!(refused(base().platform("linux")));
        assert!(refused(base().profile(Profile::Strict).user("0:5")));
    }
}
