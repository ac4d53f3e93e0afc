//! Every process below another one, and signals to all of them.

use std::collections::{HashMap, HashSet};

use crate::signal::Signal;

use super::pidfd::ProcessFd;

/// How many times the tree is read again for processes that were forked meanwhile. A tree that
/// grows faster than that is one that no signal but SIGKILL reaches as a whole.
const MAX_ROUNDS: usize = 16;

/// One process as `/proc/<pid>/stat` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    pid: i32,
    parent: i32,
    session: i32,
    /// In clock ticks since boot; with the id it names one process for good.
    start: u64,
}

/// Sends `signal` once to every process below `root`, which itself gets none. Reads `/proc`, and so
/// belongs on a blocking thread.
pub(super) fn signal_below(root: i32, signal: Signal) {
    signal_rounds(signal, |processes| below(processes, &[root]));
}

/// Kills what can still be found of a command whose supervisor was killed: the members of the
/// leader's session and everything below them. A process that had both left the session and lost
/// its parent by then is out of reach.
pub(super) fn kill_session(leader: i32) {
    signal_rounds(Signal::KILL, |processes| {
        let members: Vec<i32> = processes.iter().filter(|p| p.session == leader).map(|p| p.pid).collect();
        let mut found = below(processes, &members);
        found.extend(processes.iter().filter(|p| p.session == leader));
        found
    });
}

/// Signals what `select` finds until it finds nothing that has not been signaled.
fn signal_rounds(signal: Signal, select: impl Fn(&[Entry]) -> Vec<Entry>) {
    let mut signaled = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut found = false;
        for process in select(&processes()) {
            if signaled.insert((process.pid, process.start)) {
                found = true;
                signal_one(process, signal);
            }
        }
        if !found {
            return;
        }
    }
}

/// Signals `process` unless its id stands for another one by now.
fn signal_one(process: Entry, signal: Signal) {
    let Ok(handle) = ProcessFd::open(process.pid) else { return };
    // The descriptor is fixed from here on; that it is of the process meant is checked after it.
    if read(process.pid).is_some_and(|now| now.start == process.start) {
        // That it has ended since, or has another owner, is nothing that could be helped.
        let _ = handle.send(signal);
    }
}

/// Everything below `roots`, parents before their children.
fn below(processes: &[Entry], roots: &[i32]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<Entry>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = roots.to_vec();
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Every process that `/proc` shows.
fn processes() -> Vec<Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(pid: i32) -> Option<Entry> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// `pid (name) state ppid pgrp session ... start ...`; the name may hold anything, parentheses too.
fn parse(pid: i32, stat: &str) -> Option<Entry> {
    /// The places of the fields, counted from the state.
    const PARENT: usize = 1;
    const SESSION: usize = 3;
    const START: usize = 19;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some(Entry {
        pid,
        parent: fields.get(PARENT)?.parse().ok()?,
        session: fields.get(SESSION)?.parse().ok()?,
        start: fields.get(START)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "7 (a) R 1 (b) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0";
        assert_eq!(parse(7, stat), Some(Entry { pid: 7, parent: 3, session: 5, start: 777 }));
    }

    #[test]
    fn only_what_is_below_is_found() {
        let entry = |pid, parent| Entry { pid, parent, session: 0, start: 0 };
        let processes = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1)];
        let found: Vec<i32> = below(&processes, &[2]).iter().map(|p| p.pid).collect();
        assert_eq!(found, [3, 4]);
    }
}
