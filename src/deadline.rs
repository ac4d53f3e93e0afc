//! Waits for what ends a command early and may not have been asked for.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Waits for the deadline; forever without one.
pub(crate) async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for the token; forever without one.
pub(crate) async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}
