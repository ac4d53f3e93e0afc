//! The workspace itself: what it is, and where its calls go.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::feed::{self, Source};
use super::processes::Processes;
use super::read::UntilClosed;
use super::root::{self, Root};
use super::scratch_dir::ScratchDir;
use super::tasks::{Stop, Tasks};
use super::{list, pack, read, remove_all, stream, tree, unpack, write};
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::descriptor::{Descriptor, Details, Kind};
use crate::environment::Environment;
use crate::error::{Error, Result, SpawnErrorKind};
use crate::files::{
    ArchiveOptions, ArchiveReader, ArchiveReport, Content, DirPage, FileReader, LinkTarget, ListOptions,
    Metadata, OpenOptions, Patterns, UnpackOptions, WriteOptions, Written,
};
use crate::output::Output;
use crate::path::WorkspacePath;
use crate::process::Process;
use crate::random::random_hex;
use crate::workspace::{Starter, Workspace};

/// A workspace in a directory of this machine.
///
/// File operations are confined to the directory, also while other processes change it. Commands
/// are not isolated: they run as this process's user, with its network and its view of the file
/// system. For untrusted commands use a container.
#[derive(Debug)]
pub struct LocalWorkspace {
    id: String,
    env: Environment,
    tasks: Tasks,
    processes: Processes,
    /// The directory to remove at the end, held while somebody closes.
    temporary: Arc<Mutex<Option<ScratchDir>>>,
}

impl LocalWorkspace {
    /// A workspace in an existing directory, which is left as it is on [`close`](Workspace::close).
    ///
    /// Links in `dir` itself are followed. `env` is all that commands get.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotADirectory`], [`Error::PermissionDenied`];
    /// [`Error::InvalidArgument`] for a variable that no process can be given.
    pub fn open(dir: impl AsRef<Path>, env: Environment) -> Result<LocalWorkspace> {
        env.check()?;
        Ok(LocalWorkspace::new(Root::open(dir.as_ref())?, env, None))
    }

    /// A workspace in a fresh temporary directory that only this user may enter. It is removed
    /// with all that is in it on [`close`](Workspace::close). When the workspace is dropped instead,
    /// that happens in the background, and is cut short if this process ends before it is done.
    ///
    /// # Errors
    ///
    /// What making the directory reports; [`Error::InvalidArgument`] as for [`open`](Self::open).
    pub fn temporary(env: Environment) -> Result<LocalWorkspace> {
        env.check()?;
        let (temporary, root) = ScratchDir::create()?;
        Ok(LocalWorkspace::new(root, env, Some(temporary)))
    }

    fn new(root: Root, env: Environment, temporary: Option<ScratchDir>) -> LocalWorkspace {
        LocalWorkspace {
            id: random_hex(),
            env,
            tasks: Tasks::new(root),
            processes: Processes::new(),
            temporary: Arc::new(Mutex::new(temporary)),
        }
    }

    /// Runs work on one name where it may block.
    async fn on<T: Send + 'static>(
        &self,
        path: &WorkspacePath,
        work: impl FnOnce(&Root, &WorkspacePath, &Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = path.clone();
        self.tasks.run(move |root, stop| work(root, &path, stop)).await
    }

    /// As [`on`](Self::on), for work that consumes content, which is read here meanwhile.
    async fn consume<T: Send + 'static>(
        &self,
        path: &WorkspacePath,
        content: Content,
        work: impl FnOnce(&Root, &WorkspacePath, &mut Source, &Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (mut source, filling) = feed::feed(content);
        let mut job =
            std::pin::pin!(self.on(path, move |root, path, stop| { work(root, path, &mut source, stop) }));
        if let Some(filling) = filling {
            tokio::select! {
                biased;
                // It may fail while the content still has more, or nothing, to say.
                result = &mut job => return result,
                () = filling => {}
            }
        }
        job.await
    }

    /// Opens the directory that a command runs in.
    async fn command_dir(&self, command: &Command, dir: WorkspacePath) -> Result<OwnedFd> {
        if command.user.is_some() && !self.capabilities().user {
            return Err(Error::Unsupported {
                operation: "running as another user".to_owned(),
                backend: Kind::Local,
                reason: "only root may switch users".to_owned(),
            });
        }
        let opened = self.on(&dir, |root, dir, _| {
            root.dir(dir.as_str()).map_err(|e| root::error("open the directory", dir.as_str(), e))
        });
        match opened.await {
            Err(
                error @ (Error::NotFound { .. }
                | Error::NotADirectory { .. }
                | Error::PermissionDenied { .. }
                | Error::TooManyLinks { .. }),
            ) => Err(Error::Spawn {
                program: command.program().to_owned(),
                kind: SpawnErrorKind::BadDirectory,
                source: Some(error.into()),
            }),
            opened => opened,
        }
    }
}

impl Drop for LocalWorkspace {
    fn drop(&mut self) {
        self.tasks.cancel();
        let gone = self.processes.abandon();
        // Whoever else holds the lock removes it already.
        if let Ok(mut temporary) = self.temporary.try_lock()
            && let Some(directory) = temporary.take()
        {
            directory.remove_after(gone);
        }
    }
}

