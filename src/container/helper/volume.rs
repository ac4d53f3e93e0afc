//! A volume that holds the helper, filled once for each engine and build of it.

use std::time::{Duration, Instant};

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions};
use bollard::query_parameters::CreateContainerOptionsBuilder;

use super::program::{DIRECTORY, Program};
use crate::container::cleanup;
use crate::container::engine::{CALL_TIMEOUT, Engine, SLOW_CALL_TIMEOUT};
use crate::container::labels::{self, Marks, Owner};
use crate::container::prepare::Entries;
use crate::container::removal::{remove_container, remove_volume};
use crate::error::{Error, Result};

/// How long another process may take to fill the volume.
const FILLING: Duration = Duration::from_secs(30);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// The volume of one build of the helper.
///
/// An engine lets only one container have a name, so that whoever makes the one that fills the volume is
/// the only one to do so, and the volume is complete when there is none.
pub(crate) struct Volume<'a> {
    engine: &'a Engine,
    program: &'static Program,
    /// Any image of the program's architecture that the engine has: a container needs one.
    image: &'a str,
    platform: &'a str,
}

impl<'a> Volume<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        program: &'static Program,
        image: &'a str,
        platform: &'a str,
    ) -> Self {
        Volume { engine, program, image, platform }
    }

    pub(crate) fn name(&self) -> String {
        format!("agentworkspace-{}", self.program.name())
    }

    /// Sees to it that the volume is there and filled.
    pub(crate) async fn ensure(&self) -> Result<()> {
        if self.engine.helpers().contains(self.program.digest) {
            return Ok(());
        }
        let deadline = Instant::now() + FILLING;
        loop {
            // In this order: the volume does not come before its filler.
            let exists = self.exists().await?;
            let filling = self.engine.inspect(&self.filler()).await?;
            if exists && filling.is_none() {
                break;
            }
            let labels = filling.and_then(|container| container.config).and_then(|config| config.labels);
            match labels {
                None => match self.fill().await {
                    // Somebody else was faster.
                    Err(Error::Engine { status: Some(409), .. }) => {}
                    filled => {
                        filled?;
                        break;
                    }
                },
                Some(labels) => {
                    let marks = Marks::from_labels(&labels);
                    let is_dead = marks.and_then(|marks| marks.owner.is_dead(&Owner::current()));
                    if is_dead == Some(true) || Instant::now() >= deadline {
                        self.discard().await?;
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        self.engine.helpers().insert(self.program.digest);
        Ok(())
    }

    /// Removes a volume that turned out not to hold the program, and forgets that it did.
    pub(crate) async fn discard(&self) -> Result<()> {
        self.engine.helpers().remove(self.program.digest);
        remove_container(self.engine, &self.filler()).await?;
        match remove_volume(self.engine, &self.name()).await {
            // Somebody else found the same a moment ago.
            Err(Error::Engine { status: Some(409), .. }) => Ok(()),
            removed => removed,
        }
    }

    fn filler(&self) -> String {
        format!("{}-fill", self.name())
    }

    async fn exists(&self) -> Result<bool> {
        let name = self.name();
        let call = self.engine.docker().inspect_volume(&name);
        match self.engine.call("inspect the helper's volume", CALL_TIMEOUT, call).await {
            Ok(_) => Ok(true),
            Err(Error::Engine { status: Some(404), .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How it is mounted. The engine makes it when it has been removed meanwhile.
    fn options(&self) -> MountVolumeOptions {
        let labels = [(labels::HELPER.to_owned(), self.program.digest.to_owned())].into();
        MountVolumeOptions { no_copy: Some(true), labels: Some(labels), ..Default::default() }
    }

    /// Its mount in a container that runs the helper.
    pub(crate) fn mount(&self) -> Mount {
        Mount {
            typ: Some(MountType::VOLUME),
            source: Some(self.name()),
            target: Some(DIRECTORY.to_owned()),
            read_only: Some(true),
            volume_options: Some(self.options()),
            ..Default::default()
        }
    }

    /// Fills the volume through a container that is never started.
    async fn fill(&self) -> Result<()> {
        let marks = Marks::new(&labels::new_id(), "/", None, false);
        let mount = Mount { read_only: Some(false), ..self.mount() };
        let body = ContainerCreateBody {
            image: Some(self.image.to_owned()),
            entrypoint: Some(vec![self.program.path()]),
            labels: Some(marks.labels(&Default::default())),
            host_config: Some(HostConfig {
                mounts: Some(vec![mount]),
                network_mode: Some("none".to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let filler = self.filler();
        let mut guard = Unfinished { volume: Some((self.engine.clone(), filler.clone(), self.name())) };
        let options = CreateContainerOptionsBuilder::default().name(&filler).platform(self.platform).build();
        let made = self.engine.docker().create_container(Some(options), body);
        let made =
            self.engine.call("make the container that fills the helper's volume", SLOW_CALL_TIMEOUT, made);
        if let Err(error) = made.await {
            if matches!(error, Error::Engine { status: Some(_), .. }) {
                guard.volume = None;
            }
            return Err(error);
        }
        let mut entries = Entries::default();
        entries.executable(&self.program.path(), self.program.bytes)?;
        entries.put(self.engine, &filler, "put the helper into its volume").await?;
        remove_container(self.engine, &filler).await?;
        guard.volume = None;
        Ok(())
    }
}

/// Removes what is not finished, in the background.
struct Unfinished {
    /// The engine, the container and the volume.
    volume: Option<(Engine, String, String)>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some((engine, container, volume)) = self.volume.take() else { return };
        cleanup::spawn(async move {
            // Whoever comes next finds what could not be removed, and its owner dead.
            let _ = remove_container(&engine, &container).await;
            let _ = remove_volume(&engine, &volume).await;
        });
    }
}
