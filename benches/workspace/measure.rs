//! Pairs of timings and their report.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;

/// How often each row is timed.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) calls: usize,
    pub(crate) transfers: usize,
    pub(crate) file_size: usize,
    pub(crate) tree_files: usize,
}

impl Plan {
    pub(crate) fn full() -> Self {
        Plan { calls: 30, transfers: 5, file_size: 64 << 20, tree_files: 5_000 }
    }

    /// Enough to see that every row still runs.
    pub(crate) fn quick() -> Self {
        Plan { calls: 1, transfers: 1, file_size: 1 << 20, tree_files: 100 }
    }
}

#[derive(Serialize)]
struct Row {
    name: String,
    rounds: usize,
    ours_ms: Spread,
    theirs: String,
    theirs_ms: Spread,
    /// The median of ours over theirs, pair by pair.
    ratio: f64,
}

#[derive(Serialize)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

pub(crate) struct Report {
    pub(crate) plan: Plan,
    filter: String,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(plan: Plan, filter: String) -> Self {
        Report { plan, filter, rows: Vec::new() }
    }

    /// Whether a row of this name was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Adds a row of pairs, each ours then theirs in milliseconds. The first pair warms up and does not count
    /// when there are others.
    pub(crate) fn add(&mut self, name: &str, theirs: &str, mut pairs: Vec<(f64, f64)>) {
        if pairs.len() > 1 {
            pairs.remove(0);
        }
        let ratio = Spread::of(pairs.iter().map(|(ours, theirs)| ours / theirs)).median;
        let row = Row {
            name: name.to_owned(),
            rounds: pairs.len(),
            ours_ms: Spread::of(pairs.iter().map(|pair| pair.0)),
            theirs: theirs.to_owned(),
            theirs_ms: Spread::of(pairs.iter().map(|pair| pair.1)),
            ratio,
        };
        eprintln!("{name}: {:.2} ms, {theirs}: {:.2} ms", row.ours_ms.median, row.theirs_ms.median);
        self.rows.push(row);
    }

    pub(crate) fn table(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.set_header([
            "row",
            "rounds",
            "ours, ms",
            "min-max",
            "theirs",
            "theirs, ms",
            "min-max",
            "ratio",
        ]);
        for row in &self.rows {
            table.add_row([
                row.name.clone(),
                row.rounds.to_string(),
                format!("{:.2}", row.ours_ms.median),
                format!("{:.2}-{:.2}", row.ours_ms.min, row.ours_ms.max),
                row.theirs.clone(),
                format!("{:.2}", row.theirs_ms.median),
                format!("{:.2}-{:.2}", row.theirs_ms.min, row.theirs_ms.max),
                format!("{:.2}", row.ratio),
            ]);
        }
        table
    }

    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&serde_json::json!({ "rows": self.rows }))?)
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Spread { min: at(0), median: at(values.len() / 2), max: at(values.len().saturating_sub(1)) }
    }
}

/// Runs `work` and gives the milliseconds it took.
pub(crate) async fn timed<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<f64> {
    let begun = Instant::now();
    work.await?;
    Ok(milliseconds(begun.elapsed()))
}

/// Runs a program to its end, which must be good, and gives the milliseconds it took.
pub(crate) async fn program(args: &[&str]) -> anyhow::Result<f64> {
    let [program, args @ ..] = args else { anyhow::bail!("no program") };
    let begun = Instant::now();
    let output = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("failed to run {program}"))?;
    let took = milliseconds(begun.elapsed());
    ensure!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Bytes that do not compress to nothing and are the same in every run.
pub(crate) fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A tar of `files` files of 100 bytes, a hundred to a directory.
pub(crate) fn tree(files: usize) -> anyhow::Result<Vec<u8>> {
    let content = bytes(100);
    let mut tar = tar::Builder::new(Vec::new());
    for index in 0..files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("d{}/f{index}", index / 100), content.as_slice())?;
    }
    Ok(tar.into_inner()?)
}