#[async_trait]
impl Workspace for LocalWorkspace {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new(Kind::Local, "", self.tasks.root().path().to_string_lossy())
    }

    fn details(&self) -> Details {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Details {
            workspace_id: self.id.clone(),
            user: format!("{}:{}", user.as_raw(), group.as_raw()),
            warnings: vec![
                "commands are not isolated from this machine: they run as this user and reach whatever it may"
                    .to_owned(),
            ],
            ..Details::default()
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            start: true,
            tty: true,
            user: rustix::process::geteuid().is_root(),
            kill: true,
            kill_is_complete: true,
            exact_signals: true,
            leftover_output: true,
            change_tree: true,
            atomic_write: true,
            files_as_user: true,
            owners: true,
            tmpfs: true,
            archives_on_tmpfs: true,
            leaving_archive_links: true,
            confined_under_races: true,
            command_dir_beside_processes: true,
            durable_write: true,
        }
    }

    fn env(&self) -> Environment {
        self.env.clone()
    }

    async fn open(&self, path: &WorkspacePath, options: OpenOptions) -> Result<FileReader> {
        let opened = self.on(path, move |root, path, _| read::open(root, path, options)).await?;
        read::reader(path, opened, options, self.tasks.closed())
    }

    async fn metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        self.on(path, |root, path, _| read::metadata(root, path)).await
    }

    async fn symlink_metadata(&self, path: &WorkspacePath) -> Result<Metadata> {
        self.on(path, |root, path, _| read::symlink_metadata(root, path)).await
    }

    async fn read_link(&self, path: &WorkspacePath) -> Result<LinkTarget> {
        self.on(path, |root, path, _| read::read_link(root, path)).await
    }

    async fn read_dir(&self, path: &WorkspacePath, options: ListOptions) -> Result<DirPage> {
        self.on(path, move |root, path, stop| list::page(root, path, &options, stop)).await
    }

    async fn write(&self, path: &WorkspacePath, content: Content, options: WriteOptions) -> Result<Written> {
        tree::check_mode(options.mode)?;
        if path.is_root() {
            return Err(Error::IsADirectory { path: path.to_string() });
        }
        self.consume(path, content, move |root, path, source, stop| {
            write::write(root, path.as_str(), source, options, stop)
        })
        .await
    }

    async fn remove(&self, path: &WorkspacePath) -> Result<()> {
        self.on(path, |root, path, _| tree::remove(root, path)).await
    }

    async fn remove_all(&self, path: &WorkspacePath) -> Result<()> {
        self.on(path, remove_all::remove_all).await
    }

    async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        let to = to.clone();
        self.on(from, move |root, from, _| tree::rename(root, from, &to)).await
    }

    async fn create_dir_all(&self, path: &WorkspacePath) -> Result<()> {
        self.on(path, |root, path, _| tree::create_dir_all(root, path)).await
    }

    async fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<()> {
        self.on(path, move |root, path, _| tree::set_mode(root, path, mode)).await
    }

    async fn copy(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
        let to = to.clone();
        self.on(from, move |root, from, stop| tree::copy(root, from, &to, stop)).await
    }

    async fn put_archive(
        &self,
        dir: &WorkspacePath,
        tar: Content,
        options: UnpackOptions,
    ) -> Result<ArchiveReport> {
        self.consume(dir, tar, move |root, dir, source, stop| {
            unpack::unpack(root, dir, source, options, stop)
        })
        .await
    }

    async fn get_archive(&self, path: &WorkspacePath, options: ArchiveOptions) -> Result<ArchiveReader> {
        self.tasks.check()?;
        let exclude = Patterns::new(&options.exclude)?;
        let subject = self.on(path, |root, path, _| pack::subject(root, path)).await?;
        let path = path.clone();
        let (sender, reader) = stream::stream();
        self.tasks.detach(move |_, stop| {
            let mut writer = sender.writer(stop);
            let packed = pack::pack(subject, &path, exclude, &options, stop, &mut writer);
            if let Err(error) = packed {
                writer.fail(error);
            }
            Ok(())
        });
        Ok(ArchiveReader::new(UntilClosed::new(reader, self.tasks.closed())))
    }

    async fn exec(&self, command: Command) -> Result<Output> {
        let dir = self.command_dir(&command, command.check_exec()?).await?;
        self.processes.exec(dir, &self.env, command).await
    }

    fn as_starter(&self) -> Option<&dyn Starter> {
        Some(self)
    }

    async fn close(&self) -> Result<()> {
        self.tasks.close().await;
        self.processes.close().await?;
        // The lock goes along, so that another caller waits for the end also of a removal whose
        // first caller has gone.
        let mut temporary = self.temporary.clone().lock_owned().await;
        if temporary.is_none() {
            return Ok(());
        }
        let removal = tokio::task::spawn_blocking(move || {
            temporary.as_mut().map_or(Ok(()), ScratchDir::remove)?;
            *temporary = None;
            Ok(())
        });
        // Only a runtime that shuts down gives up a blocking task; dropping goes on with it.
        removal.await.unwrap_or(Err(Error::Closed))
    }
}

#[async_trait]
impl Starter for LocalWorkspace {
    async fn start(&self, command: Command) -> Result<Process> {
        let dir = self.command_dir(&command, command.check_start()?).await?;
        self.processes.start(dir, &self.env, command).await
    }
}
