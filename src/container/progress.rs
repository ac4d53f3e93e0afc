//! What a caller is told while a container is made.

use std::time::Duration;

/// One step of making an image or a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A stage has begun.
    Stage(Stage),
    /// The engine pulls a layer of the image.
    #[non_exhaustive]
    Pull {
        /// The layer's short id; `None` for the image as a whole.
        layer: Option<String>,
        /// The engine's own words.
        status: String,
        /// How many bytes are done.
        current: Option<u64>,
        /// How many bytes there are.
        total: Option<u64>,
    },
    /// The pull failed and is tried again after a delay.
    #[non_exhaustive]
    PullRetry {
        /// How often it was tried so far.
        attempt: u32,
        /// How long it waits.
        delay: Duration,
        /// The engine's or the registry's own words.
        reason: String,
    },
    /// A line of a build's output.
    Build(String),
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The image is being pulled.
    Pulling,
    /// The image is being built.
    Building,
    /// The container is being made.
    Creating,
    /// The workspace root is being made.
    Preparing,
    /// The container is being started.
    Starting,
    /// The workspace is open.
    Ready,
}

/// How long the parts of making a container took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// The pull of the image; zero when the engine had it.
    pub pull: Duration,
    /// The engine's making of the container, with its root.
    pub create: Duration,
    /// Its start, until it can be used.
    pub start: Duration,
}
