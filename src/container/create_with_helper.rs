//! Making a container whose first process is a helper.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::models::ContainerInspectResponse;

use super::accounts::User;
use super::attach::{has_read_only_rootfs, inspect};
use super::check;
use super::close::Closing;
use super::create::{Maker, container_details, ports};
use super::engine_env::EngineEnv;
use super::events;
use super::helper::{self, HelperAccess, Program, Volume};
use super::image;
use super::labels::Marks;
use super::limits;
use super::monitor::Monitor;
use super::options::{Access, Profile};
use super::prepare::prepare_root;
use super::progress::{Stage, Timings};
use super::removal::remove_container;
use super::shared::{Opened, Shared, UserIds};
use super::spec::{self, FirstProcess, Plan};
use super::workspace::{ContainerWorkspace, Facts, Ownership};
use crate::descriptor::Details;
use crate::error::{Error, Result};
use crate::helper::Setup;
use crate::remote::RemoteWorkspace;
use crate::workspace::Workspace as _;

/// Why no container with a helper was made.
#[derive(Debug)]
pub(super) enum Failure {
    /// The helper does not run in it.
    Helper(Error),
    /// No container would have been made in any way.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

impl Maker<'_> {
    /// The helper for this container; why there is none.
    pub(super) fn helper(&self) -> Result<&'static Program, String> {
        if self.options.access == Access::Engine {
            return Err("it was asked for".to_owned());
        }
        if self.options.keep {
            return Err("a helper ends with its owner, and the container is to be kept".to_owned());
        }
        helper::find(self.image.architecture.as_deref().unwrap_or_default())
    }

    /// The volume that holds it.
    pub(super) fn helper_volume(&self, program: &'static Program) -> Volume<'_> {
        let platform = self.options.platform.as_deref().unwrap_or_default();
        Volume::new(self.engine, program, &self.options.image, platform)
    }

    /// Makes a container that `program` serves.
    pub(super) async fn make_with_helper(
        &self,
        program: &'static Program,
        pull: Duration,
    ) -> Result<ContainerWorkspace, Failure> {
        let begin = Instant::now();
        self.tell(Stage::Creating);
        let options = &self.options;
        let volume = self.helper_volume(program);
        volume.ensure().await?;
        let user = spec::user(options);
        let marks = Marks::new(&self.creation.workspace_id, &options.root, user.as_deref(), false);
        let root_volume = spec::needs_root_volume(options).then(|| (None, options.root.clone()));
        let plan = Plan {
            labels: marks.labels(&options.labels),
            first_process: FirstProcess::Helper(program.path()),
            volumes: root_volume.into_iter().collect(),
            helper: Some(volume.mount()),
            seeds: false,
        };
        let (id, warnings) = self.create(self.name(""), spec::body(options, &plan)).await?;
        let warnings = limits::check_warnings(options, warnings)?;
        let made = inspect(self.engine, &id).await?;
        image::check_digest(&options.image, options.require_digest.as_deref(), &made)?;
        self.tell(Stage::Preparing);
        let user = self.give_root(&made, plan).await?;
        let create = begin.elapsed();

        let begin = Instant::now();
        self.tell(Stage::Starting);
        let stream = helper::attach(self.engine, &id).await?;
        if let Err(error) = self.start(&id).await {
            let is_its_own = error.to_string().contains(&program.path());
            return Err(if is_its_own { Failure::Helper(error) } else { Failure::Other(error) });
        }
        let setup = Setup {
            make_root: user.is_none(),
            clear_env: options.clear_env,
            ..Setup::new(&options.root, &options.env)
        };
        let reference = image::digest(&made);
        let (remote, inspected) =
            tokio::join!(helper::connect(stream, &setup, &reference), inspect(self.engine, &id));
        let remote = remote.map_err(|error| match error {
            Error::Gone { .. } | Error::Timeout { .. } | Error::Io { .. } => Failure::Helper(error),
            error => Failure::Other(error),
        })?;
        let timings = Timings { pull, create, start: begin.elapsed() };
        let user = user.unwrap_or(User { ids: UserIds { uid: 0, gid: 0 }, words: "0:0".to_owned() });
        let workspace = self.open_with_helper(inspected?, user, remote, warnings, timings);
        self.tell(Stage::Ready);
        Ok(workspace)
    }

    /// Makes the root and gives it to the workspace's user, unless that is root, for whom the helper
    /// can do it; whom it was given to.
    async fn give_root(&self, made: &ContainerInspectResponse, plan: Plan) -> Result<Option<User>> {
        let options = &self.options;
        let of_image = made.config.as_ref().and_then(|config| config.user.clone());
        let name = spec::user(options).or(of_image).unwrap_or_default();
        let is_root = matches!(name.as_str(), "" | "0" | "0:0" | "root" | "root:root");
        if is_root && options.profile != Profile::Strict {
            return Ok(None);
        }
        let id = made.id.as_deref().unwrap_or_default();
        if !check::is_read_only(options) {
            return Ok(Some(prepare_root(self.engine, id, options, None, false).await?));
        }
        // The engine writes nothing into a container whose root file system is read-only, so the
        // volume is given away through another one, under the name that it was given.
        let mounted = made.mounts.iter().flatten();
        let mounted = mounted.filter(|mount| mount.destination.as_ref() == Some(&options.root));
        let name = mounted.filter_map(|mount| mount.name.clone()).next();
        let owns_root = !plan.volumes.is_empty();
        let volumes = plan.volumes.iter().map(|(_, target)| (name.clone(), target.clone())).collect();
        let body = spec::body(options, &Plan { volumes, seeds: true, ..plan });
        let (seed, _) = self.create(self.name("-seed"), body).await?;
        let user = prepare_root(self.engine, &seed, options, None, owns_root).await?;
        remove_container(self.engine, &seed).await?;
        Ok(Some(user))
    }

    /// The workspace of the container that runs.
    fn open_with_helper(
        &self,
        inspected: ContainerInspectResponse,
        user: User,
        remote: RemoteWorkspace,
        warnings: Vec<String>,
        timings: Timings,
    ) -> ContainerWorkspace {
        let opened = Opened {
            engine: self.engine.clone(),
            id: inspected.id.clone().unwrap_or_default(),
            root: remote.descriptor().root,
            env: remote.env(),
            home_is_the_users: false,
            engine_env: EngineEnv::none(),
            user,
            shell: None,
            hidden_mounts: Vec::new(),
            read_only_rootfs: has_read_only_rootfs(&inspected),
            owned: true,
            exclusive: true,
            monitor: Monitor::removed_at_end(),
        };
        let shared = Arc::new(Shared::new(opened));
        let set = inspected.host_config.clone().unwrap_or_default();
        let details = Details {
            workspace_id: self.creation.workspace_id.clone(),
            access: "helper".to_owned(),
            access_reason: String::new(),
            user: shared.user.to_string(),
            container: Some(container_details(&inspected, true)),
            image: Some(image::details(&self.options.image, &inspected, Some(&self.image))),
            engine: Some(self.facts.details.clone()),
            limits: limits::report(Some(&self.options), &set, &self.facts),
            warnings,
        };
        let reference = image::digest(&inspected);
        let facts = Facts {
            reference: reference.clone(),
            details: details.clone(),
            timings,
            ports: ports(&inspected),
        };
        events::follow(&shared, self.facts.now, inspected.state.unwrap_or_default());
        let id = self.creation.workspace_id.clone();
        let closing = Closing::new(shared.clone(), Ownership::Owned { workspace_id: id });
        let access = HelperAccess::new(shared.clone(), remote, closing, reference, details);
        ContainerWorkspace::new(shared, Box::new(access), facts)
    }
}
