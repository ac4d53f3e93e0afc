//! A workspace in a fresh container, with limits, and output as it arrives.
//!
//!     cargo run --example container -- agentworkspace/busybox:test

use std::io::Write as _;
use std::time::Duration;

use agentworkspace::container::{ContainerOptions, ContainerWorkspace, Engine};
use agentworkspace::{Command, Workspace, output_channel};

#[tokio::main]
async fn main() -> agentworkspace::Result<()> {
    let image = std::env::args().nth(1).unwrap_or_else(|| "agentworkspace/busybox:test".to_owned());
    let engine = Engine::connect().await?;
    let options = ContainerOptions::new(image).memory(256 << 20).cpus(1.0);
    let workspace = ContainerWorkspace::create(&engine, options, |_| {}).await?;
    let result = run(&workspace).await;
    // Dropping it would remove the container too, but could not say that it failed.
    workspace.close().await?;
    result
}

async fn run(workspace: &dyn Workspace) -> agentworkspace::Result<()> {
    // What a session records: kind, the digest of what really runs, and the root.
    println!("{:?}", workspace.descriptor());

    let (sink, mut chunks) = output_channel();
    let printer = tokio::spawn(async move {
        while let Some(chunk) = chunks.recv().await {
            // A closed terminal must not end the command, whose output is then of no use anyway.
            let _ = std::io::stdout().write_all(chunk.bytes());
        }
    });
    let command = Command::shell("for i in 1 2 3; do echo \"step $i\"; sleep 0.2; done; exit 3")
        .timeout(Duration::from_secs(30))
        .stream(sink);
    let output = workspace.exec(command).await?;
    printer.await.expect("the printer does not panic");
    println!("it {} after {} ms", output.end, output.duration.as_millis());

    // Not a status of 127: a command that never ran is an error of its own.
    match workspace.exec(Command::new("no-such-program")).await {
        Err(error) => println!("refused: {error}"),
        Ok(output) => println!("unexpected: it {}", output.end),
    }
    Ok(())
}
