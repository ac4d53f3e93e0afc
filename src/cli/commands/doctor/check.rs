//! One thing that was checked.

use serde::Serialize;

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It works.
    Ok,
    /// It works, and something is missing or will soon be.
    Warn,
    /// Containers cannot be used before it is mended.
    Fail,
}

impl Verdict {
    /// As it is shown.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        }
    }
}

/// What was found.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What was checked.
    pub(crate) name: &'static str,
    /// How it is.
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mend: Option<String>,
}

impl Check {
    /// It works.
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Ok, found: found.into(), mend: None }
    }

    /// It works, and could be better.
    pub(crate) fn warn(name: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Warn, found: found.into(), mend: Some(mend.into()) }
    }

    /// It does not work.
    pub(crate) fn fail(name: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Fail, found: found.into(), mend: Some(mend.into()) }
    }
}
