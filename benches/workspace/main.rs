//! What one call costs, against the command that a person would use instead, in the same run.
//!
//! Every row times ours and theirs in turn, so that a machine that slows down slows both. The table goes to
//! standard output, the figures to `target/bench/summary.json`.

mod container;
mod local;
mod measure;
mod remote;

use std::path::Path;

use agentworkspace::container::Access;
use measure::{Plan, Report};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // `cargo bench` passes `--bench`, and `cargo test --benches` runs this as a test, with one round of each.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = if arguments.iter().any(|a| a == "--bench") { Plan::full() } else { Plan::quick() };
    let filter = arguments.iter().find(|a| !a.starts_with('-')).cloned().unwrap_or_default();
    let mut report = Report::new(plan, filter);
    local::rows(&mut report).await?;
    remote::rows(&mut report).await?;
    for (access, way) in [(Access::Helper, "helper"), (Access::Engine, "engine")] {
        for image in ["busybox", "debian"] {
            let (backend, tag) = (format!("{image} by {way}"), format!("agentworkspace/{image}:test"));
            container::rows(&mut report, &backend, &tag, access).await?;
        }
    }
    println!("{}", report.table());
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    std::fs::create_dir_all(&target)?;
    std::fs::write(target.join("summary.json"), report.json()?)?;
    Ok(())
}
