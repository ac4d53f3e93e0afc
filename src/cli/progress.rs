//! Progress of steps that take long, on a terminal.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::io::{AsyncRead, ReadBuf};

/// How long a step may take before it is worth a line on the terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(120);

/// One step. Its line goes away when it is dropped.
pub(crate) struct Step {
    bar: ProgressBar,
    appear: Option<tokio::task::JoinHandle<()>>,
}

impl Step {
    /// Begins a step; where it is `visible`, its line appears after [`PATIENCE`]. Needs a runtime.
    pub(crate) fn start(label: String, visible: bool) -> Step {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(label);
        bar.set_style(style("{spinner} {wide_msg} {elapsed}"));
        let appear = visible.then(|| {
            let bar = bar.clone();
            tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
            })
        });
        Step { bar, appear }
    }

    /// Says what is being done now.
    pub(crate) fn message(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Lets `print` write to the terminal, with the line out of its way.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Says how many bytes of how many are done, when the whole is known.
    pub(crate) fn bytes(&self, done: u64, total: Option<u64>) {
        if let Some(total) = total.filter(|total| *total > 0)
            && self.bar.length() != Some(total)
        {
            self.bar.set_length(total);
            self.bar.set_style(style("{spinner} {msg} [{wide_bar}] {bytes}/{total_bytes}"));
        }
        self.bar.set_position(done);
    }

    /// `reader`, with what it gives counted as the progress of this step.
    pub(crate) fn count<R: AsyncRead + Send + Unpin + 'static>(&self, reader: R) -> Counted<R> {
        if self.bar.length().is_none() {
            self.bar.set_style(style("{spinner} {msg} {bytes} {bytes_per_sec} {elapsed}"));
        }
        Counted { reader, bar: self.bar.clone() }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(appear) = self.appear.take() {
            appear.abort();
        }
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A reader whose bytes are counted.
pub(crate) struct Counted<R> {
    reader: R,
    bar: ProgressBar,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.reader).poll_read(cx, buf))?;
        self.bar.inc((buf.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}
