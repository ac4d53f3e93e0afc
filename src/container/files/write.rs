//! Writing and copying files.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::engine_files;
use super::script::{self, Dropped, Input, Output, Running, script, unexpected};
use super::spool::{self, Sized};
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{Content, WriteMethod, WriteOptions, Written};
use crate::path::WorkspacePath;
use crate::random::random_hex;

/// How much of the content is in memory at once.
const CHUNK: usize = 64 * 1024;

const WRITE: &str = script!("replace.sh", "write.sh");

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
    let (running, ready) = script::begin(shared, WRITE, &args, true, Dropped::TidyUp, "write").await?;
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
///
/// The last piece is held back until the content has ended without an error. A script that has all
/// of the length puts it in place, whatever comes behind.
async fn send(input: &mut Input, content: Sized, path: &str) -> Result<()> {
    let Sized { mut reader, len } = content;
    let failed = |error| Error::from_io("read the content for", path, error);
    let (mut held, mut next) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut ready = fill(&mut reader, &mut held).await.map_err(failed)?;
    let mut total = ready as u64;
    let mut begun = false;
    loop {
        // A piece that is not full is the last one.
        let more = if ready < CHUNK { 0 } else { fill(&mut reader, &mut next).await.map_err(failed)? };
        total += more as u64;
        let wrong = if more == 0 { total != len } else { total > len };
        if wrong {
            let reason = format!("the content was announced as {len} bytes, and it is not that long");
            return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidData, reason)));
        }
        if !begun && input.write_all(format!("{len}\n").as_bytes()).await.is_err() {
            return Ok(());
        }
        begun = true;
        if input.write_all(&held[..ready]).await.is_err() || more == 0 {
            return Ok(());
        }
        std::mem::swap(&mut held, &mut next);
        ready = more;
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
    format!(".{}.tmp", random_hex())
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
            let (said, ended) =
                script::answer(shared, script!("replace.sh", "copy.sh"), &args, Dropped::TidyUp).await?;
            let about = super::change::subject(&said, from, to);
            ended.check("copy", about.as_str())?;
            parse_written(&String::from_utf8_lossy(&said))
        })
        .await
}
