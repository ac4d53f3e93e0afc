//! Signals by name and number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A signal to a process, by its Linux number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct Signal(i32);

impl Signal {
    /// Terminal closed.
    pub const HUP: Signal = Signal(1);
    /// Interrupt, as Ctrl-C sends it.
    pub const INT: Signal = Signal(2);
    /// Quit, as Ctrl-\ sends it.
    pub const QUIT: Signal = Signal(3);
    /// End at once; cannot be caught.
    pub const KILL: Signal = Signal(9);
    /// The first one for a program's own use.
    pub const USR1: Signal = Signal(10);
    /// The second one for a program's own use.
    pub const USR2: Signal = Signal(12);
    /// Please end.
    pub const TERM: Signal = Signal(15);
    /// Continue after a stop.
    pub const CONT: Signal = Signal(18);
    /// Stop; cannot be caught.
    pub const STOP: Signal = Signal(19);

    const NAMES: [&'static str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];

    /// The signal with this number, 1 to 64.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for another number.
    pub fn new(number: i32) -> Result<Signal> {
        if (1..=64).contains(&number) {
            return Ok(Signal(number));
        }
        Err(Error::InvalidArgument { reason: format!("{number} is not a signal: use 1 to 64") })
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Its name without `SIG`; `None` for a real-time signal.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::try_from(self.0).ok()?.checked_sub(1)?).copied()
    }
}

impl TryFrom<i32> for Signal {
    type Error = Error;

    fn try_from(number: i32) -> Result<Signal> {
        Signal::new(number)
    }
}

impl From<Signal> for i32 {
    fn from(signal: Signal) -> i32 {
        signal.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl FromStr for Signal {
    type Err = Error;

    /// `TERM`, `SIGTERM`, `term` or `15`.
    fn from_str(text: &str) -> Result<Signal> {
        if let Ok(number) = text.parse() {
            return Signal::new(number);
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        match Self::NAMES.iter().position(|known| *known == name) {
            Some(index) => Signal::new(i32::try_from(index + 1).unwrap_or_default()),
            None => Err(Error::InvalidArgument {
                reason: format!("`{text}` is not a signal: use a name such as TERM or a number"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_with_linux() {
        for (signal, number) in
            [(Signal::KILL, libc::SIGKILL), (Signal::TERM, libc::SIGTERM), (Signal::CONT, libc::SIGCONT)]
        {
            assert_eq!(signal.number(), number);
        }
        assert_eq!("sigwinch".parse::<Signal>().unwrap().number(), libc::SIGWINCH);
        assert_eq!("9".parse::<Signal>().unwrap(), Signal::KILL);
        assert_eq!(Signal::TERM.to_string(), "SIGTERM");
        assert_eq!(Signal::new(40).unwrap().to_string(), "signal 40");
        assert!("NOPE".parse::<Signal>().is_err());
        assert!("0".parse::<Signal>().is_err());
    }
}
