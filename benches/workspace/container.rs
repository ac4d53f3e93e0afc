//! A container by the Engine API, against the `docker` command.

use std::fs;
use std::path::Path;

use agentworkspace::container::{Access, ContainerOptions, ContainerWorkspace, Engine};
use agentworkspace::{
    ArchiveOptions, Command, Content, OpenOptions, UnpackOptions, Workspace, WorkspaceExt as _, WriteOptions,
};
use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;

use crate::measure::{Report, bytes, program, timed, tree};

/// The rows of one image by one way into its containers.
pub(crate) async fn rows(
    report: &mut Report,
    backend: &str,
    image: &str,
    access: Access,
) -> anyhow::Result<()> {
    let engine =
        Engine::connect().await.context("the benchmarks need a container engine: run `make engine`")?;
    let options = ContainerOptions::new(image).access(access);
    life(report, &engine, backend, &options).await?;
    let workspace = ContainerWorkspace::create(&engine, options, |_| {}).await?;
    let measured = calls(report, &workspace, backend).await;
    workspace.close().await?;
    measured
}

/// Create to first exec, and close.
async fn life(
    report: &mut Report,
    engine: &Engine,
    backend: &str,
    options: &ContainerOptions,
) -> anyhow::Result<()> {
    let image = options.image.as_str();
    let (create, close) = (format!("{backend}: create to first exec"), format!("{backend}: close"));
    if !report.wants(&create) && !report.wants(&close) {
        return Ok(());
    }
    let (mut creates, mut closes) = (Vec::new(), Vec::new());
    for _ in 0..=report.plan.transfers {
        let mut opened = None;
        let ours = timed(async {
            let workspace = ContainerWorkspace::create(engine, options.clone(), |_| {}).await?;
            workspace.exec(Command::new("true")).await?;
            opened = Some(workspace);
            Ok(())
        })
        .await?;
        let name = format!("agentworkspace-bench-{}", std::process::id());
        let run =
            ["docker", "run", "-d", "--init", "--network", "none", "--name", &name, image, "sleep", "3600"];
        let theirs = program(&run).await? + program(&["docker", "exec", &name, "true"]).await?;
        creates.push((ours, theirs));
        let workspace = opened.context("the workspace was opened")?;
        let ours = timed(async { Ok(workspace.close().await?) }).await?;
        closes.push((ours, program(&["docker", "rm", "-fv", &name]).await?));
    }
    report.add(&create, "docker run -d + exec", creates);
    report.add(&close, "docker rm -f", closes);
    Ok(())
}

async fn calls(report: &mut Report, workspace: &ContainerWorkspace, backend: &str) -> anyhow::Result<()> {
    let container = workspace.details().container.context("it is a container")?.id;
    let plan = report.plan;
    let scratch = tempfile::tempdir()?;
    let name = format!("{backend}: exec true");
    if report.wants(&name) {
        let mut pairs = Vec::new();
        for _ in 0..=plan.calls {
            let ours = timed(async { Ok(workspace.exec(Command::new("true")).await?) }).await?;
            pairs.push((ours, program(&["docker", "exec", &container, "true"]).await?));
        }
        report.add(&name, "docker exec", pairs);
    }
    for (label, size, rounds) in [("1 KiB", 1024, plan.calls), ("64 MiB", plan.file_size, plan.transfers)] {
        let content = bytes(size);
        let host = scratch.path().join("up");
        fs::write(&host, &content)?;
        let (up, down) = (format!("{backend}: write {label}"), format!("{backend}: read {label}"));
        if !report.wants(&up) && !report.wants(&down) {
            continue;
        }
        let file = "file".parse()?;
        let inside = format!("{container}:{}/theirs", workspace.descriptor().root);
        let (mut ups, mut downs) = (Vec::new(), Vec::new());
        for _ in 0..=rounds {
            let ours = timed(async {
                // Both sides read the bytes from a file of this machine.
                let source = Content::sized_reader(tokio::fs::File::open(&host).await?, size as u64);
                Ok(workspace.write(&file, source, WriteOptions::default()).await?)
            })
            .await?;
            ups.push((ours, program(&["docker", "cp", "-q", &path(&host), &inside]).await?));
            let ours = timed(async {
                let mut reader = workspace.open(&file, OpenOptions::default()).await?;
                let mut copy = tokio::fs::File::create(scratch.path().join("ours")).await?;
                Ok(tokio::io::copy(&mut reader, &mut copy).await?)
            })
            .await?;
            let target = path(&scratch.path().join("theirs"));
            downs.push((ours, program(&["docker", "cp", "-q", &inside, &target]).await?));
        }
        anyhow::ensure!(workspace.read(&file, u64::MAX).await? == content, "the file came back changed");
        report.add(&up, "docker cp", ups);
        report.add(&down, "docker cp", downs);
    }
    trees(report, workspace, backend, &container, scratch.path()).await
}

async fn trees(
    report: &mut Report,
    workspace: &ContainerWorkspace,
    backend: &str,
    container: &str,
    scratch: &Path,
) -> anyhow::Result<()> {
    let (up, down) =
        (format!("{backend}: tree of 5,000 files up"), format!("{backend}: tree of 5,000 files down"));
    if !report.wants(&up) && !report.wants(&down) {
        return Ok(());
    }
    let archive = tree(report.plan.tree_files)?;
    let source = scratch.join("tree");
    tar::Archive::new(archive.as_slice()).unpack(&source)?;
    let root = workspace.descriptor().root;
    let (mut ups, mut downs) = (Vec::new(), Vec::new());
    for round in 0..=report.plan.transfers {
        let directory = format!("ours{round}").parse()?;
        let options = UnpackOptions::default();
        let ours =
            timed(async { Ok(workspace.put_archive(&directory, archive.clone().into(), options).await?) })
                .await?;
        let theirs = format!("{container}:{root}/theirs{round}");
        ups.push((ours, program(&["docker", "cp", "-q", &path(&source), &theirs]).await?));
        let ours = timed(async {
            let mut reader = workspace.get_archive(&directory, ArchiveOptions::default()).await?;
            let mut archive = Vec::new();
            Ok(reader.read_to_end(&mut archive).await?)
        })
        .await?;
        let target = path(&scratch.join(format!("down{round}")));
        downs.push((ours, program(&["docker", "cp", "-q", &theirs, &target]).await?));
    }
    report.add(&up, "docker cp", ups);
    report.add(&down, "docker cp", downs);
    Ok(())
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
