//! Workspaces by one string: what the command line and configuration files call a target.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "container")]
use crate::container::{AttachOptions, ContainerOptions, ContainerWorkspace, Engine};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::local::LocalWorkspace;
use crate::workspace::Workspace;

/// Where a workspace is.
///
/// ```
/// use agentworkspace::Target;
///
/// let target: Target = "image:alpine:3.20".parse()?;
/// assert_eq!(target, Target::Image("alpine:3.20".to_owned()));
/// assert_eq!(target.to_string(), "image:alpine:3.20");
/// # Ok::<(), agentworkspace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// `local:DIR`: a directory on this machine.
    Local(PathBuf),
    /// `image:REF`: a fresh container of this image, removed when the workspace is closed.
    Image(String),
    /// `container:NAME_OR_ID`: a running container, left as it was when the workspace is closed.
    Container(String),
}

impl Target {
    /// Opens the workspace with every default.
    ///
    /// Commands in a local directory start with [`Environment::from_host_basics`], those in a
    /// container with the image's own environment.
    ///
    /// # Errors
    ///
    /// Those of [`LocalWorkspace::open`](crate::local::LocalWorkspace::open),
    /// `ContainerWorkspace::create` and `ContainerWorkspace::attach`; [`Error::Unsupported`] for a
    /// container in a build without the feature `container`.
    ///
    /// # Cancel safety
    ///
    /// What was made is removed when the future is dropped.
    pub async fn open(&self) -> Result<Arc<dyn Workspace>> {
        match self {
            Target::Local(dir) => {
                let env = Environment::from_host_basics();
                Ok(Arc::new(LocalWorkspace::open(dir, env)?))
            }
            #[cfg(feature = "container")]
            Target::Image(reference) => {
                let engine = Engine::connect().await?;
                let options = ContainerOptions::new(reference);
                Ok(Arc::new(ContainerWorkspace::create(&engine, options, |_| ()).await?))
            }
            #[cfg(feature = "container")]
            Target::Container(name) => {
                let engine = Engine::connect().await?;
                Ok(Arc::new(ContainerWorkspace::attach(&engine, name, AttachOptions::default()).await?))
            }
            #[cfg(not(feature = "container"))]
            Target::Image(_) | Target::Container(_) => Err(Error::Unsupported {
                operation: format!("opening {self}"),
                backend: crate::Kind::Container,
                reason: "this build lacks the feature `container`".to_owned(),
            }),
        }
    }
}

/// Opens the workspace that `target` names, as [`Target`] reads it, with every default.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for what is no target, and those of [`Target::open`].
///
/// # Cancel safety
///
/// As [`Target::open`].
pub async fn open(target: &str) -> Result<Arc<dyn Workspace>> {
    target.parse::<Target>()?.open().await
}

/// Forms of a target that are reserved, each with what a person calls it.
const RESERVED: [(&str, &str); 4] = [
    ("http:", "a workspace served by another host"),
    ("https:", "a workspace served by another host"),
    ("unix:", "a workspace served at a socket"),
    ("swarm:", "a workspace placed by Docker Swarm"),
];

impl FromStr for Target {
    type Err = Error;

    /// Reads one of the forms above.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for anything else. `http:`, `https:`, `unix:` and `swarm:` are
    /// reserved and not supported by this version.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = |reason: String| Err(Error::InvalidArgument { reason });
        for (scheme, what) in RESERVED {
            if text.starts_with(scheme) {
                return invalid(format!("the target `{text}`, {what}, is not supported by this version"));
            }
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return invalid(format!(
                "`{text}` is not a target: use `local:DIR`, `image:REF` or `container:NAME_OR_ID`"
            ));
        };
        if rest.is_empty() {
            return invalid(format!("the target `{text}` names nothing after `{scheme}:`"));
        }
        match scheme {
            "local" => Ok(Target::Local(rest.into())),
            "image" => Ok(Target::Image(rest.to_owned())),
            "container" => Ok(Target::Container(rest.to_owned())),
            _ => invalid(format!(
                "`{text}` is not a target: `{scheme}:` is none of `local:`, `image:` and `container:`"
            )),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Local(dir) => write!(f, "local:{}", dir.display()),
            Target::Image(reference) => write!(f, "image:{reference}"),
            Target::Container(name) => write!(f, "container:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_displays_as_it_was_written() {
        for text in ["local:.", "local:/tmp/a b", "image:host:5000/a/b:tag@sha256:00", "container:web"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn reserved_forms_say_that_they_are_not_supported() {
        for text in ["http://a", "https://a:1", "unix:/run/a", "swarm:a"] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("not supported by this version"), "{error}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "a", "/tmp", "local:", "docker:a", "Local:a"] {
            assert!(matches!(text.parse::<Target>(), Err(Error::InvalidArgument { .. })), "{text:?}");
        }
    }
}
