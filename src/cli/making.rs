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
    /// How many bytes of how many are done, by layer.
    layers: Mutex<BTreeMap<String, (u64, u64)>>,
    past_the_image: AtomicBool,
}

impl Making {
    /// Begins it.
    pub(crate) fn new(printer: Printer, label: String) -> Making {
        Making {
            printer,
            step: printer.step(label),
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
                let doing = match stage {
                    Stage::Pulling => "pulling the image",
                    Stage::Building => "building the image",
                    Stage::Creating => "making the container",
                    Stage::Preparing => "making the workspace's root",
                    Stage::Starting => "starting the container",
                    _ => return,
                };
                if !matches!(stage, Stage::Pulling | Stage::Building) {
                    self.past_the_image.store(true, Ordering::Relaxed);
                }
                self.step.message(doing);
                self.printer.detail(doing);
            }
            Progress::Pull { layer: Some(layer), current: Some(current), total: Some(total), .. } => {
                let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
                layers.insert(layer, (current, total));
                let done = layers.values().map(|(current, _)| current).sum();
                let all = layers.values().map(|(_, total)| total).sum();
                self.step.bytes(done, Some(all));
            }
            Progress::Pull { status, .. } => self.step.message(status),
            Progress::PullRetry { attempt, delay, reason, .. } => self.printer.warning(format_args!(
                "try {attempt} to pull the image failed ({reason}); the next is in {:.1} s",
                delay.as_secs_f64()
            )),
            Progress::Build(line) => {
                self.printer.detail(line.trim_end());
                self.step.message(line.trim_end());
            }
            _ => {}
        }
    }
}
