//! Waiting for what must come true, in tests and in the conformance suite.

use std::fmt::Debug;
use std::panic::Location;
use std::time::{Duration, Instant};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until what is found is `wanted`, and panics with what was found last when that
/// takes longer than `within`. A look that lasts is not cut short.
#[track_caller]
pub(crate) fn eventually<T: Debug, F: Future<Output = T>>(
    within: Duration,
    mut look: impl FnMut() -> F,
    wanted: impl Fn(&T) -> bool,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + within;
        loop {
            let found = look().await;
            if wanted(&found) {
                return;
            }
            assert!(Instant::now() < deadline, "{caller}: after {within:?} it is still {found:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
