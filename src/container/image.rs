//! Which image a container is made from, and what identifies it.

use std::time::{Duration, Instant};

use bollard::models::{ContainerInspectResponse, ImageInspect};

use super::engine::{CALL_TIMEOUT, Engine};
use super::options::{ContainerOptions, PullPolicy};
use super::progress::{Progress, Stage};
use super::pull;
use crate::descriptor::ImageDetails;
use crate::error::{Error, ImageErrorKind, Result};

/// Sees to it that the engine has the image, by the options' pull policy; also how long a pull
/// took.
pub(crate) async fn ensure(
    engine: &Engine,
    options: &ContainerOptions,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<(ImageInspect, Duration)> {
    let reference = options.image.as_str();
    let refused = |kind| Error::Image { reference: reference.to_owned(), kind };
    let wanted = options.platform.as_deref();
    let present = inspect(engine, reference).await?;
    let fits = present.as_ref().is_some_and(|image| is_for(image, wanted));
    let pulls = match options.pull {
        PullPolicy::Missing => !fits,
        PullPolicy::Always => true,
        PullPolicy::Never => false,
    };
    let start = Instant::now();
    let image = match present {
        // An id names nothing in a registry.
        _ if pulls && !is_id(reference) => {
            progress(Progress::Stage(Stage::Pulling));
            pull::pull(engine, reference, wanted, progress).await?;
            inspect(engine, reference).await?
        }
        present => present,
    };
    let took = if pulls { start.elapsed() } else { Duration::ZERO };
    let image = image.ok_or_else(|| refused(ImageErrorKind::NotPresent))?;
    if !is_for(&image, wanted) {
        let required = wanted.unwrap_or_default().to_owned();
        return Err(refused(ImageErrorKind::WrongPlatform { required, found: platform(&image) }));
    }
    Ok((image, took))
}

/// What the engine says of an image; `None` when it does not have it.
pub(crate) async fn inspect(engine: &Engine, reference: &str) -> Result<Option<ImageInspect>> {
    let call = engine.docker().inspect_image(reference);
    match engine.call("inspect the image", CALL_TIMEOUT, call).await {
        Ok(image) => Ok(Some(image)),
        Err(Error::Engine { status: Some(404), .. }) => Ok(None),
        Err(Error::Engine { status: Some(400), message, .. }) => Err(Error::Image {
            reference: reference.to_owned(),
            kind: ImageErrorKind::InvalidReference { detail: message },
        }),
        Err(error) => Err(error),
    }
}

/// Whether a reference is an image's id, whole or with `sha256:` before it.
fn is_id(reference: &str) -> bool {
    let hex = reference.strip_prefix("sha256:").unwrap_or(reference);
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `os/architecture`, with a variant where there is one.
pub(crate) fn platform(image: &ImageInspect) -> String {
    let parts = [&image.os, &image.architecture, &image.variant];
    let parts: Vec<&str> =
        parts.into_iter().filter_map(|part| part.as_deref()).filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// Whether an image is for a platform; the variant counts only where both name one.
fn is_for(image: &ImageInspect, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    let found = platform(image);
    let mut pairs = wanted.split('/').zip(found.split('/'));
    found.split('/').count() >= 2 && pairs.all(|(wanted, found)| wanted == found)
}

/// The digest of what a container was really made from: the platform's manifest where the engine
/// knows it, otherwise the image's own digest on this engine, which no later tag moves.
pub(crate) fn digest(container: &ContainerInspectResponse) -> String {
    let manifest = container.image_manifest_descriptor.as_ref().and_then(|found| found.digest.as_deref());
    prefixed(manifest.or(container.image.as_deref()).unwrap_or_default())
}

/// A digest with its algorithm, which some engines leave out.
fn prefixed(digest: &str) -> String {
    if digest.is_empty() || digest.contains(':') { digest.to_owned() } else { format!("sha256:{digest}") }
}

/// Refuses a container that was not made from what was required.
pub(crate) fn check_digest(
    reference: &str,
    required: Option<&str>,
    container: &ContainerInspectResponse,
) -> Result<()> {
    let found = digest(container);
    let id = prefixed(container.image.as_deref().unwrap_or_default());
    match required {
        Some(required) if required != found && required != id => Err(Error::Image {
            reference: reference.to_owned(),
            kind: ImageErrorKind::WrongDigest { required: required.to_owned(), found },
        }),
        _ => Ok(()),
    }
}

/// What is told of a container's image.
pub(crate) fn details(
    reference: &str,
    container: &ContainerInspectResponse,
    image: Option<&ImageInspect>,
) -> ImageDetails {
    let digests = image.and_then(|image| image.repo_digests.as_deref()).unwrap_or_default();
    let repository = repository(reference);
    ImageDetails {
        reference: reference.to_owned(),
        image_id: prefixed(container.image.as_deref().unwrap_or_default()),
        repo_digest: digests.iter().find(|digest| self::repository(digest) == repository).cloned(),
        platform: image.map(platform).unwrap_or_default(),
    }
}

/// The repository of a reference in its short form: engines differ in whether they spell out the
/// default registry.
fn repository(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or_default();
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = name[last..].find(':').map_or(name, |colon| &name[..last + colon]);
    ["docker.io/library/", "docker.io/", "localhost/"]
        .iter()
        .find_map(|registry| name.strip_prefix(registry))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(architecture: &str, variant: &str) -> ImageInspect {
        ImageInspect {
            os: Some("linux".into()),
            architecture: Some(architecture.into()),
            variant: Some(variant.into()),
            ..Default::default()
        }
    }

    #[test]
    fn a_platform_fits_by_what_both_name() {
        assert!(is_for(&image("arm64", ""), Some("linux/arm64/v8")));
        assert!(is_for(&image("arm64", "v8"), Some("linux/arm64")));
        assert!(!is_for(&image("arm", "v6"), Some("linux/arm/v7")));
        assert!(!is_for(&image("amd64", ""), Some("linux/arm64")));
        assert!(is_for(&image("amd64", ""), None));
    }

    #[test]
    fn the_manifest_identifies_a_container_before_the_image() {
        let mut container = ContainerInspectResponse { image: Some("aa".repeat(32)), ..Default::default() };
        assert_eq!(digest(&container), format!("sha256:{}", "aa".repeat(32)));
        container.image_manifest_descriptor =
            Some(bollard::models::OciDescriptor { digest: Some("sha256:bb".into()), ..Default::default() });
        assert_eq!(digest(&container), "sha256:bb");
        assert!(check_digest("i", Some("sha256:bb"), &container).is_ok());
        assert!(check_digest("i", Some(&format!("sha256:{}", "aa".repeat(32))), &container).is_ok());
        assert!(check_digest("i", Some("sha256:cc"), &container).is_err());
    }

    #[test]
    fn repositories_are_compared_without_the_default_registry() {
        assert_eq!(repository("docker.io/library/debian:12"), repository("debian@sha256:00"));
        assert_eq!(repository("host:5000/a:b"), "host:5000/a");
    }
}
