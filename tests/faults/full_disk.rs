//! What happens when the file system under the workspace fills up: a typed error, and what was there stays.

use agentworkspace::container::{Access, ContainerOptions, ContainerWorkspace, Engine, Mount, PullPolicy};
use agentworkspace::{
    Command, Content, Error, UnpackOptions, Workspace, WorkspaceExt as _, WorkspacePath, WriteOptions,
};
use anyhow::ensure;

use crate::engine::{IMAGE, PrivateEngine};
use crate::operations::path;

/// How large the file system is, and how much more is written.
const SIZE: u64 = 4 << 20;
const TOO_MUCH: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Write,
    WriteStream,
    Copy,
    PutArchive,
}

impl Operation {
    pub(crate) const ALL: [Operation; 4] =
        [Operation::Write, Operation::WriteStream, Operation::Copy, Operation::PutArchive];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::WriteStream => "write_stream",
            Operation::Copy => "copy",
            Operation::PutArchive => "put_archive",
        }
    }

    async fn fill(self, workspace: &dyn Workspace) -> Result<(), Error> {
        let zeros = || tokio::io::AsyncReadExt::take(tokio::io::repeat(0), TOO_MUCH);
        let target = path("kept");
        match self {
            Operation::Write => {
                let content = vec![0; TOO_MUCH as usize];
                workspace.write(&target, content.into(), WriteOptions::default()).await.map(drop)
            }
            Operation::WriteStream => {
                let content = Content::sized_reader(zeros(), TOO_MUCH);
                workspace.write(&target, content, WriteOptions::default()).await.map(drop)
            }
            Operation::Copy => {
                let output =
                    workspace.exec(Command::shell("dd if=/dev/zero of=big bs=1M count=3 2>&1")).await?;
                assert!(output.success(), "{output:?}");
                workspace.copy(&path("big"), &target).await.map(drop)
            }
            Operation::PutArchive => {
                let mut tar = tar::Builder::new(Vec::new());
                let mut header = tar::Header::new_ustar();
                header.set_size(TOO_MUCH);
                header.set_mode(0o644);
                let content = vec![0; TOO_MUCH as usize];
                tar.append_data(&mut header, "new", content.as_slice()).expect("memory takes it");
                let tar = tar.into_inner().expect("memory takes it");
                workspace
                    .put_archive(&WorkspacePath::root(), tar.into(), UnpackOptions::default())
                    .await
                    .map(drop)
            }
        }
    }
}

/// Makes a volume of [`SIZE`], which goes with the engine.
fn small_volume(engine: &PrivateEngine, access: Access) -> anyhow::Result<String> {
    let name = format!("small-{access:?}");
    let size = format!("o=size={SIZE}");
    let options = ["--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", &size];
    engine.run(&[&["volume", "create"][..], &options, &[&name]].concat())?;
    Ok(name)
}

pub(crate) fn check(engine: &PrivateEngine, access: Access, operation: Operation) -> anyhow::Result<()> {
    let _up = engine
        .in_use
        .read()
        .map_err(|_| anyhow::anyhow!("another trial panicked while the engine was down"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let client = Engine::connect_to(&engine.address()).await?;
        let mount = match operation {
            // Archives do not reach a tmpfs of the container, but one that is the engine's own volume.
            Operation::PutArchive => Mount::volume(small_volume(engine, access)?, "/workspace"),
            _ => Mount::tmpfs("/workspace", Some(SIZE)),
        };
        let options = ContainerOptions::new(IMAGE).pull(PullPolicy::Never).access(access).mounts(vec![mount]);
        let workspace = ContainerWorkspace::create(&client, options, |_| {}).await?;
        workspace.write(&path("kept"), "old".into(), WriteOptions::default()).await?;
        let error = match operation.fill(&workspace).await {
            Ok(()) => anyhow::bail!("more fitted than there was room for"),
            Err(error) => error,
        };
        ensure!(matches!(error, Error::StorageFull { .. }), "the error is {error:?}");
        ensure!(workspace.read(&path("kept"), 16).await? == b"old", "the old content is lost");
        let names: Vec<_> = workspace.read_dir_all(&WorkspacePath::root()).await?;
        ensure!(
            names.iter().all(|e| !e.name.escaped().starts_with('.')),
            "a temporary file is left: {names:?}"
        );
        workspace.close().await?;
        Ok(())
    })
}
