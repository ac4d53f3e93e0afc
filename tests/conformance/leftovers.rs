//! What a run of the suite left behind.

/// Processes that carry a marker of this process, and containers, volumes and networks of it.
pub(crate) fn find() -> Vec<String> {
    // The form of `Place::marker`.
    let prefix = format!("1{:05}", std::process::id() % 100_000);
    let is_marker = |arg: &str| arg.len() == 10 && arg.starts_with(&prefix);
    let mut left: Vec<String> = processes()
        .into_iter()
        .filter(|(_, line)| line.split(|c: char| !c.is_ascii_digit()).any(is_marker))
        .map(|(pid, line)| format!("process {pid}: {line}"))
        .collect();
    left.extend(crate::docker::owned_by(std::process::id()));
    left.sort();
    left
}

/// Every process of this machine with its arguments.
pub(crate) fn processes() -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((pid, String::from_utf8_lossy(&arguments).replace('\0', " ")))
        })
        .collect()
}
