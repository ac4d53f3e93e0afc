//! Which limits a container really has, and what enforces them.

use bollard::models::HostConfig;

use super::facts::EngineFacts;
use super::options::ContainerOptions;
use crate::descriptor::LimitReport;
use crate::error::{Error, Result};

/// What engines use for `/dev/shm` unless told otherwise.
const DEFAULT_SHM: i64 = 64 * 1024 * 1024;

/// Refuses a limit on the container's layer where the store ignores it.
pub(crate) fn check_disk(options: &ContainerOptions, facts: &EngineFacts) -> Result<()> {
    if options.disk.is_some() && facts.containerd_store {
        return Err(Error::Limit {
            limit: "disk".to_owned(),
            reason: "the engine's containerd image store ignores it; a storage driver with quotas is needed"
                .to_owned(),
        });
    }
    Ok(())
}

/// The limit that a warning of the engine says it dropped, if it says so.
pub(crate) fn dropped_limit(warning: &str) -> Option<&'static str> {
    let text = warning.to_ascii_lowercase();
    let is_dropped = ["discarded", "does not support", "without swap", "not mounted", "ignored"]
        .iter()
        .any(|word| text.contains(word));
    let limits = [
        ("swap", "memory"),
        ("memory", "memory"),
        ("pids", "pids"),
        ("cpu", "cpus"),
        ("storage-opt", "disk"),
        ("quota", "disk"),
        ("shm", "shm"),
    ];
    let named = limits.iter().find(|(word, _)| text.contains(word))?;
    is_dropped.then_some(named.1)
}

/// Splits the warnings of a create call: a limit that was asked for and dropped is an error, the
/// rest is kept.
pub(crate) fn check_warnings(options: &ContainerOptions, warnings: Vec<String>) -> Result<Vec<String>> {
    for warning in &warnings {
        let asked = match dropped_limit(warning) {
            Some("memory") => options.memory.is_some(),
            Some("cpus") => options.cpus.is_some(),
            Some("pids") => options.pids > 0,
            Some("disk") => options.disk.is_some(),
            Some("shm") => options.shm.is_some(),
            _ => false,
        };
        if let (true, Some(limit)) = (asked, dropped_limit(warning)) {
            return Err(Error::Limit { limit: limit.to_owned(), reason: warning.clone() });
        }
    }
    Ok(warnings)
}

/// The limit behind a create or start that failed, when the engine's words name one.
pub(crate) fn refused_limit(options: &ContainerOptions, message: &str) -> Option<&'static str> {
    let text = message.to_ascii_lowercase();
    if options.disk.is_some()
        && ["storage-opt", "storage opt", "pquota", "quota"].iter().any(|w| text.contains(w))
    {
        return Some("disk");
    }
    if options.cpus.is_some()
        && (text.contains("nanocpus") || text.contains("range of cpus") || text.contains("cpu cfs"))
    {
        return Some("cpus");
    }
    let is_memory = text.contains("memory limit") || text.contains("memory.limit");
    (options.memory.is_some() && is_memory).then_some("memory")
}

/// Every limit that applies to a container, by what the engine says it has set.
pub(crate) fn report(
    options: Option<&ContainerOptions>,
    set: &HostConfig,
    facts: &EngineFacts,
) -> Vec<LimitReport> {
    let cgroup = format!("cgroup v{}", facts.details.cgroup_version);
    let asked = |value: Option<String>| options.and(value);
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let bytes = |limit: Option<i64>| match limit {
        Some(limit) if limit > 0 => format!("{limit} bytes"),
        _ => "unlimited".to_owned(),
    };
    let enforced =
        |value: &str, by: &str| if value == "unlimited" { "nothing".to_owned() } else { by.to_owned() };
    let mut limits = Vec::new();
    let mut add = |name: &str, asked: Option<String>, value: String, by: &str| {
        let by = enforced(&value, by);
        limits.push(LimitReport::new(name, asked, value, by));
    };
    add("memory", asked(options.and_then(|o| number(o.memory))), bytes(set.memory), &cgroup);
    let swap = match (set.memory, set.memory_swap) {
        (Some(memory), Some(both)) if memory > 0 && both >= memory => match both - memory {
            0 => "none".to_owned(),
            swap => format!("{swap} bytes"),
        },
        _ => "unlimited".to_owned(),
    };
    add("swap", None, swap, &cgroup);
    let cpus = match (set.nano_cpus, set.cpu_quota, set.cpu_period) {
        (Some(nano), _, _) if nano > 0 => format!("{} cores", nano as f64 / 1e9),
        // Podman answers the quota that it made of the number.
        (_, Some(quota), Some(period)) if quota > 0 && period > 0 => {
            format!("{} cores", quota as f64 / period as f64)
        }
        _ => "unlimited".to_owned(),
    };
    add("cpus", asked(options.and_then(|o| o.cpus).map(|cpus| cpus.to_string())), cpus, &cgroup);
    let pids = match set.pids_limit {
        Some(pids) if pids > 0 => pids.to_string(),
        _ => "unlimited".to_owned(),
    };
    add("pids", asked(options.map(|o| o.pids.to_string())), pids, &cgroup);
    for ulimit in set.ulimits.iter().flatten() {
        if let (Some(name), Some(hard)) = (&ulimit.name, ulimit.hard) {
            add(name, None, hard.to_string(), "rlimit");
        }
    }
    let shm = Some(set.shm_size.filter(|size| *size > 0).unwrap_or(DEFAULT_SHM));
    add("shm", asked(options.and_then(|o| number(o.shm))), bytes(shm), "mount option");
    let disk = set.storage_opt.as_ref().and_then(|opt| opt.get("size")).cloned();
    let disk_value = disk.map_or_else(|| "unlimited".to_owned(), |size| format!("{size} bytes"));
    let by = format!("quota of {}", facts.details.storage);
    add("disk", asked(options.and_then(|o| number(o.disk))), disk_value, &by);
    for (target, flags) in set.tmpfs.iter().flatten() {
        if let Some(size) = flags.split(',').find_map(|flag| flag.strip_prefix("size=")) {
            add(&format!("tmpfs {target}"), None, size.to_owned(), "mount option");
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_limit_is_an_error_only_when_it_was_asked_for() {
        let warning = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. \
                       Memory limited without swap.";
        let asked = ContainerOptions::new("image").memory(64 << 20);
        let error = check_warnings(&asked, vec![warning.to_owned()]).unwrap_err();
        assert!(matches!(error, Error::Limit { ref limit, .. } if limit == "memory"), "{error}");
        let kept = check_warnings(&ContainerOptions::new("image"), vec![warning.to_owned()]).unwrap();
        assert_eq!(kept, [warning]);
    }

    #[test]
    fn a_refused_quota_is_the_disk_limit() {
        let options = ContainerOptions::new("image").disk(1 << 30);
        let message = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
        assert_eq!(refused_limit(&options, message), Some("disk"));
        assert_eq!(refused_limit(&ContainerOptions::new("image"), message), None);
    }
}
