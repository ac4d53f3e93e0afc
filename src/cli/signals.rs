//! Signals that ask this process to end.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use agentworkspace::{CancellationToken, Signal};
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Interrupted;

/// The first signal that asked this process to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    token: CancellationToken,
    signal: Arc<OnceLock<Signal>>,
}

impl Interrupts {
    /// Watches for SIGINT, SIGTERM and SIGHUP. The first one ends the work that
    /// [`until`](Self::until) guards; a second one ends this process at once. A signal that is
    /// ignored from the start, as `nohup` does it, stays ignored. Needs a runtime.
    pub(crate) fn install() -> io::Result<Interrupts> {
        let interrupts = Interrupts { token: CancellationToken::new(), signal: Arc::new(OnceLock::new()) };
        let armed = Arc::new(AtomicBool::new(false));
        let ignored = ignored_signals();
        for watched in [Signal::INT, Signal::TERM, Signal::HUP] {
            let number = watched.number();
            if ignored & (1 << (number - 1)) != 0 {
                continue;
            }
            // In this order, so that the signal which arms it does not yet end the process.
            flag::register_conditional_shutdown(number, 128 + number, armed.clone())?;
            flag::register(number, armed.clone())?;
            let mut arrivals = signal(SignalKind::from_raw(number))?;
            let interrupts = interrupts.clone();
            tokio::spawn(async move {
                if arrivals.recv().await.is_some() {
                    // Only the first one counts.
                    let _ = interrupts.signal.set(watched);
                    interrupts.token.cancel();
                }
            });
        }
        Ok(interrupts)
    }

    /// Does `work` unless a signal comes first; then `work` is dropped, which ends what it stood
    /// for.
    pub(crate) async fn until<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        tokio::select! {
            biased;
            () = self.token.cancelled() => {
                let signal = self.signal.get().copied().unwrap_or(Signal::TERM);
                Err(Interrupted(signal).into())
            }
            result = work => result,
        }
    }
}

/// The signals that this process ignores, as a mask; none when the system does not say.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
