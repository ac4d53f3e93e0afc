//! A workspace in a temporary directory of this machine: write a file, run a command on it, see how
//! a name that leads out is refused.
//!
//!     cargo run --example local

use agentworkspace::{
    Command, Environment, LocalWorkspace, Workspace, WorkspaceExt as _, WorkspacePath, WriteOptions,
};

#[tokio::main]
async fn main() -> agentworkspace::Result<()> {
    // Commands see these variables and no others, so no credential of this process.
    let workspace = LocalWorkspace::temporary(Environment::from_host_basics())?;
    let result = tour(&workspace).await;
    workspace.close().await?;
    result
}

/// The same calls work on any workspace, which is what tools for an agent are written against.
async fn tour(workspace: &dyn Workspace) -> agentworkspace::Result<()> {
    println!("{:?}", workspace.descriptor());

    let notes = WorkspacePath::parse("notes/todo.txt")?;
    workspace.write(&notes, "buy milk\nwrite tests\n".into(), WriteOptions::default()).await?;

    let output = workspace.exec(Command::new("sort").args(["-r", "todo.txt"]).dir("notes")).await?;
    println!("sort {}:\n{}", output.end, output.stdout.to_text());

    let back = workspace.read(&notes, 1024).await?;
    println!("the file has {} bytes", back.len());

    let escape = WorkspacePath::parse("../etc/passwd").unwrap_err();
    println!("refused: {escape}");
    Ok(())
}
