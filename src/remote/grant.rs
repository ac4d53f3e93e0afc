//! What a client may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What a client may do; none of them implies another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scopes {
    /// Read files, metadata, directories and archives.
    pub read: bool,
    /// Change files and directories.
    pub write: bool,
    /// Run commands, and see the environment that they get.
    pub exec: bool,
}

impl Scopes {
    /// All of them.
    pub fn all() -> Self {
        Scopes { read: true, write: true, exec: true }
    }

    /// Refuses what needs a scope that is not there.
    pub(super) fn check(self, needed: Scopes) -> Result<()> {
        for (has, needs, name) in [
            (self.read, needed.read, "read"),
            (self.write, needed.write, "write"),
            (self.exec, needed.exec, "exec"),
        ] {
            if needs && !has {
                return Err(Error::Unsupported {
                    operation: "that".to_owned(),
                    backend: crate::Kind::Remote,
                    reason: format!("the token lacks the scope `{name}`"),
                });
            }
        }
        Ok(())
    }
}

impl FromStr for Scopes {
    type Err = Error;

    /// `read,exec` and the like, at least one.
    fn from_str(text: &str) -> Result<Self> {
        let mut scopes = Scopes::default();
        for name in text.split(',') {
            match name {
                "read" => scopes.read = true,
                "write" => scopes.write = true,
                "exec" => scopes.exec = true,
                _ => {
                    return Err(Error::InvalidArgument {
                        reason: format!("`{name}` is not a scope: use `read`, `write` and `exec`"),
                    });
                }
            }
        }
        Ok(scopes)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.read, "read"), (self.write, "write"), (self.exec, "exec")];
        let names: Vec<&str> = names.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

/// Who a client is and what it may do.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// Whose sessions it may use: those that were opened by the same one.
    pub(super) identity: u64,
    pub(super) scopes: Scopes,
}

/// Decides about each request.
pub(super) trait Authorize: fmt::Debug + Send + Sync {
    /// What whoever has this bearer token may do; `None` when it is not known.
    fn authorize(&self, token: Option<&str>) -> Option<Grant>;

    /// Whether everybody is let in.
    #[cfg(feature = "remote")]
    fn is_open(&self) -> bool;
}

/// Lets everybody in: for a stream whose other end is known.
#[derive(Debug)]
pub(super) struct Everybody;

impl Authorize for Everybody {
    fn authorize(&self, _: Option<&str>) -> Option<Grant> {
        Some(Grant { identity: 0, scopes: Scopes::all() })
    }

    #[cfg(feature = "remote")]
    fn is_open(&self) -> bool {
        true
    }
}
