//! What the engine can enforce.

use bollard::models::SystemInfo;

use super::check::Check;

/// Checks limits, the first process and confinement.
pub(crate) fn checks(info: &SystemInfo) -> Vec<Check> {
    vec![limits(info), init(info), security(info)]
}

fn limits(info: &SystemInfo) -> Check {
    let cgroups = format!(
        "cgroup v{}, driver {}",
        info.cgroup_version.map_or_else(|| "?".to_owned(), |version| version.to_string()),
        info.cgroup_driver.map_or_else(|| "?".to_owned(), |driver| driver.to_string()),
    );
    let known = [
        ("memory", info.memory_limit),
        ("swap", info.swap_limit),
        ("cpus", info.cpu_cfs_quota),
        ("pids", info.pids_limit),
    ];
    let names = |wanted: bool| -> Vec<&str> {
        let matching = known.iter().filter(|(_, there)| there.unwrap_or(false) == wanted);
        matching.map(|(name, _)| *name).collect()
    };
    let missing = names(false);
    if missing.is_empty() {
        return Check::ok("limits", format!("{} ({cgroups})", names(true).join(", ")));
    }
    let mend = match has(info, "rootless") {
        true => {
            "delegate the controllers to this user: a drop-in for user@.service with \
             `Delegate=cpu cpuset io memory pids`, then log in again"
        }
        false => "boot with `cgroup_enable=memory swapaccount=1`, or upgrade to cgroup v2",
    };
    Check::warn("limits", format!("not enforced: {} ({cgroups})", missing.join(", ")), mend)
}

/// What an engine says in place of a version when its init program is missing.
const NO_INIT: &str = "N/A";

fn init(info: &SystemInfo) -> Check {
    let binary = info.init_binary.as_deref().unwrap_or_default();
    let commit = info.init_commit.as_ref().and_then(|commit| commit.id.as_deref()).unwrap_or_default();
    match commit {
        NO_INIT => Check::warn(
            "init",
            format!("the engine does not find its init program `{binary}`"),
            "sudo apt-get install tini, and link it as docker-init into the engine's PATH",
        ),
        _ if binary.is_empty() => Check::ok("init", "not stated by the engine"),
        _ => Check::ok("init", binary),
    }
}

fn security(info: &SystemInfo) -> Check {
    let options: Vec<&str> = info.security_options.iter().flatten().map(String::as_str).collect();
    let found = match options.is_empty() {
        true => "none stated by the engine".to_owned(),
        false => {
            options.iter().map(|option| option.trim_start_matches("name=")).collect::<Vec<_>>().join("; ")
        }
    };
    let has_filter = has(info, "seccomp") && !options.iter().any(|option| option.contains("unconfined"));
    match has_filter {
        true => Check::ok("security", found),
        false => Check::warn(
            "security",
            format!("no seccomp profile: {found}"),
            "leave `seccomp-profile` out of the engine's daemon.json, on a kernel with CONFIG_SECCOMP",
        ),
    }
}

fn has(info: &SystemInfo, option: &str) -> bool {
    let name = format!("name={option}");
    info.security_options.iter().flatten().any(|found| found.split(',').any(|part| part == name))
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_missing_controller_is_named() {
        let info = SystemInfo {
            memory_limit: Some(true),
            swap_limit: Some(true),
            cpu_cfs_quota: Some(true),
            pids_limit: Some(false),
            ..Default::default()
        };
        let check = limits(&info);
        assert_eq!(check.verdict, Verdict::Warn);
        assert!(check.found.starts_with("not enforced: pids "), "{}", check.found);
    }

    #[test]
    fn an_unconfined_engine_is_told() {
        let with = |option: &str| {
            let options = Some(vec![option.to_owned()]);
            security(&SystemInfo { security_options: options, ..Default::default() }).verdict
        };
        assert_eq!(with("name=seccomp,profile=default"), Verdict::Ok);
        assert_eq!(with("name=seccomp,profile=builtin"), Verdict::Ok);
        assert_eq!(with("name=seccomp,profile=unconfined"), Verdict::Warn);
        assert_eq!(with("name=apparmor"), Verdict::Warn);
    }
}
