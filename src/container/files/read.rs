//! Reading files.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use super::engine_files;
use super::lookup::parse_facts;
use super::script::{self, Dropped, Output, script};
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{FileReader, OpenOptions};
use crate::path::WorkspacePath;

pub(crate) async fn open(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: OpenOptions,
) -> Result<FileReader> {
    shared.monitor.check_open()?;
    match shared.shell {
        Some(_) => shared.guard(open_by_script(shared, path, options)).await,
        None => shared.guard(engine_files::open(shared, path, options)).await,
    }
}

async fn open_by_script(
    shared: &Arc<Shared>,
    path: &WorkspacePath,
    options: OpenOptions,
) -> Result<FileReader> {
    let offset = options.offset.to_string();
    // What a larger file has beyond the limit is not sent; one byte of it shows that it is larger.
    let allowed = options.max_size.map(|max| max.saturating_sub(options.offset).saturating_add(1));
    let length = match (options.length, allowed) {
        (Some(length), Some(allowed)) => length.min(allowed).to_string(),
        (Some(length), None) => length.to_string(),
        (None, Some(allowed)) => allowed.to_string(),
        (None, None) => "-".to_owned(),
    };
    let args = [path.as_str(), offset.as_str(), length.as_str()];
    let (running, line) =
        script::begin(shared, script!("read.sh"), &args, false, Dropped::Kill, "open").await?;
    let metadata = parse_facts(&line)?;
    let (output, _) = running.split();
    let content = content(Arc::clone(shared), output, path.as_str().to_owned());
    FileReader::new(path.as_str(), metadata, options, content)
}

/// The content of a file as the script sends it. It fails when the workspace is closed or dies, and
/// is whole only if the script says so at its end.
fn content(shared: Arc<Shared>, output: Output, path: String) -> impl AsyncRead + Send + 'static {
    let chunks = stream::try_unfold(Some(output), move |output| {
        let shared = Arc::clone(&shared);
        let path = path.clone();
        async move {
            let Some(mut output) = output else { return Ok(None) };
            match next_chunk(&shared, &mut output, &path).await {
                Ok(Some(chunk)) => Ok(Some((chunk, Some(output)))),
                Ok(None) => Ok(None),
                Err(error) => Err(io::Error::from(error)),
            }
        }
    });
    StreamReader::new(Box::pin(chunks))
}

async fn next_chunk(shared: &Shared, output: &mut Output, path: &str) -> Result<Option<Bytes>, Error> {
    shared.monitor.check_open()?;
    let next = async {
        if let Some(chunk) = output.next().await? {
            return Ok(Some(chunk));
        }
        output.end(shared, b"").await?.check("read", path)?;
        Ok(None)
    };
    shared.guard(next).await
}
