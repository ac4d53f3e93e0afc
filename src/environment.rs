//! The environment of a workspace's processes.

use std::fmt;

use crate::error::{Error, Result};

/// Names and values, in order; of two with one name the later wins.
///
/// Its `Debug` output shows names only, because values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    /// No variable at all: not even `PATH`, and nothing of this process's own environment.
    pub fn empty() -> Self {
        Environment::default()
    }

    /// `PATH`, `HOME`, `LANG`, `LC_ALL`, `TERM`, `TMPDIR`, `TZ`, `USER`, `LOGNAME` and `SHELL` of this
    /// process, where they are set: what a shell needs, and no credential.
    pub fn from_host_basics() -> Self {
        const BASICS: [&str; 10] =
            ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"];
        BASICS.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?))).collect()
    }

    /// Adds `name`, replacing an earlier value of it.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.0.retain(|(earlier, _)| *earlier != name);
        self.0.push((name, value.into()));
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many variables there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This environment with `later` over it.
    #[must_use]
    pub fn merged(&self, later: &Environment) -> Environment {
        let mut merged = self.clone();
        for (name, value) in later.iter() {
            merged.insert(name, value);
        }
        merged
    }

    /// Checks that every variable can be given to a process.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] naming the first variable whose name is empty or holds `=` or a
    /// NUL byte, or whose value holds a NUL byte. The value is not shown.
    pub fn check(&self) -> Result<()> {
        for (name, value) in self.iter() {
            let problem = if name.is_empty() {
                "an environment variable has an empty name".to_owned()
            } else if name.contains(['=', '\0']) {
                format!("the environment variable name `{}` holds `=` or a NUL byte", name.escape_debug())
            } else if value.contains('\0') {
                format!("the value of the environment variable `{name}` holds a NUL byte")
            } else {
                continue;
            };
            return Err(Error::InvalidArgument { reason: problem });
        }
        Ok(())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let mut environment = Environment::empty();
        for (name, value) in variables {
            environment.insert(name, value);
        }
        environment
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_value_wins() {
        let base: Environment = [("A", "1"), ("B", "2"), ("A", "3")].into_iter().collect();
        assert_eq!(base.iter().collect::<Vec<_>>(), [("B", "2"), ("A", "3")]);
        let later: Environment = [("B", "4")].into_iter().collect();
        assert_eq!(base.merged(&later).get("B"), Some("4"));
    }

    #[test]
    fn debug_output_hides_values() {
        let environment: Environment = [("TOKEN", "hunter2")].into_iter().collect();
        let text = format!("{environment:?}");
        assert!(text.contains("TOKEN") && !text.contains("hunter2"));
    }

    #[test]
    fn impossible_variables_are_refused_without_showing_the_value() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "hunter2\0")] {
            let environment: Environment = [(name, value)].into_iter().collect();
            let error = environment.check().unwrap_err().to_string();
            assert!(!error.contains("hunter2"));
        }
    }
}
