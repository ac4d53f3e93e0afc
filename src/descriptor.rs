//! What a workspace is: the short record for a session, and the details for a person.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which kind of place a workspace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A directory on this machine.
    Local,
    /// A container.
    Container,
    /// A workspace served by another host.
    Remote,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Local => "local",
            Kind::Container => "container",
            Kind::Remote => "remote",
        })
    }
}

/// Where an agent's tools ran: what a session records beside its results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Descriptor {
    /// Which kind of place.
    pub kind: Kind,
    /// What identifies it: for a container the digest of what it was really made from, always
    /// `sha256:` and 64 hex digits (the platform's manifest where the engine knows it, otherwise
    /// the image's configuration); for a remote workspace its host; empty for the local machine.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The absolute path of the root as the workspace's own processes see it.
    pub root: String,
}

impl Descriptor {
    /// A descriptor of these three.
    pub fn new(kind: Kind, reference: impl Into<String>, root: impl Into<String>) -> Self {
        Descriptor { kind, reference: reference.into(), root: root.into() }
    }
}

/// More about a workspace, for `inspect`, logs and results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Details {
    /// The workspace's own id, which its labels carry.
    pub workspace_id: String,
    /// How the container is reached: `helper` or `engine`; empty for a local workspace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub access: String,
    /// Why it is reached by engine calls, which are slower; empty where it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub access_reason: String,
    /// The user that commands run as, `uid:gid`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The container, when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerDetails>,
    /// The image, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageDetails>,
    /// The engine, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineDetails>,
    /// Every limit that applies, and what enforces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReport>,
    /// What the engine warned about and what is weaker here than elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The container of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContainerDetails {
    /// The engine's id of it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether the workspace made it, and so removes it.
    pub owned: bool,
}

/// The image of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImageDetails {
    /// The image reference as it was asked for.
    pub reference: String,
    /// The engine's id of the image that the container was made from, `sha256:...`.
    pub image_id: String,
    /// The digest under which the asked-for repository knows it, `name@sha256:...`; not proof
    /// that it can be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_digest: Option<String>,
    /// `os/architecture`, with a variant where there is one.
    pub platform: String,
}

/// The engine that runs a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EngineDetails {
    /// `docker` or `podman`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The API version agreed on.
    pub api_version: String,
    /// Its storage driver.
    pub storage: String,
    /// The cgroup version that limits are enforced by, `1` or `2`.
    pub cgroup_version: String,
}

/// One limit of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitReport {
    /// Its name: `memory`, `cpus`, `pids`, ...
    pub limit: String,
    /// What was asked for, in the words of the option; `None` for a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What applies.
    pub value: String,
    /// What enforces it: `cgroup v1`, `rlimit`, `mount option`, ...
    pub enforced_by: String,
}

impl LimitReport {
    /// A report of one limit.
    pub fn new(
        limit: impl Into<String>,
        asked: Option<String>,
        value: impl Into<String>,
        enforced_by: impl Into<String>,
    ) -> Self {
        LimitReport { limit: limit.into(), asked, value: value.into(), enforced_by: enforced_by.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_kind_ref_and_root_in_json() {
        let descriptor = Descriptor::new(Kind::Container, "sha256:00", "/workspace");
        let json = serde_json::to_string(&descriptor).unwrap();
        assert_eq!(json, r#"{"kind":"container","ref":"sha256:00","root":"/workspace"}"#);
        assert_eq!(serde_json::from_str::<Descriptor>(&json).unwrap(), descriptor);
    }
}
