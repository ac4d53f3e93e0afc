//! `close`: removes containers that were made to stay.

use agentworkspace::Target;
use agentworkspace::container::{Engine, remove};
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::json::Failure;
use crate::cli::status::{self, Status};

/// Remove containers that `create` or `run --keep` made.
///
/// One that something else made is refused, and so is one whose owner still uses it.
#[derive(Args)]
pub(crate) struct CloseArgs {
    /// The containers: `container:NAME_OR_ID`, or the name or id alone.
    #[arg(value_name = "TARGET", required = true, value_parser = container)]
    containers: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was done, as JSON.
#[derive(Default, Serialize)]
struct Closed {
    closed: Vec<String>,
    failed: Vec<NotClosed>,
}

/// What is still there.
#[derive(Serialize)]
struct NotClosed {
    name: String,
    error: Failure,
}

/// The name or id in a target.
fn container(text: &str) -> Result<String, String> {
    if !text.contains(':') && !text.is_empty() {
        return Ok(text.to_owned());
    }
    match text.parse::<Target>() {
        Ok(Target::Container(name)) => Ok(name),
        Ok(_) => Err(format!("`{text}` is no container, and there is nothing to remove")),
        Err(error) => Err(error.to_string()),
    }
}

/// Does it. One that cannot be removed does not keep the others.
pub(crate) async fn close(args: CloseArgs, context: &Context) -> anyhow::Result<Status> {
    let mut report = Closed::default();
    let closing = async {
        let engine = Engine::connect().await?;
        let mut first_failure = None;
        for container in &args.containers {
            let removed = remove(&engine, container).await;
            let removed = removed.with_context(|| format!("failed to close container:{container}"));
            match removed {
                Ok(()) => {
                    context.printer.detail(format_args!("removed {container}"));
                    report.closed.push(container.clone());
                }
                Err(failure) => {
                    report.failed.push(NotClosed { name: container.clone(), error: Failure::new(&failure) });
                    match first_failure {
                        None => first_failure = Some(failure),
                        Some(_) => context.printer.failure(&failure),
                    }
                }
            }
        }
        first_failure.map_or(Ok(status::OK), Err)
    };
    let done = context.interrupts.until(closing).await;
    if args.json {
        context.printer.json(&report)?;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_or_a_name_is_a_container() {
        assert_eq!(container("container:a"), Ok("a".to_owned()));
        assert_eq!(container("a"), Ok("a".to_owned()));
        for text in ["", "local:a", "image:a", "http://a"] {
            assert!(container(text).is_err(), "{text:?}");
        }
    }
}
