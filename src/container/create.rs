//! Making a container for a workspace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerStateStatusEnum as Status, ImageInspect,
    VolumeCreateRequest,
};
use bollard::query_parameters::{CreateContainerOptionsBuilder, StartContainerOptions};

use super::attach::{has_read_only_rootfs, hidden_mounts, inspect};
use super::check;
#[cfg(feature = "helper")]
use super::create_with_helper::Failure;
use super::engine::{Engine, SLOW_CALL_TIMEOUT, is_refusal};
use super::engine_env::EngineEnv;
use super::events;
use super::facts::EngineFacts;
use super::image;
use super::labels::{self, Marks};
use super::limits;
use super::monitor::Monitor;
use super::options::ContainerOptions;
use super::pause;
use super::prepare::{Prepared, prepare};
use super::progress::{Progress, Stage, Timings};
use super::removal::{self, remove_container};
use super::shared::{Opened, Shared};
use super::spec::{self, FirstProcess, Plan};
use super::workspace::{ContainerWorkspace, Facts, Ownership};
use crate::descriptor::{ContainerDetails, Details};
use crate::error::{Error, ImageErrorKind, Result};

impl ContainerWorkspace {
    /// Makes a container and opens a workspace in it, telling `progress` what is being done.
    ///
    /// Closing the workspace removes the container, unless [`ContainerOptions::keep`] is set. A
    /// create that fails leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options that contradict each other, name nothing or would
    /// open the host; [`Error::Limit`] for a limit that cannot be enforced; [`Error::Image`];
    /// [`Error::NoEngine`]; [`Error::Engine`].
    ///
    /// # Cancel safety
    ///
    /// Dropped at any point, what has been made is removed in the background.
    pub async fn create(
        engine: &Engine,
        options: ContainerOptions,
        progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<ContainerWorkspace> {
        check::check(&options, engine.address())?;
        let facts = engine.facts().await?;
        limits::check_disk(&options, &facts)?;
        let (image, pull) = image::ensure(engine, &options, &progress).await?;
        let creation = Creation::new(engine, labels::new_id());
        let maker = Maker { engine, options, facts, image, creation: &creation, progress: &progress };
        let made = maker.make(pull).await;
        match made.is_ok() {
            true => creation.finish(),
            false => creation.undo().await,
        }
        made
    }
}

/// What has been made so far; removed unless it is finished.
pub(super) struct Creation {
    engine: Engine,
    pub(super) workspace_id: String,
    finished: AtomicBool,
    /// Whether a call that makes something has not answered.
    pending: AtomicBool,
}

impl Creation {
    fn new(engine: &Engine, workspace_id: String) -> Self {
        let (finished, pending) = (AtomicBool::new(false), AtomicBool::new(false));
        Creation { engine: engine.clone(), workspace_id, finished, pending }
    }

    /// Awaits a call that makes something.
    async fn making<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.pending.store(true, Ordering::Relaxed);
        let made = call.await;
        // Only an answer tells that the engine is through with it.
        if made.as_ref().err().is_none_or(is_refusal) {
            self.pending.store(false, Ordering::Relaxed);
        }
        made
    }

    fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    /// Removes what has been made, to begin again.
    #[cfg(feature = "helper")]
    async fn restart(&self) -> Result<()> {
        removal::remove_workspace(&self.engine, &self.workspace_id).await
    }

    /// Removes what has been made; what cannot be removed now is left to the drop.
    async fn undo(&self) {
        let removed = removal::remove_workspace(&self.engine, &self.workspace_id).await;
        if removed.is_ok() && !self.pending.load(Ordering::Relaxed) {
            self.finish();
        }
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if !*self.finished.get_mut() {
            let pending = *self.pending.get_mut();
            removal::remove_in_background(&self.engine, std::mem::take(&mut self.workspace_id), pending);
        }
    }
}

/// Everything that making a container needs.
pub(super) struct Maker<'a> {
    pub(super) engine: &'a Engine,
    pub(super) options: ContainerOptions,
    pub(super) facts: EngineFacts,
    pub(super) image: ImageInspect,
    pub(super) creation: &'a Creation,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
}

