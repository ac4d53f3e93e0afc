//! How long a command has been silent, and how long its output has been waited for.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Tells silence from a slow reader: while output waits for one, no time passes.
#[derive(Debug)]
pub(super) struct OutputClock(watch::Sender<Activity>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// The last output was passed on at this time.
    SilentSince(Instant),
    /// Output waits for its reader.
    Blocked,
}

impl OutputClock {
    /// Silent from now on.
    pub(super) fn new() -> Self {
        OutputClock(watch::Sender::new(Activity::SilentSince(Instant::now())))
    }

    /// Output is there and waits for its reader.
    pub(super) fn block(&self) {
        self.0.send_replace(Activity::Blocked);
    }

    /// Output was passed on.
    pub(super) fn touch(&self) {
        self.0.send_replace(Activity::SilentSince(Instant::now()));
    }

    /// Waits until there was no output for `limit`; forever without one.
    pub(super) async fn silent_for(&self, limit: Option<Duration>) {
        let Some(limit) = limit else { return std::future::pending().await };
        let mut activity = self.0.subscribe();
        loop {
            let before = *activity.borrow_and_update();
            match before {
                Activity::SilentSince(last) => {
                    tokio::time::sleep_until(last + limit).await;
                    if *activity.borrow() == before {
                        return;
                    }
                }
                // The sender is in `self`, so that this does not fail.
                Activity::Blocked => drop(activity.changed().await),
            }
        }
    }

    /// Waits for `limit`, not counting the time in which output waits for its reader.
    pub(super) async fn unblocked_for(&self, limit: Duration) {
        let mut activity = self.0.subscribe();
        let mut left = limit;
        loop {
            // The sender is in `self`, so that neither wait fails.
            let _ = activity.wait_for(|activity| *activity != Activity::Blocked).await;
            let begin = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = activity.wait_for(|activity| *activity == Activity::Blocked) => {}
            }
            left = left.saturating_sub(begin.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_output() {
        let clock = OutputClock::new();
        let begin = Instant::now();
        let talk = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            clock.touch();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = talk => {}
            () = clock.silent_for(Some(Duration::from_secs(5))) => {}
        }
        assert_eq!(begin.elapsed(), Duration::from_secs(8));
    }

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_while_output_waits() {
        let clock = OutputClock::new();
        let begin = Instant::now();
        let slow = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.block();
            tokio::time::sleep(Duration::from_secs(60)).await;
            clock.touch();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = slow => {}
            () = clock.unblocked_for(Duration::from_secs(2)) => {}
        }
        assert_eq!(begin.elapsed(), Duration::from_secs(62));
    }
}
