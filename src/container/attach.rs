//! Opening a container that somebody else made and runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};

use super::accounts;
use super::create::{container_details, ports};
use super::engine::Engine;
use super::engine_env::EngineEnv;
use super::events;
use super::facts::EngineFacts;
use super::image;
use super::labels::{self, Marks};
use super::limits;
use super::lookup::normalized;
use super::monitor::Monitor;
#[cfg(feature = "helper")]
use super::options::Access;
use super::options::AttachOptions;
use super::progress::Timings;
use super::shared::{Opened, Shared};
use super::thaw::thaw;
use super::workspace::{ContainerWorkspace, Facts, Ownership};
use crate::descriptor::Details;
use crate::error::{Error, GoneReason, Result};

/// Where images keep a POSIX shell, most common first.
const SHELLS: [&str; 5] = ["/bin/sh", "/usr/bin/sh", "/bin/bash", "/bin/ash", "/busybox/sh"];

/// Where the kernel's own file systems are, of which the archive calls see only the image's
/// empty directories.
const KERNEL_MOUNTS: [&str; 3] = ["/proc", "/sys", "/dev"];

impl ContainerWorkspace {
    /// Opens the running container of this name or id, which stays somebody else's: closing the
    /// workspace ends what it started there and leaves the container as it was. In one without a POSIX
    /// shell nothing ends a command that was dropped, so closing is [`Error::Unsupported`] while one
    /// still runs.
    ///
    /// A kept container whose maker is dead is resumed when it is paused and stays so for 5 s: whoever
    /// used it last may have been killed with it paused. Any other that is paused is left so.
    ///
    /// # Errors
    ///
    /// [`Error::NoContainer`]; [`Error::Unsupported`] for [`Access::Helper`](super::Access), which is for
    /// containers that are made; [`Error::Gone`] for one that does not run; [`Error::NotFound`] and
    /// [`Error::NotADirectory`] for its root; [`Error::InvalidArgument`] for a user it does not
    /// know.
    pub async fn attach(
        engine: &Engine,
        container: &str,
        options: AttachOptions,
    ) -> Result<ContainerWorkspace> {
        options.env.check()?;
        #[cfg(feature = "helper")]
        if options.access == Access::Helper {
            return Err(Error::Unsupported {
                operation: "a helper in a container that is attached to".to_owned(),
                backend: crate::Kind::Container,
                reason: "such a container is reached by engine calls only".to_owned(),
            });
        }
        let facts = engine.facts().await?;
        let inspected = thaw(engine, inspect(engine, container).await?).await?;
        check_running(&inspected)?;
        let id = inspected.id.clone().unwrap_or_default();
        let config = inspected.config.clone().unwrap_or_default();
        // A kept container of ours says what its workspace was.
        let marks = config.labels.as_ref().and_then(Marks::from_labels);
        let (marked_root, marked_user) =
            marks.as_ref().map(|marks| (marks.root.clone(), marks.user.clone())).unwrap_or_default();
        let user = options.user.or(marked_user).or(config.user).unwrap_or_default();
        let root = options
            .root
            .or(marked_root)
            .or(config.working_dir)
            .filter(|root| !root.is_empty())
            .unwrap_or_else(|| "/".to_owned());
        let root = existing_root(engine, &id, &root).await?;
        let user = accounts::resolve(engine, &id, &user).await?;
        let shell = find_shell(engine, &id).await?;
        let own = config.env.unwrap_or_default();
        let engine_env = EngineEnv::of(engine, &id, &own, config.hostname.as_deref(), user.ids).await?;
        let opened = Opened {
            engine: engine.clone(),
            root,
            env: engine_env.workspace(options.clear_env, shell.is_some(), &options.env),
            home_is_the_users: engine_env.gives_home(&options.env),
            engine_env,
            user,
            shell,
            hidden_mounts: hidden_mounts(engine, &inspected).await?,
            read_only_rootfs: has_read_only_rootfs(&inspected),
            owned: false,
            exclusive: false,
            monitor: Monitor::new(),
            id,
        };
        let shared = Arc::new(Shared::new(opened));
        let facts_of_it = Facts {
            reference: image::digest(&inspected),
            details: details(&shared, &inspected, &facts, marks).await?,
            timings: Timings::default(),
            ports: ports(&inspected),
        };
        events::follow(&shared, facts.now, inspected.state.unwrap_or_default());
        Ok(ContainerWorkspace::by_engine(shared, Ownership::Attached, facts_of_it))
    }
}