impl Maker<'_> {
    /// Makes it with a helper where one can run, unless asked for otherwise.
    #[cfg(feature = "helper")]
    async fn make(self, pull: Duration) -> Result<ContainerWorkspace> {
        let required = self.options.access == super::options::Access::Helper;
        let program = match self.helper() {
            Ok(program) => program,
            Err(reason) if required => return Err(no_helper(&reason)),
            Err(reason) => return self.make_by_engine(pull, &reason).await,
        };
        for attempt in 1.. {
            let error = match self.make_with_helper(program, pull).await {
                Ok(workspace) => return Ok(workspace),
                Err(Failure::Other(error)) => return Err(error),
                Err(Failure::Helper(error)) => error,
            };
            self.creation.restart().await?;
            if attempt == 1 {
                // Somebody may have emptied the volume, or removed it so that the engine made it anew.
                self.helper_volume(program).discard().await?;
                continue;
            }
            let reason = format!("the helper does not run in it: {}", with_sources(&error));
            return match required {
                true => Err(no_helper(&reason)),
                false => self.make_by_engine(pull, &reason).await,
            };
        }
        unreachable!("the loop ends only by returning")
    }

    #[cfg(not(feature = "helper"))]
    async fn make(self, pull: Duration) -> Result<ContainerWorkspace> {
        self.make_by_engine(pull, "the library was built without the helper").await
    }

    /// Tells what is being done.
    pub(super) fn tell(&self, stage: Stage) {
        (self.progress)(Progress::Stage(stage));
    }

    /// Makes it with nothing but the engine's own calls for this `reason`.
    async fn make_by_engine(self, pull: Duration, reason: &str) -> Result<ContainerWorkspace> {
        tracing::debug!(image = self.options.image, reason, "the container is reached by engine calls");
        let begin = Instant::now();
        self.tell(Stage::Creating);
        let architecture = self.image.architecture.clone().unwrap_or_default();
        let program = pause::program(&architecture);
        let options = &self.options;
        let root_volume = spec::needs_root_volume(options);
        let user = spec::user(options);
        let marks = Marks::new(&self.creation.workspace_id, &options.root, user.as_deref(), options.keep);
        let mut plan = Plan {
            labels: marks.labels(&options.labels),
            first_process: if program.is_some() { FirstProcess::Pause } else { FirstProcess::Sleep },
            volumes: Vec::new(),
            helper: None,
            seeds: false,
        };
        let (id, prepared, warnings) = if check::is_read_only(options) {
            self.make_volumes(&mut plan, root_volume).await?;
            let prepared = self.seed(&plan, program.as_deref(), root_volume).await?;
            let (id, warnings) = self.create(self.name(""), spec::body(options, &plan)).await?;
            (id, prepared, warnings)
        } else {
            let (id, warnings) = self.create(self.name(""), spec::body(options, &plan)).await?;
            self.tell(Stage::Preparing);
            let prepared = prepare(self.engine, &id, options, program.as_deref(), false).await?;
            (id, prepared, warnings)
        };
        let warnings = limits::check_warnings(options, warnings)?;
        let made = inspect(self.engine, &id).await?;
        image::check_digest(&options.image, options.require_digest.as_deref(), &made)?;
        let create = begin.elapsed();
        let begin = Instant::now();
        self.tell(Stage::Starting);
        self.start(&id).await?;
        let inspected = inspect(self.engine, &id).await?;
        check_started(&inspected)?;
        let timings = Timings { pull, create, start: begin.elapsed() };
        let own = inspected.config.clone().unwrap_or_default();
        let (variables, hostname) = (own.env.unwrap_or_default(), own.hostname);
        let user = prepared.user.ids;
        let engine_env = EngineEnv::of(self.engine, &id, &variables, hostname.as_deref(), user).await?;
        let hidden_mounts = hidden_mounts(self.engine, &inspected).await?;
        let opening =
            Opening { inspected, warnings, timings, hidden_mounts, access_reason: reason.to_owned() };
        let workspace = self.open(opening, prepared, engine_env);
        self.tell(Stage::Ready);
        Ok(workspace)
    }

    /// The container's name, or that of something beside it.
    pub(super) fn name(&self, suffix: &str) -> String {
        match &self.options.name {
            Some(name) if suffix.is_empty() => name.clone(),
            _ => format!("agentworkspace-{}{suffix}", &self.creation.workspace_id[..12]),
        }
    }

    /// Makes the volumes that stand in for a root file system that cannot be written.
    async fn make_volumes(&self, plan: &mut Plan, root_volume: bool) -> Result<()> {
        let mut volumes = Vec::new();
        if plan.first_process == FirstProcess::Pause {
            volumes.push((Some(self.name("-init")), pause::DIRECTORY.to_owned()));
        }
        if root_volume {
            volumes.push((Some(self.name("-root")), self.options.root.clone()));
        }
        for (name, _) in &volumes {
            let request = VolumeCreateRequest {
                name: name.clone(),
                labels: Some(plan.labels.clone()),
                ..Default::default()
            };
            let call = self.engine.docker().create_volume(request);
            let call = self.engine.call("make a volume", SLOW_CALL_TIMEOUT, call);
            self.creation.making(call).await?;
        }
        plan.volumes = volumes;
        Ok(())
    }

    /// Fills the volumes through a container that is never started, since the engine writes
    /// nothing at all into one whose root file system is read-only.
    async fn seed(&self, plan: &Plan, program: Option<&[u8]>, root_volume: bool) -> Result<Prepared> {
        let body = spec::body(&self.options, &Plan { seeds: true, ..plan.clone() });
        let (id, _) = self.create(self.name("-seed"), body).await?;
        self.tell(Stage::Preparing);
        let prepared = prepare(self.engine, &id, &self.options, program, root_volume).await?;
        remove_container(self.engine, &id).await?;
        Ok(prepared)
    }

    /// The engine's create call; what it refuses by the caller's options is typed.
    pub(super) async fn create(
        &self,
        name: String,
        body: ContainerCreateBody,
    ) -> Result<(String, Vec<String>)> {
        let platform = self.options.platform.as_deref().unwrap_or_default();
        let query = CreateContainerOptionsBuilder::default().name(&name).platform(platform).build();
        let call = self.engine.docker().create_container(Some(query), body);
        let call = self.engine.call("make the container", SLOW_CALL_TIMEOUT, call);
        match self.creation.making(call).await {
            Ok(made) => Ok((made.id, made.warnings)),
            Err(error) => Err(self.refusal(&name, error)),
        }
    }

    /// What the refusal of a create or start means.
    fn refusal(&self, name: &str, error: Error) -> Error {
        let Error::Engine { status: Some(status), message, operation } = error else { return error };
        let text = message.to_ascii_lowercase();
        let invalid = |reason: String| Error::InvalidArgument { reason };
        if let Some(limit) = limits::refused_limit(&self.options, &message) {
            return Error::Limit { limit: limit.to_owned(), reason: message };
        }
        let is_image = status == 404 && text.contains("image");
        if is_image {
            // It was there a moment ago.
            let reference = self.options.image.clone();
            return Error::Image { reference, kind: ImageErrorKind::NotPresent };
        }
        if status == 409 {
            return invalid(format!("the container name `{name}` is taken: {message}"));
        }
        if self.options.gpus.is_some() && text.contains("device driver") {
            return Error::Unsupported {
                operation: "giving it GPUs".to_owned(),
                backend: crate::Kind::Container,
                reason: message,
            };
        }
        let is_ours = status == 400
            || text.contains("network") && text.contains("not found")
            || text.contains("runtime name")
            || text.contains("port is already allocated")
            || text.contains("address already in use");
        if is_ours {
            return invalid(format!("the engine refuses the container: {message}"));
        }
        Error::Engine { operation, status: Some(status), message }
    }

    pub(super) async fn start(&self, id: &str) -> Result<()> {
        let call = self.engine.docker().start_container(id, None::<StartContainerOptions>);
        let started = self.engine.call("start the container", SLOW_CALL_TIMEOUT, call).await;
        started.map_err(|error| self.refusal(&self.name(""), error))
    }

    /// The workspace of the container that runs.
    fn open(&self, opening: Opening, prepared: Prepared, engine_env: EngineEnv) -> ContainerWorkspace {
        let Opening { inspected, warnings, timings, hidden_mounts, access_reason } = opening;
        let options = &self.options;
        let opened = Opened {
            engine: self.engine.clone(),
            id: inspected.id.clone().unwrap_or_default(),
            root: options.root.clone(),
            env: engine_env.workspace(options.clear_env, prepared.shell.is_some(), &options.env),
            home_is_the_users: engine_env.gives_home(&options.env),
            engine_env,
            user: prepared.user,
            shell: prepared.shell,
            hidden_mounts,
            read_only_rootfs: has_read_only_rootfs(&inspected),
            owned: true,
            exclusive: !options.keep,
            monitor: Monitor::new(),
        };
        let shared = Arc::new(Shared::new(opened));
        let set = inspected.host_config.clone().unwrap_or_default();
        let mut details = Details {
            workspace_id: self.creation.workspace_id.clone(),
            access: "engine".to_owned(),
            access_reason,
            user: shared.user.to_string(),
            container: Some(container_details(&inspected, true)),
            image: Some(image::details(&options.image, &inspected, Some(&self.image))),
            engine: Some(self.facts.details.clone()),
            limits: limits::report(Some(options), &set, &self.facts),
            ..Default::default()
        };
        details.warnings = warnings;
        let facts =
            Facts { reference: image::digest(&inspected), details, timings, ports: ports(&inspected) };
        events::follow(&shared, self.facts.now, inspected.state.unwrap_or_default());
        let id = self.creation.workspace_id.clone();
        let ownership = if options.keep { Ownership::Kept } else { Ownership::Owned { workspace_id: id } };
        ContainerWorkspace::by_engine(shared, ownership, facts)
    }
}

