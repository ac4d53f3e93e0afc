//! What every subcommand is given.

use super::printer::Printer;
use super::signals::Interrupts;

/// What every subcommand is given.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Shows things.
    pub(crate) printer: Printer,
    /// Tells when to stop.
    pub(crate) interrupts: Interrupts,
}
