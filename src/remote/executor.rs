//! The tasks of one connection, which end with it.

use hyper::rt::Executor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The tasks; dropping this ends them.
#[derive(Debug)]
pub(super) struct Tasks {
    executor: TaskExecutor,
    _stop: DropGuard,
}

/// Runs what hyper wants to run beside a connection.
#[derive(Clone, Debug)]
pub(super) struct TaskExecutor {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    pub(super) fn new() -> Self {
        let stop = CancellationToken::new();
        let executor = TaskExecutor { tasks: TaskTracker::new(), stop: stop.clone() };
        Tasks { executor, _stop: stop.drop_guard() }
    }

    pub(super) fn executor(&self) -> TaskExecutor {
        self.executor.clone()
    }

    /// Gives them `time` to end by themselves, then ends them.
    #[cfg(feature = "remote")]
    pub(super) async fn finish(self, time: std::time::Duration) {
        self.executor.tasks.close();
        let _ = tokio::time::timeout(time, self.executor.tasks.wait()).await;
        self.end().await;
    }

    /// Ends them and waits until they are gone.
    pub(super) async fn end(self) {
        self.executor.stop.cancel();
        self.executor.tasks.close();
        self.executor.tasks.wait().await;
    }
}

impl<F: Future + Send + 'static> Executor<F> for TaskExecutor
where
    F::Output: Send,
{
    fn execute(&self, future: F) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                _ = future => {}
            }
        });
    }
}
