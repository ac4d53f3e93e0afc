//! Notices a helper that stands still.

use std::sync::Arc;
use std::time::Duration;

use crate::container::shared::Shared;
use crate::remote::RemoteWorkspace;

/// How often a helper is asked whether it is there.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long it may take to answer, while its container runs.
const ANSWER: Duration = Duration::from_secs(8);

/// Asks the helper from time to time, and gives the connection up when it does not answer; to be
/// dropped with the workspace. A container that is paused answers nothing, and is waited for.
pub(super) async fn watch(shared: Arc<Shared>, remote: Arc<RemoteWorkspace>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        loop {
            let mut changes = shared.monitor.subscribe();
            let paused = shared.monitor.is_paused();
            let answer = tokio::time::timeout(ANSWER, remote.ping()).await;
            match answer {
                Ok(Ok(())) => break,
                // Whoever calls next hears of it.
                Ok(Err(_)) => return,
                // Whatever happened to the container meanwhile explains the silence.
                Err(_) if paused || changes.has_changed().unwrap_or(true) => {
                    changes.mark_unchanged();
                }
                Err(_) => {
                    remote.give_up("the helper does not answer");
                    return;
                }
            }
        }
    }
}
