//! How long a command is tried to be ended, and when it is certain that it cannot be.

use std::fmt;
use std::time::{Duration, Instant};

/// How long processes may be left by the script, and how long an engine that answers may refuse to
/// run it: a busy one does so at times, and a container at its limits for ever.
const LEFT: Duration = Duration::from_secs(10);
const REFUSED: Duration = Duration::from_secs(30);

/// After how many attempts at least something is certain.
const ATTEMPTS: u32 = 3;

/// How long an engine that does not answer is waited for.
const SLOW: Duration = Duration::from_secs(120);

/// Why an attempt has not ended a command.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The script has run, and something is left.
    Left(String),
    /// The engine has answered, and the script has not run.
    Refused(String),
    /// The engine takes its time.
    Slow(String),
}

impl Trouble {
    /// The same while the engine is slow, which may be the reason for it.
    pub(super) fn of_a_slow_engine(self) -> Trouble {
        match self {
            Trouble::Left(words) | Trouble::Refused(words) | Trouble::Slow(words) => Trouble::Slow(words),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Left(words) | Trouble::Refused(words) => f.write_str(words),
            Trouble::Slow(words) => write!(f, "the engine is slow: {words}"),
        }
    }
}

/// Counts the attempts to end one command.
#[derive(Debug)]
pub(super) struct Patience {
    began: Instant,
    /// Since when the engine has answered and the command has not ended, and how often.
    since: Option<Instant>,
    attempts: u32,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience { began: Instant::now(), since: None, attempts: 0 }
    }

    /// Forgets what was, since nothing can end while the container is paused.
    pub(super) fn rest(&mut self) {
        *self = Patience::new();
    }

    /// Whether to give up, and then whether it is certain that processes run on. What a slow engine
    /// answers makes nothing certain.
    pub(super) fn is_over(&mut self, trouble: &Trouble) -> Option<bool> {
        let bound = match trouble {
            Trouble::Left(_) => LEFT,
            Trouble::Refused(_) => REFUSED,
            Trouble::Slow(_) => {
                (self.since, self.attempts) = (None, 0);
                return (self.began.elapsed() >= SLOW).then_some(false);
            }
        };
        self.attempts += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        (self.attempts >= ATTEMPTS && since.elapsed() >= bound).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(by: Duration) -> Instant {
        Instant::now().checked_sub(by).unwrap()
    }

    #[test]
    fn only_attempts_beside_an_engine_that_answers_make_it_certain() {
        let left = Trouble::Left(String::new());
        let mut patience = Patience::new();
        assert_eq!(patience.is_over(&left), None);
        patience.since = Some(earlier(LEFT));
        assert_eq!(patience.is_over(&left), None, "the second attempt");
        assert_eq!(patience.is_over(&Trouble::Refused(String::new())), None, "it is given longer");
        assert_eq!(patience.is_over(&left), Some(true));
        assert_eq!(patience.is_over(&left.clone().of_a_slow_engine()), None);
        assert_eq!(patience.is_over(&left), None, "it begins anew");
    }

    #[test]
    fn a_slow_engine_is_given_up_without_a_verdict() {
        let slow = Trouble::Slow(String::new());
        let mut patience = Patience { began: earlier(SLOW), since: Some(earlier(SLOW)), attempts: 9 };
        assert_eq!(patience.is_over(&slow), Some(false));
        patience.rest();
        assert_eq!(patience.is_over(&slow), None);
    }
}
