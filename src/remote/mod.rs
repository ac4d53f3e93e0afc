//! Workspaces at the other end of a byte stream: the protocol, its server and its client.
//!
//! ```
//! use std::sync::Arc;
//! use agentworkspace::remote::{FreshSource, RemoteWorkspace, Server};
//! use agentworkspace::{Command, Environment, LocalWorkspace, Workspace};
//!
//! # async fn example() -> agentworkspace::Result<()> {
//! let server = Server::new(FreshSource::new(|| async {
//!     let workspace = LocalWorkspace::temporary(Environment::from_host_basics())?;
//!     Ok(Arc::new(workspace) as Arc<dyn Workspace>)
//! }));
//! let (ours, theirs) = tokio::io::duplex(64 * 1024);
//! let serving = tokio::spawn(async move { server.serve(theirs).await });
//!
//! let workspace = RemoteWorkspace::connect(ours, "in memory").await?;
//! assert!(workspace.exec(Command::new("true")).await?.success());
//! workspace.close().await?;
//! # let _ = serving.await;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! The protocol is HTTP/2 over any byte stream; `docs/protocol.md` describes it. Neither side
//! trusts the other: what the peer sends is bounded and checked.

mod ascii;
#[cfg(feature = "remote")]
mod auth;
mod client;
#[cfg(feature = "remote")]
mod dial;
mod error;
mod executor;
mod frame;
mod grant;
mod incoming;
mod limits;
#[cfg(feature = "remote")]
mod listen;
mod outgoing;
#[cfg(feature = "remote")]
mod router;
mod server;
#[cfg(feature = "remote")]
mod tls;
mod windows;
mod wire;

#[cfg(feature = "remote")]
pub use auth::Tokens;
pub use client::{BatchItem, BatchResult, ConnectOptions, RemoteWorkspace};
#[cfg(feature = "remote")]
pub use dial::DialOptions;
pub use grant::Scopes;
#[cfg(feature = "remote")]
pub use listen::Listener;
#[cfg(feature = "remote")]
pub use router::router;
pub use server::{FreshSource, Server, SharedSource, Source};
#[cfg(feature = "remote")]
pub use tls::{ClientTls, ServerTls};
