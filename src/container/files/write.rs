//! Writing and copying files.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::engine_files;
use super::script::{self, Output, Running, script, unexpected};
use super::spool::{self, Sized};
use super::status;
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{Content, WriteMethod, WriteOptions, Written};
use crate::path::WorkspacePath;

/// How much of the content is in memory at once.
const CHUNK: usize = 64 * 1024;

pub(crate) async fn write(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    content: Content,
    options: WriteOptions,
) -> Result<Written> {
    shared.monitor.check_open()?;
    super::change::check_mode(options.mode)?;
    match shared.shell {
        Some(_) => shared.guard(write_by_script(shared, path, content, options)).await,
        None => shared.guard(engine_files::write(shared, path, content, options)).await,
    }
}

async fn write_by_script(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    content: Content,
    options: WriteOptions,
) -> Result<Written> {
    let mode = format!("{:o}", options.mode);
    let parents = if options.parents { "make" } else { "keep" };
    let temporary = temporary_name();
    let args = [path.as_str(), mode.as_str(), parents, temporary.as_str()];
    let mut attempt = 1;
    let (running, ready) = loop {
        let mut running = script::start(shared, script!("replace.sh", "write.sh"), &args, true).await?;
        match running.line().await? {
            Ok(line) => break (running, line),
            Err(ended) if ended.status == status::RACED && attempt < script::ATTEMPTS => attempt += 1,
            Err(ended) => {
                ended.check("write", path.as_str())?;
                return Err(unexpected("a script ended without an answer"));
            }
        }
    };
    let content = match ready.as_str() {
        "ready" => spool::sized(content, path.as_str()).await?,
        // Once the old content is cut, a content that fails could not be taken back.
        "direct" => match content.into_bytes() {
            Ok(bytes) => spool::sized(Content::from(bytes), path.as_str()).await?,
            Err(content) => spool::whole(content.into_reader(), path.as_str()).await?,
        },
        _ => return Err(unexpected("a script said something unexpected")),
    };
    upload(shared, running, content, path.as_str()).await
}

/// Sends `content` to a script that waits for it, and hears what became of it.
async fn upload(shared: &Shared, running: Running, content: Sized, path: &str) -> Result<Written> {
    let (mut output, mut input) = running.split();
    let (sent, said) = {
        let sending = async {
            let sent = send(&mut input, content, path).await;
            // The end of the input is also what tells the script that the content failed.
            drop(input.shutdown().await);
            sent
        };
        let hearing = hear(&mut output);
        tokio::pin!(sending, hearing);
        // A script that ended early takes no more, and writing to it would block.
        tokio::select! {
            said = &mut hearing => (Ok(()), said?),
            sent = &mut sending => (sent, hearing.await?),
        }
    };
    let ended = output.end(shared, said.as_bytes()).await?;
    sent?;
    ended.check("write", path)?;
    parse_written(&said)
}

/// Sends the length and the content. An error is one of the content: a script that takes no more
/// is heard by its output.
async fn send(input: &mut Pin<Box<dyn AsyncWrite + Send>>, content: Sized, path: &str) -> Result<()> {
    let Sized { mut reader, len } = content;
    if input.write_all(format!("{len}\n").as_bytes()).await.is_err() {
        return Ok(());
    }
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = fill(&mut reader, &mut chunk)
            .await
            .map_err(|error| Error::from_io("read the content for", path, error))?;
        if read == 0 || input.write_all(&chunk[..read]).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads until `chunk` is full or the content ends.
async fn fill(reader: &mut (impl AsyncRead + Unpin), chunk: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < chunk.len() {
        match reader.read(&mut chunk[filled..]).await? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Everything the script says.
async fn hear(output: &mut Output) -> Result<String> {
    let mut said = String::new();
    while let Some(chunk) = output.next().await? {
        if said.len() + chunk.len() > CHUNK {
            return Err(unexpected("a script said more than it should"));
        }
        said.push_str(&String::from_utf8_lossy(&chunk));
    }
    Ok(said)
}

/// `atomic 12` or `inplace 12` in the last line.
fn parse_written(said: &str) -> Result<Written> {
    let line = said.lines().next_back().unwrap_or_default();
    let parsed = line.split_once(' ').and_then(|(method, bytes)| {
        let method = match method {
            "atomic" => WriteMethod::Atomic,
            "inplace" => WriteMethod::InPlace,
            _ => return None,
        };
        Some(Written::new(bytes.parse().ok()?, method))
    });
    parsed.ok_or_else(|| unexpected("a script did not say what it wrote"))
}

/// A name that nothing else has.
fn temporary_name() -> String {
    format!(".{:032x}.tmp", super::change::random())
}

pub(crate) async fn copy(shared: &Arc<Shared>, from: &WorkspacePath, to: &WorkspacePath) -> Result<Written> {
    shared.monitor.check_open()?;
    if shared.shell.is_none() {
        return shared.guard(engine_files::copy(shared, from, to)).await;
    }
    shared
        .guard(async {
            let temporary = temporary_name();
            let args = [from.as_str(), to.as_str(), temporary.as_str()];
            let (said, ended) = script::answer(shared, script!("replace.sh", "copy.sh"), &args).await?;
            let about = super::change::subject(&said, from, to);
            ended.check("copy", about.as_str())?;
            parse_written(&String::from_utf8_lossy(&said))
        })
        .await
}
