//! What the containers and volumes of a workspace say about who owns them.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use crate::random::random_hex;

/// The label that holds the workspace's id; the others are below it.
pub(crate) const WORKSPACE: &str = "agentworkspace";
/// The label of a volume that holds a helper: the helper's digest.
pub(crate) const HELPER: &str = "agentworkspace.helper";
const MACHINE: &str = "agentworkspace.owner.machine";
const BOOT: &str = "agentworkspace.owner.boot";
const PID_NAMESPACE: &str = "agentworkspace.owner.pid_namespace";
const PID: &str = "agentworkspace.owner.pid";
const STARTED: &str = "agentworkspace.owner.started";
const CREATED: &str = "agentworkspace.created";
const KEPT: &str = "agentworkspace.kept";
const ROOT: &str = "agentworkspace.root";
const USER: &str = "agentworkspace.user";

/// A new workspace id: 32 random hexadecimal digits.
pub(crate) fn new_id() -> String {
    random_hex()
}

/// The process that owns a workspace, as far as the system tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The machine's id with its name, since cloned machines share an id.
    machine: Option<String>,
    /// Differs after each boot of a machine.
    boot: Option<String>,
    /// The inode of the process namespace that `pid` counts in.
    pid_namespace: Option<String>,
    pid: Option<String>,
    /// In clock ticks since the boot; tells a process from a later one of the same number.
    started: Option<String>,
}

impl Owner {
    /// This process.
    pub(crate) fn current() -> Owner {
        let read = |path: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let pid = std::process::id().to_string();
        Owner {
            machine: read("/etc/machine-id").map(|id| format!("{id}.{name}")),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: std::fs::metadata("/proc/self/ns/pid").ok().map(|ns| ns.ino().to_string()),
            started: start_time(&pid),
            pid: Some(pid),
        }
    }

    /// Whether this owner has ended; `None` when it cannot be known from here.
    pub(crate) fn is_dead(&self, here: &Owner) -> Option<bool> {
        let same = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => Some(a == b),
            _ => None,
        };
        if !same(&self.boot, &here.boot)? {
            // On this machine an earlier boot is over; of another machine nothing is known.
            return same(&self.machine, &here.machine)?.then_some(true);
        }
        if !same(&self.pid_namespace, &here.pid_namespace)? {
            return None;
        }
        let (pid, started) = (self.pid.as_deref()?, self.started.as_deref()?);
        Some(start_time(pid).is_none_or(|now| now != started))
    }

    fn from_labels(labels: &HashMap<String, String>) -> Owner {
        let get = |name: &str| labels.get(name).cloned();
        Owner {
            machine: get(MACHINE),
            boot: get(BOOT),
            pid_namespace: get(PID_NAMESPACE),
            pid: get(PID),
            started: get(STARTED),
        }
    }
}

/// When a process started, in clock ticks since the boot; `None` when there is none.
fn start_time(pid: &str) -> Option<String> {
    if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold anything; of those
    // after it the start time is the twentieth.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19).map(str::to_owned)
}

/// What labels say about a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    pub(crate) workspace_id: String,
    pub(crate) owner: Owner,
    pub(crate) created: Option<SystemTime>,
    pub(crate) kept: bool,
    pub(crate) root: Option<String>,
    /// `uid:gid`, once known.
    pub(crate) user: Option<String>,
}

impl Marks {
    /// Marks of a workspace that this process makes now.
    pub(crate) fn new(workspace_id: &str, root: &str, user: Option<&str>, kept: bool) -> Marks {
        Marks {
            workspace_id: workspace_id.to_owned(),
            owner: Owner::current(),
            created: Some(SystemTime::now()),
            kept,
            root: Some(root.to_owned()),
            user: user.map(str::to_owned),
        }
    }

    /// The marks among the labels of something; `None` when it is not a workspace's.
    pub(crate) fn from_labels(labels: &HashMap<String, String>) -> Option<Marks> {
        Some(Marks {
            workspace_id: labels.get(WORKSPACE).filter(|id| !id.is_empty())?.clone(),
            owner: Owner::from_labels(labels),
            created: labels.get(CREATED).and_then(|text| humantime::parse_rfc3339(text).ok()),
            kept: labels.get(KEPT).is_some_and(|kept| kept == "true"),
            root: labels.get(ROOT).cloned(),
            user: labels.get(USER).cloned(),
        })
    }

    /// The marks as labels, beside the caller's own.
    pub(crate) fn labels(&self, own: &BTreeMap<String, String>) -> HashMap<String, String> {
        let created = self.created.map(|at| humantime::format_rfc3339_seconds(at).to_string());
        let marks = [
            (WORKSPACE, Some(self.workspace_id.clone())),
            (MACHINE, self.owner.machine.clone()),
            (BOOT, self.owner.boot.clone()),
            (PID_NAMESPACE, self.owner.pid_namespace.clone()),
            (PID, self.owner.pid.clone()),
            (STARTED, self.owner.started.clone()),
            (CREATED, created),
            (KEPT, Some(self.kept.to_string())),
            (ROOT, self.root.clone()),
            (USER, self.user.clone()),
        ];
        let marks = marks.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        own.clone().into_iter().chain(marks).collect()
    }
}

/// Whether a label is one that only a workspace itself sets.
pub(crate) fn is_reserved(label: &str) -> bool {
    label == WORKSPACE || label.starts_with("agentworkspace.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_as_labels() {
        let marks = Marks::new("0123", "/work", Some("1:2"), true);
        let own = [("mine".to_owned(), "yes".to_owned())].into();
        let labels = marks.labels(&own);
        assert_eq!(labels["mine"], "yes");
        let back = Marks::from_labels(&labels).unwrap();
        assert_eq!((back.owner, back.root.as_deref(), back.kept), (marks.owner, Some("/work"), true));
        assert!(Marks::from_labels(&own.into_iter().collect()).is_none());
    }

    #[test]
    fn this_process_lives_and_a_reused_number_does_not() {
        let here = Owner::current();
        assert_eq!(here.is_dead(&here), Some(false));
        let earlier = Owner { started: Some("1".into()), ..here.clone() };
        assert_eq!(earlier.is_dead(&here), Some(true));
    }

    #[test]
    fn an_owner_elsewhere_is_not_called_dead() {
        let here = Owner { machine: Some("a.b".into()), ..Owner::current() };
        let rebooted = Owner { boot: Some("other".into()), ..here.clone() };
        assert_eq!(rebooted.is_dead(&here), Some(true));
        let other_machine = Owner { machine: Some("c".into()), ..rebooted.clone() };
        assert_eq!(other_machine.is_dead(&here), None);
        let no_machine = Owner { machine: None, ..rebooted };
        assert_eq!(no_machine.is_dead(&here), None);
        let other_namespace = Owner { pid_namespace: Some("1".into()), ..here.clone() };
        assert_eq!(other_namespace.is_dead(&here), None);
        assert_eq!(Owner::default().is_dead(&here), None);
    }
}
