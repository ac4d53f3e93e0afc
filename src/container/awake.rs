//! The time that a command had.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::own_pauses::OwnPauses;

/// How often a pause is looked at whose end is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Measures time, without what passes while the workspace itself has the container paused: a command
/// that is held must not run out of its time.
#[derive(Debug)]
pub(crate) struct Awake {
    pauses: Arc<OwnPauses>,
    began: Instant,
    /// How long the pauses before that were.
    before: Duration,
}

impl Awake {
    pub(crate) fn begin(pauses: Arc<OwnPauses>) -> Awake {
        Awake { began: Instant::now(), before: pauses.time(), pauses }
    }

    fn elapsed(&self) -> Duration {
        let paused = self.pauses.time().saturating_sub(self.before);
        self.began.elapsed().saturating_sub(paused)
    }

    /// Waits until so much time has passed; for ever without a bound.
    pub(crate) async fn passed(&self, bound: Option<Duration>) {
        let Some(bound) = bound else { return std::future::pending().await };
        loop {
            let left = bound.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            // In a pause nothing of it passes.
            let least = if self.pauses.is_active() { LOOK } else { Duration::ZERO };
            tokio::time::sleep(left.max(least)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_does_not_count() {
        let pauses = Arc::new(OwnPauses::default());
        pauses.begin();
        std::thread::sleep(Duration::from_millis(20));
        let awake = Awake::begin(Arc::clone(&pauses));
        let begun = Instant::now();
        let bound = Duration::from_millis(50);
        let pause = Duration::from_millis(300);
        tokio::join!(awake.passed(Some(bound)), async {
            tokio::time::sleep(pause).await;
            assert!(awake.elapsed() < bound, "{:?}", awake.elapsed());
            pauses.end();
        });
        assert!(begun.elapsed() >= pause + bound, "{:?}", begun.elapsed());
        let begun = Instant::now();
        Awake::begin(pauses).passed(Some(bound)).await;
        assert!(begun.elapsed() >= bound && begun.elapsed() < pause, "{:?}", begun.elapsed());
    }
}
