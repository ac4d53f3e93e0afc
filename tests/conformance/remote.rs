//! The fixture of `RemoteWorkspace`: a server over a local directory, reached in several ways.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use agentworkspace::conformance::{Fixture, Site};
use agentworkspace::remote::{
    ClientTls, ConnectOptions, DialOptions, FreshSource, Listener, RemoteWorkspace, Scopes, Server,
    ServerTls, Tokens,
};
use agentworkspace::{Result, Workspace};
use async_trait::async_trait;

use crate::local::LocalFixture;
use crate::trickle::Trickle;

/// What the servers that want a token want.
const TOKEN: &str = "a-token-of-the-suite";

/// How a client reaches the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Through memory.
    Memory,
    /// Through memory in small pieces of many sizes, with windows of a few bytes.
    Tiny,
    /// Through a unix socket.
    Unix,
    /// Through TCP, with a token.
    Tcp,
    /// Through TLS, with a token.
    Tls,
}

/// Directories of this machine, each behind a server of its own.
#[derive(Debug)]
pub(crate) struct RemoteFixture {
    way: Way,
    local: LocalFixture,
    /// The servers of open workspaces, by their directories.
    servers: Mutex<HashMap<String, Server>>,
}

impl RemoteFixture {
    pub(crate) fn new(way: Way) -> Self {
        RemoteFixture { way, local: LocalFixture, servers: Mutex::default() }
    }

    async fn reach(&self, server: Server, key: &str) -> RemoteWorkspace {
        let connected = match self.way {
            Way::Memory => {
                let (ours, theirs) = tokio::io::duplex(256 << 10);
                tokio::spawn(async move { server.serve(theirs).await });
                RemoteWorkspace::connect(ours, "memory").await
            }
            Way::Tiny => {
                let (ours, theirs) = tokio::io::duplex(4096);
                let server = server.window(1000);
                tokio::spawn(async move { server.serve(Trickle::new(theirs)).await });
                RemoteWorkspace::connect(Trickle::new(ours), ConnectOptions::new("memory").window(1000)).await
            }
            Way::Unix => {
                let listener = Listener::unix(format!("{key}/socket")).expect("a socket");
                dial(server, listener, DialOptions::default()).await
            }
            Way::Tcp => {
                let listener = Listener::tcp("127.0.0.1:0").await.expect("a port");
                dial(server, listener, DialOptions::default().token(TOKEN)).await
            }
            Way::Tls => {
                let (certificate, key) = certificate();
                let listener = Listener::tcp("127.0.0.1:0").await.expect("a port");
                let tls = ServerTls::new(certificate.as_bytes(), key.as_bytes()).expect("a certificate");
                let trust = ClientTls::authority(certificate.as_bytes()).expect("an authority");
                dial(server, listener.tls(tls), DialOptions::default().token(TOKEN).tls(trust)).await
            }
        };
        connected.expect("a connection")
    }
}

/// Serves at `listener` and connects to it.
async fn dial(server: Server, listener: Listener, options: DialOptions) -> Result<RemoteWorkspace> {
    let url = listener.url();
    tokio::spawn(async move { listener.serve(&server).await });
    RemoteWorkspace::dial(&url, options).await
}

/// A certificate for this machine, which is its own authority, and its key.
fn certificate() -> &'static (String, String) {
    static MADE: OnceLock<(String, String)> = OnceLock::new();
    MADE.get_or_init(|| {
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem())
    })
}

#[async_trait]
impl Fixture for RemoteFixture {
    async fn open(&self) -> Site {
        let Site { workspace, outside, key, .. } = self.local.open().await;
        let source = FreshSource::new(move || {
            let workspace: Arc<dyn Workspace> = workspace.clone();
            async move { Ok(workspace) }
        });
        let server = match self.way {
            Way::Memory | Way::Tiny | Way::Unix => Server::new(source),
            Way::Tcp | Way::Tls => {
                Server::with_tokens(source, Tokens::single(TOKEN, Scopes::all()).expect("a token"))
            }
        };
        self.servers.lock().expect("the servers").insert(key.clone(), server.clone());
        Site::new(Arc::new(self.reach(server, &key).await), outside, key)
    }

    async fn release(&self, site: Site, spent: bool) {
        let server = self.servers.lock().expect("the servers").remove(&site.key);
        let closed = site.workspace.close().await;
        server.expect("a server of this site").shutdown().await;
        closed.expect("the workspace closes");
        self.local.release(site, spent).await;
    }

    fn ids(&self) -> (u32, u32) {
        self.local.ids()
    }

    async fn plant(&self, site: &Site, path: &str, data: &[u8]) {
        self.local.plant(site, path, data).await;
    }

    async fn snapshot(&self, site: &Site, path: &str) -> String {
        self.local.snapshot(site, path).await
    }

    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool {
        self.local.give_away(site, path, uid).await
    }

    async fn alive(&self, site: &Site, marker: &str) -> usize {
        self.local.alive(site, marker).await
    }

    fn big_file(&self) -> u64 {
        match self.way {
            Way::Tiny => 8 << 20,
            _ => 256 << 20,
        }
    }
}
