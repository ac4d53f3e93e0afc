//! A workspace over a unix socket, against the same directory without a server.

use std::sync::Arc;

use agentworkspace::remote::{DialOptions, FreshSource, Listener, RemoteWorkspace, Server};
use agentworkspace::{Command, Environment, LocalWorkspace, Workspace, WorkspaceExt as _};

use crate::measure::{Report, bytes, timed};

pub(crate) async fn rows(report: &mut Report) -> anyhow::Result<()> {
    let plan = report.plan;
    let directory = tempfile::tempdir()?;
    let root = directory.path().to_owned();
    let open = move || LocalWorkspace::open(&root, Environment::from_host_basics());
    let local = open()?;
    let source = FreshSource::new(move || {
        let opened = open();
        async move { Ok(Arc::new(opened?) as Arc<dyn Workspace>) }
    });
    let server = Server::new(source);
    let listener = Listener::unix(directory.path().join("socket"))?;
    let (url, serving) = (listener.url(), server.clone());
    let served = tokio::spawn(async move { listener.serve(&serving).await });
    let remote = RemoteWorkspace::dial(&url, DialOptions::default()).await?;
    let file = "file".parse()?;

    let name = "remote: exec true";
    if report.wants(name) {
        let mut pairs = Vec::new();
        for _ in 0..=plan.calls {
            let ours = timed(async { Ok(remote.exec(Command::new("true")).await?) }).await?;
            pairs.push((ours, timed(async { Ok(local.exec(Command::new("true")).await?) }).await?));
        }
        report.add(name, "local workspace", pairs);
    }
    for (label, size, rounds) in [("1 KiB", 1024, plan.calls), ("64 MiB", plan.file_size, plan.transfers)] {
        let name = format!("remote: read {label}");
        if report.wants(&name) {
            local.write(&file, bytes(size).into(), Default::default()).await?;
            let mut pairs = Vec::new();
            for _ in 0..=rounds {
                let ours = timed(async { Ok(remote.read(&file, u64::MAX).await?) }).await?;
                pairs.push((ours, timed(async { Ok(local.read(&file, u64::MAX).await?) }).await?));
            }
            report.add(&name, "local workspace", pairs);
        }
    }
    remote.close().await?;
    server.shutdown().await;
    served.await??;
    local.close().await?;
    Ok(())
}