/// Whether the container's own root file system cannot be written.
pub(super) fn has_read_only_rootfs(inspected: &ContainerInspectResponse) -> bool {
    inspected.host_config.as_ref().and_then(|config| config.readonly_rootfs) == Some(true)
}

/// What is told of a container that was attached to.
async fn details(
    shared: &Shared,
    inspected: &ContainerInspectResponse,
    facts: &EngineFacts,
    marks: Option<Marks>,
) -> Result<Details> {
    let engine = &shared.engine;
    // The image may be gone while its container runs.
    let image = image::inspect(engine, inspected.image.as_deref().unwrap_or_default()).await?;
    let reference = inspected.config.as_ref().and_then(|config| config.image.clone()).unwrap_or_default();
    let set = inspected.host_config.clone().unwrap_or_default();
    Ok(Details {
        workspace_id: marks.map_or_else(labels::new_id, |marks| marks.workspace_id),
        access: "engine".to_owned(),
        access_reason: "it was attached to".to_owned(),
        user: shared.user.to_string(),
        container: Some(container_details(inspected, false)),
        image: Some(image::details(&reference, inspected, image.as_ref())),
        engine: Some(facts.details.clone()),
        limits: limits::report(None, &set, facts),
        ..Default::default()
    })
}

/// What the engine says of a container.
pub(crate) async fn inspect(engine: &Engine, container: &str) -> Result<ContainerInspectResponse> {
    // The name becomes part of a URL unescaped.
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if container.is_empty() || !container.chars().all(is_name) {
        return Err(Error::NoContainer { container: container.to_owned() });
    }
    engine.inspect(container).await?.ok_or_else(|| Error::NoContainer { container: container.to_owned() })
}

fn check_running(inspected: &ContainerInspectResponse) -> Result<()> {
    let state = inspected.state.as_ref();
    match state.and_then(|state| state.status) {
        Some(Status::RUNNING) => Ok(()),
        Some(Status::PAUSED) => Err(Error::Gone { why: GoneReason::ContainerPaused }),
        _ => {
            let exit_code = state.and_then(|state| state.exit_code);
            Err(Error::Gone { why: GoneReason::ContainerExited { exit_code } })
        }
    }
}

/// The root without links, which must be a directory.
async fn existing_root(engine: &Engine, id: &str, root: &str) -> Result<String> {
    if !root.starts_with('/') {
        return Err(Error::InvalidArgument {
            reason: format!("the workspace root `{}` is not an absolute path", root.escape_debug()),
        });
    }
    match engine.look_up(id, root).await? {
        None => Err(Error::NotFound { path: root.to_owned() }),
        Some(found) if found.is_directory() => Ok(found.path),
        Some(_) => Err(Error::NotADirectory { path: root.to_owned() }),
    }
}

/// The path of a POSIX shell, if the container has one.
pub(crate) async fn find_shell(engine: &Engine, id: &str) -> Result<Option<String>> {
    for shell in SHELLS {
        match engine.look_up(id, shell).await {
            Ok(Some(found)) if found.is_executable_file() => return Ok(Some(shell.to_owned())),
            // An image may have anything at these places, loops included.
            Ok(_) | Err(Error::TooManyLinks { .. } | Error::Engine { status: Some(500), .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Where the archive calls see something else than processes do.
///
/// A runtime follows the links of the image to where a mount is to be, so that it may be elsewhere than
/// the container's settings say.
pub(crate) async fn hidden_mounts(
    engine: &Engine,
    inspected: &ContainerInspectResponse,
) -> Result<Vec<String>> {
    let mut told: BTreeSet<String> = KERNEL_MOUNTS.map(str::to_owned).into();
    if let Some(tmpfs) = inspected.host_config.as_ref().and_then(|config| config.tmpfs.as_ref()) {
        told.extend(tmpfs.keys().cloned());
    }
    for mount in inspected.mounts.iter().flatten() {
        if mount.typ.as_deref() == Some("tmpfs") {
            told.extend(mount.destination.clone());
        }
    }
    let id = inspected.id.as_deref().unwrap_or_default();
    let mut hidden = BTreeSet::new();
    for path in told {
        match engine.look_up(id, &path).await {
            Ok(Some(found)) => drop(hidden.insert(found.path)),
            // Somebody may have changed the links on the way since.
            Ok(None) | Err(Error::TooManyLinks { .. }) => {}
            Err(error) => return Err(error),
        }
        hidden.insert(normalized(&path));
    }
    Ok(hidden.into_iter().collect())
}
