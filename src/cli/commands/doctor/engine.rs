//! The engine: whether it can be reached, and what it is.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use agentworkspace::EngineDetails;
use agentworkspace::container::Engine;
use bollard::Docker;
use bollard::models::SystemInfo;

use super::check::Check;

/// How long the engine may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(15);

/// The oldest API that is supported: Docker 20.10.
const MIN_API: (u32, u32) = (1, 41);

/// Free space of the engine's disk below which it warns, and below which it fails.
const LOW_DISK: u64 = 5 << 30;
const NO_DISK: u64 = 512 << 20;

/// An engine that answered.
pub(crate) struct Reached {
    pub(crate) info: SystemInfo,
    details: EngineDetails,
    /// Whether its files are on this machine.
    is_here: bool,
}

/// Asks the engine what it is.
pub(crate) async fn reach() -> (Option<Reached>, Vec<Check>) {
    const NAME: &str = "engine";
    let host = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    let from = if host.is_some() { "DOCKER_HOST" } else { "the default" };
    let address = host.unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned());
    let socket = address.strip_prefix("unix://");
    if let Some(socket) = socket
        && let Err(error) = UnixStream::connect(socket)
    {
        return (None, vec![unreachable(Path::new(socket), from, &error)]);
    }
    let asked = async {
        let details = Engine::connect_to(&address).await?.details().await?;
        // What only this command asks for is in no type of the library.
        let docker = Docker::connect_with_host(&address)?.negotiate_version().await?;
        Ok::<_, anyhow::Error>((docker.info().await?, details))
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok((info, details))) => {
            let found = format!("{} {} at {address} ({from})", details.name, details.version);
            let is_here = socket.is_some();
            (Some(Reached { info, details, is_here }), vec![Check::ok(NAME, found)])
        }
        Ok(Err(error)) => {
            let found = format!("{address} ({from}): {error:#}");
            (None, vec![Check::fail(NAME, found, "set DOCKER_HOST to the address of an engine")])
        }
        Err(_) => {
            let found = format!("{address} ({from}) does not answer within {} s", PATIENCE.as_secs());
            (None, vec![Check::fail(NAME, found, "restart the engine: sudo systemctl restart docker")])
        }
    }
}

fn unreachable(socket: &Path, from: &str, error: &io::Error) -> Check {
    let shown = socket.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Check::fail(
            "engine",
            format!("this user may not use {shown} ({from})"),
            "sudo usermod -aG docker $USER, then log in again",
        ),
        io::ErrorKind::NotFound => Check::fail(
            "engine",
            format!("there is no {shown} ({from})"),
            "`make engine` in a checkout, or sudo systemctl start docker, or set DOCKER_HOST to the \
             address of an engine; local workspaces need none",
        ),
        _ => Check::fail(
            "engine",
            format!("nothing answers at {shown} ({from}): {error}"),
            "sudo systemctl start docker, or `make engine` in a checkout",
        ),
    }
}

/// Checks an engine that answered.
pub(crate) fn checks(reached: &Reached) -> Vec<Check> {
    let mut checks = vec![api(&reached.details), platform(&reached.info), storage(&reached.details)];
    if reached.is_here
        && let Some(disk) = disk(&reached.info)
    {
        checks.push(disk);
    }
    checks
}

fn api(details: &EngineDetails) -> Check {
    let api = details.api_version.as_str();
    let parsed = api.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parsed {
        Some(found) if found >= MIN_API => Check::ok("api", format!("version {api}")),
        _ => Check::fail(
            "api",
            format!("version `{api}`, and 1.41 is needed"),
            "upgrade to Docker 20.10 or Podman 4, or later",
        ),
    }
}

fn platform(info: &SystemInfo) -> Check {
    let os = info.os_type.as_deref().unwrap_or_default();
    let architecture = info.architecture.as_deref().unwrap_or_default();
    match os {
        "linux" => Check::ok("platform", format!("linux on {architecture}")),
        other => Check::fail(
            "platform",
            format!("containers of `{other}`"),
            "switch the engine to Linux containers",
        ),
    }
}

fn storage(details: &EngineDetails) -> Check {
    let found = details.storage.clone();
    match details.storage.split_whitespace().next() {
        Some("vfs") => Check::warn(
            "storage",
            format!("{found}, which copies every layer"),
            "configure overlay2 (`\"storage-driver\": \"overlay2\"` in the engine's daemon.json)",
        ),
        _ => Check::ok("storage", found),
    }
}

/// The free space where the engine keeps its images; `None` when it cannot be seen from here.
fn disk(info: &SystemInfo) -> Option<Check> {
    let root = info.docker_root_dir.as_deref()?;
    let stat = rustix::fs::statvfs(root).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} GiB free for images at {root}", free >> 30);
    let mend = "agentworkspace prune, and docker image prune";
    Some(match free {
        free if free < NO_DISK => Check::fail("disk", found, mend),
        free if free < LOW_DISK => Check::warn("disk", found, mend),
        _ => Check::ok("disk", found),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn an_old_api_fails() {
        for (version, verdict) in [
            ("1.41", Verdict::Ok),
            ("1.100", Verdict::Ok),
            ("2.0", Verdict::Ok),
            ("1.40", Verdict::Fail),
            ("", Verdict::Fail),
        ] {
            let mut details = EngineDetails::default();
            details.api_version = version.to_owned();
            assert_eq!(api(&details).verdict, verdict, "{version:?}");
        }
    }

    #[test]
    fn each_reason_has_its_own_remedy() {
        let mend =
            |kind: io::ErrorKind| unreachable(Path::new("/x"), "the default", &kind.into()).mend.unwrap();
        assert!(mend(io::ErrorKind::PermissionDenied).contains("usermod"));
        assert!(mend(io::ErrorKind::NotFound).contains("make engine"));
        assert!(mend(io::ErrorKind::ConnectionRefused).contains("start docker"));
    }
}
