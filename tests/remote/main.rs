//! Servers and clients of workspaces over real connections: what the conformance suite does not
//! ask of every workspace.

mod access;
mod batch;
mod flow;
mod hostile_client;
mod hostile_server;
mod loss;
mod place;
mod router;
mod sessions;
