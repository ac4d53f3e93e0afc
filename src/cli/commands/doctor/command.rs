//! The subcommand: runs the checks and shows what they found.

use agentworkspace::container::{Engine, PruneOptions, prune};
use clap::Args;
use serde::Serialize;

use super::check::{Check, Verdict};
use super::{engine, limits, machine};
use crate::cli::context::Context;
use crate::cli::status::{self, Status};

/// Check what works here, and say how to mend what does not.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// All that was found.
#[derive(Serialize)]
struct Report {
    /// The worst of all.
    verdict: Verdict,
    checks: Vec<Check>,
}

/// Does it. The status is 1 when something fails.
pub(crate) async fn doctor(args: DoctorArgs, context: &Context) -> anyhow::Result<Status> {
    let checks = context.interrupts.until(async { Ok(all().await) }).await?;
    let verdict = checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok);
    let status = if verdict == Verdict::Fail { status::FAILED } else { status::OK };
    if args.json {
        context.printer.json(&Report { verdict, checks })?;
        return Ok(status);
    }
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for Check { name, verdict, found, mend } in checks {
        context.printer.line(format_args!("{}  {name:width$}  {found}", verdict.word()))?;
        if let Some(mend) = mend {
            context.printer.line(format_args!("      {:width$}  -> {mend}", ""))?;
        }
    }
    Ok(status)
}

async fn all() -> Vec<Check> {
    let mut checks = machine::checks().await;
    let (reached, found) = engine::reach().await;
    checks.extend(found);
    let Some(reached) = reached else { return checks };
    checks.extend(engine::checks(&reached));
    checks.extend(limits::checks(&reached.info));
    checks.push(leftovers().await);
    checks
}

/// What dead owners left in the engine.
async fn leftovers() -> Check {
    const NAME: &str = "leftovers";
    let looked = async { prune(&Engine::connect().await?, PruneOptions::default().dry_run(true)).await };
    match looked.await {
        Ok(report) => match report.containers.len() + report.volumes.len() {
            0 => Check::ok(NAME, "nothing of dead runs is left"),
            left => Check::warn(
                NAME,
                format!("{left} containers or volumes of dead runs are left"),
                "agentworkspace prune",
            ),
        },
        Err(error) => Check::warn(NAME, format!("they could not be listed: {error}"), "agentworkspace list"),
    }
}
