//! Serves what the one at the other end of the stream asks for.

use std::sync::Arc;

use super::setup::Setup;
use super::stdio::stdio;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::local::LocalWorkspace;
use crate::remote::{FreshSource, Server};
use crate::workspace::Workspace;

/// Serves one client, until it closes the stream or ends.
pub(super) async fn serve() -> Result<()> {
    let (mut input, output) = stdio().map_err(|error| Error::from_io("open", "standard input", error))?;
    let Some(setup) = Setup::receive(&mut input).await? else { return Ok(()) };
    let setup = Arc::new(setup);
    let source = FreshSource::new(move || {
        let setup = setup.clone();
        async move { Ok(Arc::new(open(&setup).await?) as Arc<dyn Workspace>) }
    });
    // The engine closes the stream when the client is gone. A frozen container answers nothing, and
    // that is no reason to end what runs in it.
    let server = Server::new(source).keep_alive(false);
    let served = server.serve(tokio::io::join(input, output)).await;
    server.shutdown().await;
    served
}

async fn open(setup: &Setup) -> Result<LocalWorkspace> {
    if setup.make_root {
        let made = tokio::fs::create_dir_all(&setup.root).await;
        made.map_err(|error| Error::from_io("make", &setup.root, error))?;
    }
    // A name or value that is not UTF-8 cannot be told to anybody.
    let inherited = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect::<Environment>();
    LocalWorkspace::open(&setup.root, setup.environment(inherited))
}
