//! A process that a helper started.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::explain::{end_of, explain, guard_started};
use crate::command::TtySize;
use crate::container::shared::Shared;
use crate::error::Result;
use crate::output::End;
use crate::process::ProcessControl;
use crate::signal::Signal;

/// A process whose end the container explains.
#[derive(Debug)]
pub(super) struct HelperProcess {
    pub(super) shared: Arc<Shared>,
    pub(super) inner: Arc<dyn ProcessControl>,
    pub(super) began: Instant,
}

#[async_trait]
impl ProcessControl for HelperProcess {
    async fn wait(&self) -> Result<End> {
        let ended = tokio::select! {
            biased;
            ended = self.inner.wait() => ended,
            // The process is still there, and another call may see its end.
            paused = self.shared.monitor.paused_for_long() => return Err(paused),
        };
        match ended {
            Ok(end) => Ok(end_of(&self.shared, end, self.began).await),
            Err(error) => Err(explain(&self.shared, error).await),
        }
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        guard_started(&self.shared, self.inner.signal(signal)).await
    }

    async fn resize(&self, size: TtySize) -> Result<()> {
        guard_started(&self.shared, self.inner.resize(size)).await
    }

    async fn close(&self) -> Result<End> {
        match guard_started(&self.shared, self.inner.close()).await {
            Ok(end) => Ok(end_of(&self.shared, end, self.began).await),
            Err(error) => Err(error),
        }
    }

    fn abandon(&self) {
        self.inner.abandon();
    }
}
