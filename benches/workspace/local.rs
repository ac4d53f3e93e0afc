//! A directory on this machine, against the standard library and `tar`.

use std::fs;

use agentworkspace::{
    ArchiveOptions, Command, Environment, LocalWorkspace, UnpackOptions, Workspace, WorkspaceExt as _,
    WriteOptions,
};
use tokio::io::AsyncReadExt as _;

use crate::measure::{Report, bytes, program, timed, tree};

pub(crate) async fn rows(report: &mut Report) -> anyhow::Result<()> {
    let plan = report.plan;
    let directory = tempfile::tempdir()?;
    let workspace = LocalWorkspace::open(directory.path(), Environment::from_host_basics())?;
    let file = "file".parse()?;
    let path = directory.path().join("file");
    let other = directory.path().join("other");

    let name = "local: exec true";
    if report.wants(name) {
        let mut pairs = Vec::new();
        for _ in 0..=plan.calls {
            let ours = timed(async { Ok(workspace.exec(Command::new("true")).await?) }).await?;
            pairs.push((ours, program(&["true"]).await?));
        }
        report.add(name, "tokio::process", pairs);
    }
    for (label, size, rounds) in [("1 KiB", 1024, plan.calls), ("64 MiB", plan.file_size, plan.transfers)] {
        let content = bytes(size);
        let name = format!("local: write {label}");
        if report.wants(&name) {
            let mut pairs = Vec::new();
            for _ in 0..=rounds {
                let ours = timed(async {
                    Ok(workspace.write(&file, content.clone().into(), WriteOptions::default()).await?)
                })
                .await?;
                let theirs = timed(async { Ok(replace(&other, &content)?) }).await?;
                pairs.push((ours, theirs));
            }
            report.add(&name, "write, fsync, rename", pairs);
        }
        fs::write(&path, &content)?;
        let name = format!("local: read {label}");
        if report.wants(&name) {
            let mut pairs = Vec::new();
            for _ in 0..=rounds {
                let ours = timed(async { Ok(workspace.read(&file, u64::MAX).await?) }).await?;
                pairs.push((ours, timed(async { Ok(tokio::fs::read(&path).await?) }).await?));
            }
            report.add(&name, "tokio::fs::read", pairs);
        }
    }
    trees(report, &workspace, directory.path()).await?;
    workspace.close().await?;
    Ok(())
}

async fn trees(
    report: &mut Report,
    workspace: &LocalWorkspace,
    root: &std::path::Path,
) -> anyhow::Result<()> {
    let plan = report.plan;
    let tar = tree(plan.tree_files)?;
    let source = root.join("tree.tar");
    fs::write(&source, &tar)?;
    let (source, root) = (source.to_string_lossy().into_owned(), root.to_string_lossy().into_owned());
    let (up, down) = ("local: tree of 5,000 files up", "local: tree of 5,000 files down");
    if !report.wants(up) && !report.wants(down) {
        return Ok(());
    }
    let mut ups = Vec::new();
    let mut downs = Vec::new();
    for round in 0..=plan.transfers {
        let (ours, theirs) = (format!("ours{round}"), format!("{root}/theirs{round}"));
        fs::create_dir(&theirs)?;
        let directory = ours.parse()?;
        let options = UnpackOptions::default();
        let taken =
            timed(async { Ok(workspace.put_archive(&directory, tar.clone().into(), options).await?) })
                .await?;
        ups.push((taken, program(&["tar", "-xf", &source, "-C", &theirs]).await?));
        let taken = timed(async {
            let mut reader = workspace.get_archive(&directory, ArchiveOptions::default()).await?;
            let mut archive = Vec::new();
            Ok(reader.read_to_end(&mut archive).await?)
        })
        .await?;
        downs.push((taken, program(&["tar", "-cf", &format!("{root}/down.tar"), "-C", &theirs, "."]).await?));
    }
    report.add(up, "tar -x", ups);
    report.add(down, "tar -c", downs);
    Ok(())
}

/// What a careful program does to replace a file.
fn replace(path: &std::path::Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let temporary = path.with_extension("tmp");
    let mut file = fs::File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
