//! Work that goes on after whoever it was for has been dropped.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Handle};

/// A runtime of its own, on its own thread: a drop may happen outside of any runtime, or while the
/// caller's is shutting down. `None` when the system gives no thread.
static RUNTIME: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let body = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("agentworkspace-cleanup".to_owned()).spawn(body).ok()?;
    Some(handle)
});

/// Runs `work` to its end in the background.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    match &*RUNTIME {
        Some(handle) => drop(handle.spawn(work)),
        None => tracing::error!("no thread is left to clean up with"),
    }
}
