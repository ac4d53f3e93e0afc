//! Builds an image from a directory by the engine's classic builder.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures::StreamExt as _;

use super::build_context::{self, Ignore};
use super::engine::Engine;
use super::image;
use super::options::setters;
use super::progress::{Progress, Stage};
use crate::error::{Error, ImageErrorKind, Result};

/// The last lines of a build's output that its error carries.
const KEPT_LINES: usize = 20;

/// How [`Engine::build`] builds an image.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The Dockerfile, relative to the context. Default: `Dockerfile`.
    pub dockerfile: Option<String>,
    /// The name, with or without a tag, that the image gets. Default: none.
    pub tag: Option<String>,
    /// Build arguments. They are visible in the image's history.
    pub args: BTreeMap<String, String>,
    /// The stage to build. Default: the last one.
    pub target: Option<String>,
    /// Whether layers of earlier builds are left unused.
    pub no_cache: bool,
    /// The network of `RUN` steps. Default: the engine's.
    pub network: Option<String>,
}

setters!(BuildOptions {
    /// Sets the Dockerfile.
    dockerfile: impl Into<String> => Some(dockerfile.into());
    /// Names the image.
    tag: impl Into<String> => Some(tag.into());
    /// Sets the build arguments.
    args: BTreeMap<String, String> => args;
    /// Sets the stage to build.
    target: impl Into<String> => Some(target.into());
    /// Leaves layers of earlier builds unused.
    no_cache: bool => no_cache;
    /// Sets the network of `RUN` steps.
    network: impl Into<String> => Some(network.into());
});

impl Engine {
    /// Builds an image from the directory `context` of this machine, and returns its id.
    ///
    /// The context is streamed as a tar archive without what its `.dockerignore` leaves out; links
    /// in it are sent as links and nothing outside is read. The engine's classic builder runs it,
    /// so that what only BuildKit knows, such as `RUN --mount`, fails.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] with [`ImageErrorKind::BuildFailed`] and the last lines of output;
    /// [`Error::Io`] when the context cannot be read.
    pub async fn build(
        &self,
        context: impl AsRef<Path>,
        options: BuildOptions,
        progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<String> {
        let context: PathBuf = context.as_ref().to_path_buf();
        let dockerfile = options.dockerfile.clone().unwrap_or_else(|| "Dockerfile".to_owned());
        let ignore = Ignore::read(&context, &dockerfile)?;
        progress(Progress::Stage(Stage::Building));
        let (body, archived) = build_context::stream(context, ignore);
        let query = query(&options, &dockerfile);
        let mut output = self.docker().build_image(query, None, Some(bollard::body_try_stream(body)));
        let mut log = Log { reference: options.tag.unwrap_or_default(), lines: Vec::new() };
        while let Some(step) = output.next().await {
            let step = match step {
                Ok(step) => step,
                Err(error) => {
                    // A context that could not be read is the cause of the request's end.
                    drop(output);
                    archived.await.unwrap_or(Ok(()))?;
                    return Err(log.failed(self.error("build the image", error)));
                }
            };
            for line in step.stream.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
                log.add(line);
                progress(Progress::Build(line.to_owned()));
            }
        }
        self.built(log).await
    }

    /// The id of what was built: the builder says it in its last lines, and Podman in its last
    /// line alone. What a step of the build printed comes before.
    async fn built(&self, log: Log) -> Result<String> {
        let mut lines = log.lines.iter().rev().map(|line| line.trim());
        let id = lines.clone().find_map(|line| line.strip_prefix("Successfully built ")).or(lines.next());
        let image = match id.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(id) => image::inspect(self, id).await?,
            None => None,
        };
        match image.and_then(|image| image.id) {
            Some(id) => Ok(if id.contains(':') { id } else { format!("sha256:{id}") }),
            None => Err(log.error("the builder named no image".to_owned())),
        }
    }
}

fn query(options: &BuildOptions, dockerfile: &str) -> bollard::query_parameters::BuildImageOptions {
    let args: HashMap<&str, &str> =
        options.args.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    BuildImageOptionsBuilder::default()
        .dockerfile(dockerfile)
        .t(options.tag.as_deref().unwrap_or_default())
        .target(options.target.as_deref().unwrap_or_default())
        .networkmode(options.network.as_deref().unwrap_or_default())
        .nocache(options.no_cache)
        .buildargs(&args)
        // Intermediate containers go, also after a failure.
        .rm(true)
        .forcerm(true)
        .build()
}

/// The end of a build's output.
struct Log {
    reference: String,
    lines: Vec<String>,
}

impl Log {
    fn add(&mut self, line: &str) {
        if self.lines.len() == KEPT_LINES {
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// What a failure of the engine means: its own words after the last output.
    fn failed(self, error: Error) -> Error {
        match error {
            Error::Engine { message, .. } => self.error(message),
            other => other,
        }
    }

    fn error(mut self, message: String) -> Error {
        self.lines.push(message);
        let detail = self.lines.join("\n");
        Error::Image { reference: self.reference, kind: ImageErrorKind::BuildFailed { detail } }
    }
}
