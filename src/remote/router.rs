//! The server as a part of an axum application.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::any;

use super::incoming::boxed;
use super::server::Server;

/// A router that serves what `server` does, below `/v1/`. It may be nested at another path, which
/// clients then have in their URL.
///
/// The application must speak HTTP/2, and is to ping its clients every few seconds
/// (`keep_alive_interval` of hyper): the session of a client that vanished without a word lasts
/// until its connection is given up. It calls [`Server::shutdown`] when it stops.
pub fn router(server: &Server) -> Router {
    let server = server.clone();
    let handle = move |request: Request| {
        let server = server.clone();
        async move { server.handle(request.map(boxed)).await.map(Body::new) }
    };
    Router::new().route("/v1/{*rest}", any(handle))
}
