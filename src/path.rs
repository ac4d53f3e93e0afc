//! The checked name type: what a caller may call a file of a workspace.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result};

/// The longest name accepted, in bytes: Linux's `PATH_MAX` without its final NUL.
pub const MAX_PATH_BYTES: usize = 4095;

/// The longest element of a name, in bytes: Linux's `NAME_MAX`.
pub const MAX_ELEMENT_BYTES: usize = 255;

/// A name of something below a workspace's root.
///
/// It is UTF-8, `/`-separated and relative to the root, with no empty, `.` or `..` element; `.`
/// alone is the root. The bytes are kept as given: nothing is trimmed, case-folded or normalized,
/// so ` a`, `-rf`, `a\b` and `a\nb` are ordinary names.
///
/// A `WorkspacePath` says nothing about what is there. That no component is a link which leaves
/// the root is decided by the workspace, at the moment of each operation.
///
/// ```
/// use agentworkspace::WorkspacePath;
///
/// let path: WorkspacePath = "notes/todo.md".parse()?;
/// assert_eq!(path.file_name(), Some("todo.md"));
/// assert!("../etc/passwd".parse::<WorkspacePath>().unwrap_err().is_outside());
/// assert!("/etc/passwd".parse::<WorkspacePath>().unwrap_err().is_outside());
/// assert!("a//b".parse::<WorkspacePath>().is_err());
/// # Ok::<(), agentworkspace::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// The root itself, `.`.
    pub fn root() -> Self {
        WorkspacePath(".".to_owned())
    }

    /// Checks `name`.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideWorkspace`] when the name is absolute or its `..` elements climb above the
    /// root; [`Error::InvalidPath`] for every other name that is not in the form above: empty, an
    /// empty, `.` or inner `..` element, a trailing `/`, a NUL byte, an element over
    /// [`MAX_ELEMENT_BYTES`], or more than [`MAX_PATH_BYTES`] in all.
    pub fn parse(name: &str) -> Result<Self> {
        if leaves_root(name) {
            return Err(Error::OutsideWorkspace { path: name.to_owned() });
        }
        if name == "." {
            return Ok(WorkspacePath::root());
        }
        let invalid =
            |reason: &'static str| Err(Error::InvalidPath { path: name.to_owned(), reason: reason.into() });
        if name.is_empty() {
            return invalid("it is empty");
        }
        if name.len() > MAX_PATH_BYTES {
            return invalid("it is longer than 4095 bytes");
        }
        if name.contains('\0') {
            return invalid("it contains a NUL byte");
        }
        for element in name.split('/') {
            match element {
                "" => return invalid("it has an empty element"),
                "." => return invalid("it has a `.` element"),
                ".." => return invalid("it has a `..` element"),
                _ if element.len() > MAX_ELEMENT_BYTES => {
                    return invalid("an element is longer than 255 bytes");
                }
                _ => {}
            }
        }
        Ok(WorkspacePath(name.to_owned()))
    }

    /// Checks a directory as a person writes one: as [`parse`](Self::parse), but `""`, `./a`,
    /// `a/` and `a/../b` are accepted and cleaned without looking at what is there.
    ///
    /// This is the rule for [`Command::dir`](crate::Command::dir).
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_dir(name: &str) -> Result<Self> {
        if leaves_root(name) {
            return Err(Error::OutsideWorkspace { path: name.to_owned() });
        }
        let mut elements: Vec<&str> = Vec::new();
        for element in name.split('/') {
            match element {
                "" | "." => {}
                // `leaves_root` said that no `..` climbs above the start.
                ".." => drop(elements.pop()),
                _ => elements.push(element),
            }
        }
        if elements.is_empty() {
            return Ok(WorkspacePath::root());
        }
        WorkspacePath::parse(&elements.join("/"))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root, `.`.
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The last element; `None` for the root.
    pub fn file_name(&self) -> Option<&str> {
        self.elements().next_back()
    }

    /// The directory that holds this name; `None` for the root.
    pub fn parent(&self) -> Option<WorkspacePath> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.rsplit_once('/') {
            Some((parent, _)) => WorkspacePath(parent.to_owned()),
            None => WorkspacePath::root(),
        })
    }

    /// The elements from the root down; none for the root.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = &str> {
        let name = if self.is_root() { "" } else { &self.0 };
        name.split('/').filter(|element| !element.is_empty())
    }

    /// `name` below this directory.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse) for the joined name.
    pub fn join(&self, name: &str) -> Result<WorkspacePath> {
        if self.is_root() || leaves_root(name) {
            return WorkspacePath::parse(name);
        }
        WorkspacePath::parse(&format!("{}/{name}", self.0))
    }
}

/// Whether `name` is absolute or climbs above where it starts, without looking at what is there.
fn leaves_root(name: &str) -> bool {
    if name.starts_with('/') {
        return true;
    }
    let mut depth = 0usize;
    for element in name.split('/') {
        match element {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for WorkspacePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkspacePath {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        WorkspacePath::parse(name)
    }
}

impl TryFrom<&str> for WorkspacePath {
    type Error = Error;

    fn try_from(name: &str) -> Result<Self> {
        WorkspacePath::parse(name)
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        WorkspacePath::parse(&name)
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        WorkspacePath::parse(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_in_form_are_kept_byte_for_byte() {
        for name in [".", "a", "a/b", " a ", "-rf", "a\\b", "a\nb", "ä/ö", "..a", "a..", "...", ".git"] {
            assert_eq!(WorkspacePath::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_leave_are_outside() {
        for name in ["/", "/etc/passwd", "..", "../", "../a", "a/../..", "a/../../b", "./../a", "//a"] {
            assert!(WorkspacePath::parse(name).unwrap_err().is_outside(), "{name}");
            assert!(WorkspacePath::parse_dir(name).unwrap_err().is_outside(), "{name}");
        }
    }

    #[test]
    fn other_malformed_names_are_invalid() {
        let long = "x".repeat(256);
        for name in ["", "./b", "b/", "a/../b", "a//b", "a/.", "a/..", "a\0b", long.as_str()] {
            let error = WorkspacePath::parse(name).unwrap_err();
            assert!(matches!(error, Error::InvalidPath { .. }), "{name:?}: {error}");
        }
    }

    #[test]
    fn directories_are_cleaned() {
        for (name, clean) in
            [("", "."), ("./a", "a"), ("a/", "a"), ("a/../b", "b"), ("a//b/.", "a/b"), ("a/..", ".")]
        {
            assert_eq!(WorkspacePath::parse_dir(name).unwrap().as_str(), clean);
        }
    }

    #[test]
    fn parents_and_elements() {
        let path = WorkspacePath::parse("a/b/c").unwrap();
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(path.elements().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(WorkspacePath::parse("a").unwrap().parent(), Some(WorkspacePath::root()));
        assert_eq!(WorkspacePath::root().parent(), None);
        assert_eq!(WorkspacePath::root().join("a").unwrap().as_str(), "a");
        assert!(path.join("../../../..").unwrap_err().is_outside());
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_below_a_root(name in "[a./\\\\ ]{0,12}") {
            if let Ok(path) = WorkspacePath::parse(&name) {
                let joined = std::path::Path::new("/root").join(path.as_str());
                prop_assert!(!joined.components().any(|c| c == std::path::Component::ParentDir));
                prop_assert!(joined.starts_with("/root"));
            }
        }
    }
}
