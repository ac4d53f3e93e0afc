//! One endless use of each operation, so that a fault always comes in the middle of one.

use std::time::Duration;

use agentworkspace::{
    ArchiveOptions, Command, Content, End, Error, OpenOptions, UnpackOptions, Workspace, WorkspaceExt as _,
    WorkspacePath, WriteOptions, start,
};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::UnboundedSender;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Exec,
    ExecWithStream,
    ShortExecs,
    Start,
    OpenStream,
    Read,
    Metadata,
    ReadLink,
    ReadDir,
    WriteStream,
    Write,
    RemoveAll,
    Rename,
    CreateDirAll,
    SetMode,
    Copy,
    PutArchive,
    GetArchive,
}

impl Operation {
    pub(crate) const ALL: [Operation; 18] = [
        Operation::Exec,
        Operation::ExecWithStream,
        Operation::ShortExecs,
        Operation::Start,
        Operation::OpenStream,
        Operation::Read,
        Operation::Metadata,
        Operation::ReadLink,
        Operation::ReadDir,
        Operation::WriteStream,
        Operation::Write,
        Operation::RemoveAll,
        Operation::Rename,
        Operation::CreateDirAll,
        Operation::SetMode,
        Operation::Copy,
        Operation::PutArchive,
        Operation::GetArchive,
    ];

    pub(crate) fn name(self) -> String {
        let debug = format!("{self:?}");
        let mut name = String::new();
        for c in debug.chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(c.to_lowercase());
        }
        name
    }

    /// Uses the operation until it fails, and gives the error. Says on `begun` when it is under way.
    pub(crate) async fn until_error(self, workspace: &dyn Workspace, begun: &UnboundedSender<()>) -> Error {
        loop {
            if let Err(error) = self.once(workspace, begun).await {
                return error;
            }
            let _ = begun.send(());
        }
    }

    async fn once(self, workspace: &dyn Workspace, begun: &UnboundedSender<()>) -> Result<(), Error> {
        match self {
            Operation::Exec => exec(workspace, begun).await,
            Operation::ExecWithStream => exec_with_stream(workspace, begun).await,
            Operation::ShortExecs => {
                let output = workspace.exec(Command::new("true")).await?;
                assert_eq!(output.end, End::Exited(0), "a fault looks like a failed command: {output:?}");
                Ok(())
            }
            Operation::Start => {
                let process = start(workspace, Command::new("cat")).await?;
                let _ = begun.send(());
                panic!("a process that was cut off has a result: {:?}", process.wait().await?);
            }
            Operation::OpenStream => read_slowly(workspace, begun).await,
            Operation::Read => workspace.read(&path("small"), 1024).await.map(drop),
            Operation::Metadata => workspace.metadata(&path("small")).await.map(drop),
            Operation::ReadLink => workspace.read_link(&path("link")).await.map(drop),
            Operation::ReadDir => workspace.read_dir_all(&WorkspacePath::root()).await.map(drop),
            Operation::WriteStream => {
                let _ = begun.send(());
                let slow = Slow { begun: begun.clone(), pause: None };
                workspace
                    .write(&path("new"), Content::sized_reader(slow, 1 << 50), WriteOptions::default())
                    .await?;
                panic!("an endless write came to an end");
            }
            Operation::Write => {
                workspace.write(&path("new"), "x".into(), WriteOptions::default()).await.map(drop)
            }
            Operation::RemoveAll => {
                workspace.create_dir_all(&path("tree/a/b")).await?;
                workspace.remove_all(&path("tree")).await
            }
            Operation::Rename => {
                workspace.rename(&path("small"), &path("moved")).await?;
                workspace.rename(&path("moved"), &path("small")).await
            }
            Operation::CreateDirAll => workspace.create_dir_all(&path("d/e")).await,
            Operation::SetMode => workspace.set_mode(&path("small"), 0o600).await,
            Operation::Copy => workspace.copy(&path("small"), &path("copied")).await.map(drop),
            Operation::PutArchive => workspace
                .put_archive(&path("unpacked"), archive().into(), UnpackOptions::default())
                .await
                .map(drop),
            Operation::GetArchive => {
                let mut reader =
                    workspace.get_archive(&WorkspacePath::root(), ArchiveOptions::default()).await?;
                let mut archive = Vec::new();
                reader.read_to_end(&mut archive).await.map_err(|e| Error::from_io("read", ".", e))?;
                Ok(())
            }
        }
    }
}

/// A command that never ends.
async fn exec(workspace: &dyn Workspace, begun: &UnboundedSender<()>) -> Result<(), Error> {
    let running = async {
        while !workspace.exists(&path("running")).await.unwrap_or(false) {}
        let _ = begun.send(());
        std::future::pending::<()>().await;
    };
    let command = workspace.exec(Command::shell("echo > running; exec sleep 600"));
    let output = tokio::select! {
        output = command => output?,
        () = running => unreachable!("it waits for ever"),
    };
    panic!("a command that was cut off has a result: {output:?}");
}

/// The same with output all the while.
async fn exec_with_stream(workspace: &dyn Workspace, begun: &UnboundedSender<()>) -> Result<(), Error> {
    let (sink, mut chunks) = agentworkspace::output_channel();
    let command = Command::shell("while true; do echo x; sleep 0.05; done").stream(sink);
    let told = begun.clone();
    let reader = tokio::spawn(async move {
        while chunks.recv().await.is_some() {
            let _ = told.send(());
        }
    });
    let output = workspace.exec(command).await;
    reader.abort();
    panic!("a command that was cut off has a result: {:?}", output?);
}

async fn read_slowly(workspace: &dyn Workspace, begun: &UnboundedSender<()>) -> Result<(), Error> {
    let mut reader = workspace.open(&path("big"), OpenOptions::default()).await?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut buffer).await.map_err(|e| Error::from_io("read", "big", e))?;
        if read == 0 {
            return Ok(());
        }
        let _ = begun.send(());
        // Slower than the file ends, faster than the deadline.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Puts the files there that the operations use.
pub(crate) async fn prepare(workspace: &dyn Workspace) -> Result<(), Error> {
    let script = "dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; echo x > small; ln -s small link";
    let output = workspace.exec(Command::shell(script)).await?;
    assert!(output.success(), "{output:?}");
    Ok(())
}

pub(crate) fn path(name: &str) -> WorkspacePath {
    name.parse().expect("the test's own names are well formed")
}

fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for index in 0..20 {
        let mut header = tar::Header::new_ustar();
        header.set_size(1);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("f{index}"), &b"x"[..]).expect("memory takes it");
    }
    tar.into_inner().expect("memory takes it")
}

/// An endless reader that gives a little at a time.
struct Slow {
    begun: UnboundedSender<()>,
    pause: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

impl tokio::io::AsyncRead for Slow {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_millis(20))));
        std::task::ready!(Future::poll(pause.as_mut(), cx));
        self.pause = None;
        let _ = self.begun.send(());
        let size = buf.remaining().min(1024);
        buf.put_slice(&vec![b'x'; size]);
        std::task::Poll::Ready(Ok(()))
    }
}
