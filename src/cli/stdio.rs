//! A command's streams through this process's own.

use std::io;

use agentworkspace::{Command, Content, Output, OutputChunk, OutputReceiver, Workspace, output_channel};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::printer::stdout_error;

/// How much of a file is on its way to standard output at a time.
const COPY_BUFFER: usize = 256 * 1024;

/// This process's standard input, read as it is needed.
pub(crate) fn stdin() -> Content {
    Content::reader(tokio::io::stdin())
}

/// Runs `command` with its output passed on byte for byte as it arrives. When standard output is
/// closed the command is ended, as a pipe would end it.
pub(crate) async fn exec_live(workspace: &dyn Workspace, command: Command) -> anyhow::Result<Output> {
    let (sink, receiver) = output_channel();
    let exec = workspace.exec(command.stream(sink));
    let passing = pass_on(receiver, tokio::io::stdout(), tokio::io::stderr());
    tokio::pin!(exec, passing);
    tokio::select! {
        result = &mut exec => {
            let passed = passing.await;
            let output = result?;
            passed.map_err(stdout_error)?;
            Ok(output)
        }
        passed = &mut passing => {
            passed.map_err(stdout_error)?;
            Ok(exec.await?)
        }
    }
}

/// Passes chunks on until the command has ended. Fails when `stdout` does; without `stderr` what
/// goes there is discarded.
async fn pass_on(
    mut chunks: OutputReceiver,
    mut stdout: impl AsyncWrite + Unpin,
    mut stderr: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut stderr_open = true;
    while let Some(chunk) = chunks.recv().await {
        match chunk {
            OutputChunk::Stderr(bytes) => {
                stderr_open = stderr_open && write(&mut stderr, &bytes).await.is_ok();
            }
            chunk => write(&mut stdout, chunk.bytes()).await?,
        }
    }
    Ok(())
}

/// Writes `bytes` to standard output. Unlike the printer it lets a signal through while whoever
/// reads is behind.
pub(crate) async fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    write(&mut tokio::io::stdout(), bytes).await.map_err(stdout_error)
}

/// Writes what `reader` gives to standard output.
pub(crate) async fn copy_out(mut reader: impl AsyncRead + Unpin) -> anyhow::Result<()> {
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        let read = reader.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        write_out(&buffer[..read]).await?;
    }
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn a_closed_standard_error_discards_and_goes_on() {
        let (sink, receiver) = output_channel();
        sink.send(OutputChunk::Stderr(Bytes::from_static(b"lost"))).await;
        sink.send(OutputChunk::Stderr(Bytes::from_static(b"lost"))).await;
        sink.send(OutputChunk::Stdout(Bytes::from_static(b"\xffkept"))).await;
        drop(sink);
        let (closed, other_end) = tokio::io::duplex(1);
        drop(other_end);
        let mut stdout = Vec::new();
        pass_on(receiver, &mut stdout, closed).await.unwrap();
        assert_eq!(stdout, b"\xffkept");
    }

    #[tokio::test]
    async fn a_closed_standard_output_ends_it() {
        let (sink, receiver) = output_channel();
        sink.send(OutputChunk::Stdout(Bytes::from_static(b"x"))).await;
        let (closed, other_end) = tokio::io::duplex(1);
        drop(other_end);
        let error = pass_on(receiver, closed, Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
