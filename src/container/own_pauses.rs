//! The times in which the workspace itself has its container paused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells a pause of the workspace from one of somebody else. The engine does not: a state that it
/// told may be of a pause that has ended since, and its events come late.
///
/// There is one pause at a time, and the count is odd while it lasts.
#[derive(Debug, Default)]
pub(crate) struct OwnPauses {
    count: AtomicU64,
    times: Mutex<Times>,
}

/// How long the pauses were.
#[derive(Debug, Default)]
struct Times {
    past: Duration,
    since: Option<Instant>,
}

/// A moment before the engine was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(u64);

impl OwnPauses {
    /// Counts a pause, from before the engine is told of it.
    pub(crate) fn begin(&self) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).since = Some(Instant::now());
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends it, after the engine has resumed the container.
    pub(crate) fn end(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let lasted = times.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        times.past += lasted;
    }

    /// How long all pauses together have lasted.
    pub(crate) fn time(&self) -> Duration {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.past + times.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether there is one now.
    pub(crate) fn is_active(&self) -> bool {
        self.count.load(Ordering::SeqCst) % 2 == 1
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.count.load(Ordering::SeqCst))
    }

    /// Whether there was none at that moment and since, so that a pause which the engine has told
    /// of meanwhile is somebody else's.
    pub(crate) fn none_since(&self, moment: Moment) -> bool {
        moment.0.is_multiple_of(2) && self.count.load(Ordering::SeqCst) == moment.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_in_between_is_seen_though_it_has_ended() {
        let pauses = OwnPauses::default();
        let before = pauses.now();
        assert!(pauses.none_since(before) && !pauses.is_active());
        pauses.begin();
        let during = pauses.now();
        assert!(!pauses.none_since(before) && !pauses.none_since(during) && pauses.is_active());
        pauses.end();
        assert!(!pauses.none_since(before) && !pauses.none_since(during));
        assert!(pauses.none_since(pauses.now()));
    }
}
