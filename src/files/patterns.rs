//! Glob patterns of names that an archive leaves out.

use std::fmt;

use globset::GlobBuilder;
use regex_lite::Regex;

use crate::error::{Error, Result};

/// Patterns, any of which may match a name.
///
/// They are matched by the small one of the regular expression engines, because a helper in a
/// container holds them too. It knows text only, so that each byte of a name stands for the
/// character of its number.
pub(crate) struct Patterns(Vec<Regex>);

impl Patterns {
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a malformed pattern, which it names.
    pub(crate) fn new(patterns: &[String]) -> Result<Patterns> {
        let compile = |pattern: &String| {
            let invalid = |reason: String| Error::InvalidArgument {
                reason: format!("`{pattern}` is not a glob pattern: {reason}"),
            };
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            let glob = glob.map_err(|error| invalid(error.kind().to_string()))?;
            // What the flag says is what the characters are made for.
            let expression = glob.regex().replace("(?-u)", "");
            Regex::new(&expression).map_err(|error| invalid(error.to_string()))
        };
        patterns.iter().map(compile).collect::<Result<_>>().map(Patterns)
    }

    /// Whether one of them matches this whole name.
    pub(crate) fn is_match(&self, name: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let text: String = name.iter().copied().map(char::from).collect();
        self.0.iter().any(|pattern| pattern.is_match(&text))
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(Regex::as_str)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(patterns: &[&str]) -> Result<Patterns> {
        Patterns::new(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_form_matches_whole_names_within_their_directories() {
        for (pattern, matching, others) in [
            ("target", &["target"][..], &["a/target", "targets", "target/a"][..]),
            ("**/*.o", &["a.o", "a/b/c.o"], &["a.o/b", "a.ob"]),
            ("*.{o,so}", &["a.o", "b.so"], &["a/b.so", "b.sox"]),
            ("a?[b-d]", &["axb", "a\nd"], &["a/b", "axe", "axbb"]),
            ("[!a]", &["b"], &["a", "/", ""]),
            ("a/**", &["a/b", "a/b/c"], &["a", "b/a"]),
            ("ä*", &["äb"], &["a", "b"]),
            (r"\*", &["*"], &["a"]),
            ("", &[""], &["a"]),
        ] {
            let compiled = patterns(&[pattern]).unwrap();
            for name in matching {
                assert!(compiled.is_match(name.as_bytes()), "{pattern} and {name:?}");
            }
            for name in others {
                assert!(!compiled.is_match(name.as_bytes()), "{pattern} and {name:?}");
            }
        }
    }

    #[test]
    fn a_name_that_is_not_utf8_is_matched_byte_by_byte() {
        let compiled = patterns(&["x", "a?b"]).unwrap();
        assert!(compiled.is_match(b"a\xffb") && compiled.is_match(b"x"));
        assert!(!compiled.is_match(b"a\xff\xffb") && !compiled.is_match(b"\xff"));
    }

    #[test]
    fn a_malformed_pattern_is_named() {
        let error = patterns(&["a", "[z-a"]).unwrap_err();
        assert!(error.to_string().contains("`[z-a`"), "{error}");
    }
}
