//! What is done to the container or its engine, and what must come of it.

use std::time::{Duration, Instant};

use agentworkspace::container::{Access, ContainerOptions, ContainerWorkspace, Engine, PullPolicy};
use agentworkspace::{Error, GoneReason, Workspace as _};
use anyhow::{Context as _, ensure};
use tokio::sync::mpsc;

use crate::engine::{IMAGE, PrivateEngine};
use crate::operations::{Operation, prepare};

/// How long the error may take.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Kill,
    Remove,
    Pause,
    Restart,
    StopEngine,
}

impl Fault {
    pub(crate) const ALL: [Fault; 5] =
        [Fault::Kill, Fault::Remove, Fault::Pause, Fault::Restart, Fault::StopEngine];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Kill => "container_killed",
            Fault::Remove => "container_removed",
            Fault::Pause => "container_paused",
            Fault::Restart => "container_restarted",
            Fault::StopEngine => "engine_stopped",
        }
    }

    fn inject(self, engine: &PrivateEngine, container: &str) -> anyhow::Result<()> {
        match self {
            Fault::Kill => engine.run(&["kill", container]),
            Fault::Remove => engine.run(&["rm", "-fv", container]),
            Fault::Pause => pause(engine, container),
            Fault::Restart => engine.run(&["restart", "-t", "0", container]),
            Fault::StopEngine => engine.down(),
        }
    }

    fn explains(self, error: &Error) -> bool {
        let Error::Gone { why } = error else { return false };
        match self {
            Fault::Kill => matches!(why, GoneReason::ContainerKilled),
            // It is killed before it is removed, and either may be seen first.
            Fault::Remove => matches!(why, GoneReason::ContainerRemoved | GoneReason::ContainerKilled),
            Fault::Pause => matches!(why, GoneReason::ContainerPaused),
            // It is stopped, at once with SIGKILL, before it is started again, and either may be seen first.
            Fault::Restart => matches!(
                why,
                GoneReason::ContainerRestarted
                    | GoneReason::ContainerKilled
                    | GoneReason::ContainerExited { exit_code: Some(137) }
            ),
            // A stopping engine first kills its containers.
            Fault::StopEngine => {
                matches!(
                    why,
                    GoneReason::EngineUnreachable { .. }
                        | GoneReason::ContainerKilled
                        | GoneReason::ContainerExited { .. }
                )
            }
        }
    }
}

/// Pauses a container, which an operation may have paused itself for a moment.
fn pause(engine: &PrivateEngine, container: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match engine.run(&["pause", container]) {
            Err(error) if Instant::now() < deadline && format!("{error:#}").contains("already paused") => {}
            other => return other,
        }
    }
}

pub(crate) fn check(
    engine: &PrivateEngine,
    access: Access,
    fault: Fault,
    operation: Operation,
) -> anyhow::Result<()> {
    let poisoned = "another trial panicked while the engine was down";
    let (mut exclusive, mut shared) = (None, None);
    if matches!(fault, Fault::StopEngine) {
        exclusive = Some(engine.in_use.write().ok().context(poisoned)?);
    } else {
        shared = Some(engine.in_use.read().ok().context(poisoned)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(observe(engine, access, fault, operation));
    if matches!(fault, Fault::StopEngine) {
        engine.up().context("the second engine did not come back")?;
        engine.remove_containers()?;
    }
    drop((exclusive, shared));
    result
}

async fn observe(
    engine: &PrivateEngine,
    access: Access,
    fault: Fault,
    operation: Operation,
) -> anyhow::Result<()> {
    let client = Engine::connect_to(&engine.address()).await?;
    let options = ContainerOptions::new(IMAGE).pull(PullPolicy::Never).access(access);
    let workspace = ContainerWorkspace::create(&client, options, |_| {}).await?;
    let container = workspace.details().container.context("it is a container")?.id;
    prepare(&workspace).await?;
    let (begun, mut told) = mpsc::unbounded_channel();
    let error = {
        let running = operation.until_error(&workspace, &begun);
        let fault = async {
            // Well under way: the second round or the second piece.
            for _ in 0..if matches!(operation, Operation::Exec | Operation::Start) { 1 } else { 2 } {
                told.recv().await;
            }
            tokio::task::block_in_place(|| fault.inject(engine, &container))?;
            tokio::time::sleep(DEADLINE).await;
            anyhow::bail!("no error within {DEADLINE:?} of the fault")
        };
        tokio::select! {
            error = running => error,
            fault = fault => return fault,
        }
    };
    if matches!(fault, Fault::Pause) {
        tokio::task::block_in_place(|| engine.unpause(&container))?;
    }
    ensure!(fault.explains(&error), "the error is {error:?}");
    if !matches!(fault, Fault::StopEngine) {
        workspace.close().await?;
    }
    Ok(())
}
