//! The end of a container workspace.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::cleanup;
use super::kill;
use super::monitor::Condition;
use super::removal;
use super::shared::Shared;
use super::workspace::Ownership;
use crate::error::Result;

/// Closes a workspace once, whoever asks for it.
#[derive(Debug)]
pub(crate) struct Closing {
    shared: Arc<Shared>,
    ownership: Ownership,
    /// Whether everything has been released. Held across the release, so that all callers wait
    /// for the same end.
    released: Mutex<bool>,
}

impl Closing {
    pub(crate) fn new(shared: Arc<Shared>, ownership: Ownership) -> Self {
        Closing { shared, ownership, released: Mutex::new(false) }
    }

    /// Ends what runs and releases what is held; a call after one that failed goes on with what
    /// is left.
    pub(crate) async fn close(&self) -> Result<()> {
        self.shared.monitor.set(Condition::Closed);
        let mut released = self.released.lock().await;
        if !*released {
            release(&self.shared, &self.ownership).await?;
            *released = true;
        }
        Ok(())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if *self.released.get_mut() {
            return;
        }
        self.shared.monitor.set(Condition::Closed);
        match &mut self.ownership {
            Ownership::Owned { workspace_id } => {
                removal::remove_in_background(&self.shared.engine, std::mem::take(workspace_id), false);
            }
            Ownership::Kept | Ownership::Attached => {
                let (shared, ownership) = (self.shared.clone(), self.ownership.clone());
                cleanup::spawn(async move {
                    if let Err(error) = release(&shared, &ownership).await {
                        tracing::warn!(container = shared.id, %error, "a workspace could not be closed");
                    }
                });
            }
        }
    }
}

async fn release(shared: &Arc<Shared>, ownership: &Ownership) -> Result<()> {
    match ownership {
        Ownership::Owned { workspace_id } => removal::remove_workspace(&shared.engine, workspace_id).await,
        // What is gone runs nothing, and what still runs was never started from here.
        Ownership::Kept | Ownership::Attached => kill::end_everything(shared).await,
    }
}
