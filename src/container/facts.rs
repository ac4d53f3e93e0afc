//! What an engine is and what it can enforce.

use std::time::{Duration, SystemTime};

use bollard::models::SystemInfo;

use super::engine::{CALL_TIMEOUT, Engine};
use crate::descriptor::EngineDetails;
use crate::error::Result;

/// The facts about an engine that opening a container needs.
#[derive(Clone, Debug)]
pub(crate) struct EngineFacts {
    pub(crate) details: EngineDetails,
    /// The engine's clock when it was asked, or this machine's where it does not say.
    pub(crate) now: SystemTime,
    /// Whether images and layers are in containerd's store, which ignores quotas on layers.
    pub(crate) containerd_store: bool,
}

impl Engine {
    /// What it is: name, versions, storage, cgroups.
    ///
    /// # Errors
    ///
    /// [`Error::NoEngine`](crate::Error::NoEngine) when it does not answer any more,
    /// [`Error::Timeout`](crate::Error::Timeout) when it takes longer than 30 s,
    /// [`Error::Engine`](crate::Error::Engine) for its own errors.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed, whenever the future is dropped.
    pub async fn details(&self) -> Result<EngineDetails> {
        Ok(self.facts().await?.details)
    }

    pub(crate) async fn facts(&self) -> Result<EngineFacts> {
        let info = self.call("tell about itself", CALL_TIMEOUT, self.docker().info()).await?;
        let version = self.call("tell its version", CALL_TIMEOUT, self.docker().version()).await?;
        let is_podman = version.components.iter().flatten().any(|part| part.name.contains("Podman"));
        let containerd_store =
            info.driver_status.iter().flatten().flatten().any(|word| word == CONTAINERD_SNAPSHOTTER);
        let details = EngineDetails {
            name: if is_podman { "podman" } else { "docker" }.to_owned(),
            version: info.server_version.clone().unwrap_or_default(),
            api_version: self.docker().client_version().to_string(),
            storage: storage(&info),
            cgroup_version: info.cgroup_version.map(|v| v.to_string()).unwrap_or_default(),
        };
        Ok(EngineFacts {
            details,
            now: info.system_time.as_deref().and_then(parse_time).unwrap_or_else(SystemTime::now),
            containerd_store,
        })
    }
}

/// What `DriverStatus` says where layers are containerd snapshots.
const CONTAINERD_SNAPSHOTTER: &str = "io.containerd.snapshotter.v1";

/// The storage driver, with the file system below it where the engine tells.
fn storage(info: &SystemInfo) -> String {
    let driver = info.driver.clone().unwrap_or_default();
    let backing = info.driver_status.iter().flatten().find_map(|pair| match pair.as_slice() {
        [name, value] if name == "Backing Filesystem" => Some(value.as_str()),
        _ => None,
    });
    match backing {
        Some(backing) if backing != "<unknown>" => format!("{driver} on {backing}"),
        _ => driver,
    }
}

/// A time as Go prints it: RFC 3339 with nanoseconds, in any zone.
pub(crate) fn parse_time(text: &str) -> Option<SystemTime> {
    if text.ends_with('Z') {
        return humantime::parse_rfc3339(text).ok();
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let offset = Duration::from_secs(minutes * 60);
    let local = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    match zone.as_bytes().first()? {
        b'+' => local.checked_sub(offset),
        b'-' => local.checked_add(offset),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_any_zone_are_understood() {
        let utc = parse_time("2026-03-01T12:00:00.123456789Z").unwrap();
        assert_eq!(parse_time("2026-03-01T13:30:00.123456789+01:30"), Some(utc));
        assert_eq!(parse_time("2026-03-01T07:00:00.123456789-05:00"), Some(utc));
        assert_eq!(parse_time("yesterday"), None);
    }
}