/// What is known of a container that runs.
struct Opening {
    inspected: ContainerInspectResponse,
    warnings: Vec<String>,
    timings: Timings,
    hidden_mounts: Vec<String>,
    /// Why there is no helper.
    access_reason: String,
}

#[cfg(feature = "helper")]
fn no_helper(reason: &str) -> Error {
    Error::Unsupported {
        operation: "a container with a helper".to_owned(),
        backend: crate::Kind::Container,
        reason: reason.to_owned(),
    }
}

/// An error with what it came from.
#[cfg(feature = "helper")]
fn with_sources(error: &Error) -> String {
    let sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

/// What is told of the container itself.
pub(crate) fn container_details(inspected: &ContainerInspectResponse, owned: bool) -> ContainerDetails {
    let name = inspected.name.as_deref().unwrap_or_default();
    ContainerDetails {
        id: inspected.id.clone().unwrap_or_default(),
        name: name.trim_start_matches('/').to_owned(),
        owned,
    }
}

/// The TCP ports that the engine's host really serves, by the port in the container.
pub(crate) fn ports(inspected: &ContainerInspectResponse) -> BTreeMap<u16, u16> {
    let ports = inspected.network_settings.as_ref().and_then(|settings| settings.ports.as_ref());
    let served = ports.into_iter().flatten().filter_map(|(name, bindings)| {
        let port = name.strip_suffix("/tcp")?.parse().ok()?;
        let host = bindings.as_ref()?.iter().find_map(|binding| binding.host_port.as_ref()?.parse().ok())?;
        Some((port, host))
    });
    served.collect()
}

/// Refuses a container whose first process ended at once.
fn check_started(inspected: &ContainerInspectResponse) -> Result<()> {
    let state = inspected.state.clone().unwrap_or_default();
    if state.status == Some(Status::RUNNING) {
        return Ok(());
    }
    let code = state.exit_code.map(|code| format!(" with status {code}")).unwrap_or_default();
    let error = state.error.filter(|error| !error.is_empty()).map(|error| format!(": {error}"));
    Err(Error::Engine {
        operation: "start the container".to_owned(),
        status: None,
        message: format!("its first process ended at once{code}{}", error.unwrap_or_default()),
    })
}
