//! Gets images from registries, with patience for those that limit or fail.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt as _;

use super::engine::Engine;
use super::progress::Progress;
use crate::error::{Error, ImageErrorKind, Result};

/// How often a pull is tried.
const MAX_ATTEMPTS: u32 = 5;

/// The delay before the second attempt; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay, also of one that a registry asks for.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// How long a pull may show no progress: registries stall connections rather than close them.
const STALL: Duration = Duration::from_secs(300);

/// Pulls `reference`, which is in form, from its registry.
pub(crate) async fn pull(
    engine: &Engine,
    reference: &str,
    platform: Option<&str>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<()> {
    let mut attempt = 1;
    loop {
        let Err(failure) = pull_once(engine, reference, platform, progress).await else { return Ok(()) };
        let (verdict, detail) = judge(&failure);
        let kind = match verdict {
            Verdict::NotFound => ImageErrorKind::NotFound { detail },
            Verdict::Invalid => ImageErrorKind::InvalidReference { detail },
            Verdict::Retry { after } if attempt < MAX_ATTEMPTS => {
                let delay = after.unwrap_or_else(|| backoff(attempt)).min(MAX_DELAY);
                progress(Progress::PullRetry { attempt, delay, reason: detail });
                tokio::time::sleep(delay).await;
                attempt += 1;
                continue;
            }
            Verdict::Retry { .. } | Verdict::Refused => {
                ImageErrorKind::PullFailed { attempts: attempt, detail }
            }
        };
        return Err(Error::Image { reference: reference.to_owned(), kind });
    }
}

async fn pull_once(
    engine: &Engine,
    reference: &str,
    platform: Option<&str>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<()> {
    let (name, tag) = split(reference);
    let mut options = CreateImageOptionsBuilder::default().from_image(name);
    if let Some(tag) = tag {
        options = options.tag(tag);
    }
    if let Some(platform) = platform {
        options = options.platform(platform);
    }
    let mut steps = engine.docker().create_image(Some(options.build()), None, None);
    loop {
        let step = tokio::time::timeout(STALL, steps.next())
            .await
            .map_err(|_| Error::Timeout { operation: "a step of the pull".to_owned(), after: STALL })?;
        match step {
            None => return Ok(()),
            Some(Err(error)) => return Err(engine.error("pull the image", error)),
            Some(Ok(step)) => progress(pulled(step)),
        }
    }
}

fn pulled(step: CreateImageInfo) -> Progress {
    let bytes = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let detail = step.progress_detail.unwrap_or_default();
    Progress::Pull {
        layer: step.id,
        status: step.status.unwrap_or_default(),
        current: bytes(detail.current),
        total: bytes(detail.total),
    }
}

/// The name and the tag to ask for. Without a tag an engine would pull every tag there is.
fn split(reference: &str) -> (&str, Option<&str>) {
    if reference.contains('@') {
        return (reference, None);
    }
    let last = reference.rfind('/').map_or(0, |slash| slash + 1);
    match reference[last..].rfind(':') {
        Some(colon) => (&reference[..last + colon], Some(&reference[last + colon + 1..])),
        None => (reference, Some("latest")),
    }
}

/// What to do about a failed pull.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The registry does not know it or does not show it.
    NotFound,
    Invalid,
    /// It may well work later.
    Retry {
        /// When the registry said so.
        after: Option<Duration>,
    },
    /// It will not work later either.
    Refused,
}

/// What a failure means, with its words. Engines pass a registry's refusal on as a text, under
/// status 404, 500 or none.
fn judge(error: &Error) -> (Verdict, String) {
    let (status, message) = match error {
        Error::Engine { status, message, .. } => (*status, message.clone()),
        other => return (Verdict::Retry { after: None }, other.to_string()),
    };
    let text = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let verdict = if status == Some(429) || says(&["toomanyrequests", "too many requests", "rate limit"]) {
        Verdict::Retry { after: retry_after(&text) }
    } else if says(&["invalid reference format"]) {
        Verdict::Invalid
    } else if matches!(status, Some(401 | 403 | 404))
        || says(&["unauthorized", "denied", "manifest unknown", "name unknown", "no matching manifest"])
    {
        Verdict::NotFound
    } else if status.is_none_or(|status| status >= 500) {
        Verdict::Retry { after: None }
    } else {
        Verdict::Refused
    };
    (verdict, message)
}

/// The delay that a registry asked for, where its words reached us: `retry-after: 30`, or with a
/// unit as in `retry-after: 543ms`.
fn retry_after(text: &str) -> Option<Duration> {
    let (_, rest) = text.split_once("retry-after")?;
    let rest = rest.trim_start_matches([':', '=', ' ']);
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
    let unit = match rest[end..].split([',', ' ', ';', ')']).next().unwrap_or_default() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "µs" | "us" => 1e-6,
        "m" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The delay after an attempt, with up to a half on top, so that many that failed together do
/// not come back together.
fn backoff(attempt: u32) -> Duration {
    let delay = FIRST_DELAY * 2u32.pow(attempt - 1);
    let jitter = RandomState::new().hash_one(attempt) % 500;
    delay + delay.mul_f64(jitter as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: Option<u16>, message: &str) -> Verdict {
        let operation = "pull the image".to_owned();
        judge(&Error::Engine { operation, status, message: message.to_owned() }).0
    }

    #[test]
    fn a_reference_without_a_tag_means_latest() {
        assert_eq!(split("a"), ("a", Some("latest")));
        assert_eq!(split("host:5000/a"), ("host:5000/a", Some("latest")));
        assert_eq!(split("host:5000/a/b:c"), ("host:5000/a/b", Some("c")));
        assert_eq!(split("a@sha256:00"), ("a@sha256:00", None));
    }

    #[test]
    fn refusals_are_final_and_failures_are_tried_again() {
        assert_eq!(verdict(Some(404), "manifest unknown"), Verdict::NotFound);
        assert_eq!(verdict(Some(500), "unauthorized: authentication required"), Verdict::NotFound);
        assert_eq!(verdict(None, "pull access denied for x"), Verdict::NotFound);
        assert_eq!(verdict(Some(400), "invalid reference format"), Verdict::Invalid);
        assert_eq!(verdict(Some(500), "dial tcp: i/o timeout"), Verdict::Retry { after: None });
        assert_eq!(verdict(None, "unexpected EOF"), Verdict::Retry { after: None });
        assert_eq!(verdict(Some(400), "bad parameter"), Verdict::Refused);
    }

    #[test]
    fn a_registry_says_when_to_come_back() {
        let limited = |message: &str| verdict(Some(500), message);
        let after = |after| Verdict::Retry { after };
        assert_eq!(limited("toomanyrequests: slow down"), after(None));
        assert_eq!(
            limited("toomanyrequests: Retry-After: 543ms, allowed: 44000/minute"),
            after(Some(Duration::from_millis(543)))
        );
        assert_eq!(verdict(Some(429), "retry-after: 30"), after(Some(Duration::from_secs(30))));
    }

    #[test]
    fn delays_grow() {
        assert!(backoff(1) >= Duration::from_secs(1) && backoff(1) < Duration::from_millis(1500));
        assert!(backoff(4) >= Duration::from_secs(8));
    }
}
