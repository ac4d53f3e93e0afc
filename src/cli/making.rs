//! The progress of making an image or a container.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use agentworkspace::container::{Progress, Stage};

use super::printer::Printer;
use super::progress::Step;

/// Shows the progress of making a container: on a terminal one line, in all cases what a person
/// should know.
pub(crate) struct Making {
    printer: Printer,
    step: Step,
    /// The image, or the directory that it is built from.
    of: String,
    /// How many bytes of how many are done, by layer.
    layers: Mutex<BTreeMap<String, (u64, u64)>>,
    past_the_image: AtomicBool,
}

impl Making {
    /// Begins it, of this image or of a directory to build one from.
    pub(crate) fn new(printer: Printer, of: String) -> Making {
        Making {
            printer,
            step: printer.step(format!("asking the engine about {of}")),
            of,
            layers: Mutex::default(),
            past_the_image: AtomicBool::new(false),
        }
    }

    /// Whether the engine may have begun to make something that has to be removed.
    pub(crate) fn is_past_the_image(&self) -> bool {
        self.past_the_image.load(Ordering::Relaxed)
    }

    /// Shows one step.
    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Stage(stage) => {
                let of = &self.of;
                let doing = match stage {
                    Stage::Pulling => format!("pulling {of}"),
                    Stage::Building => format!("building {of}"),
                    Stage::Creating => format!("making a container of {of}"),
                    Stage::Preparing => format!("making the workspace's root in a container of {of}"),
                    Stage::Starting => format!("starting a container of {of}"),
                    _ => return,
                };
                if !matches!(stage, Stage::Pulling | Stage::Building) {
                    self.past_the_image.store(true, Ordering::Relaxed);
                }
                self.printer.detail(&doing);
                self.step.message(doing);
            }
            Progress::Pull { layer: Some(layer), current: Some(current), total: Some(total), .. } => {
                let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
                layers.insert(layer, (current, total));
                let done = layers.values().map(|(current, _)| current).sum();
                let all = layers.values().map(|(_, total)| total).sum();
                self.step.bytes(done, Some(all));
            }
            Progress::Pull { status, .. } => self.step.message(format!("pulling {}: {status}", self.of)),
            Progress::PullRetry { attempt, delay, reason, .. } => self.step.suspend(|| {
                self.printer.warning(format_args!(
                    "try {attempt} to pull {} failed ({reason}); the next is in {:.1} s",
                    self.of,
                    delay.as_secs_f64()
                ));
            }),
            Progress::Build(line) => {
                self.printer.detail(line.trim_end());
                self.step.message(format!("building {}: {}", self.of, line.trim_end()));
            }
            _ => {}
        }
    }
}
