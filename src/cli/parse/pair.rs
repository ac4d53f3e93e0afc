//! What goes in and out around a command: `SRC[:NAME]` and `NAME[:DEST]`.

use std::path::PathBuf;

use agentworkspace::WorkspacePath;

/// A name in a workspace as the end of a copy: the thing itself, or the directory it goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The name, cleaned.
    pub(crate) path: WorkspacePath,
    /// Whether a trailing `/` said that the copy goes into the directory, under its own name.
    pub(crate) into: bool,
}

impl Place {
    /// Reads `a`, `a/`, `.` or nothing, which is the root.
    pub(crate) fn parse(text: &str) -> Result<Place, String> {
        let path = WorkspacePath::parse_dir(text).map_err(|error| error.to_string())?;
        let into = text.ends_with('/') && !path.is_root();
        Ok(Place { path, into })
    }
}

/// `SRC[:NAME]` of `--copy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopySpec {
    /// A file or directory of this machine.
    pub(crate) source: PathBuf,
    /// Where it goes; `None` for its own name.
    pub(crate) place: Option<Place>,
}

impl CopySpec {
    /// Splits at the last `:`, so that a source with one in its name needs a name after it.
    pub(crate) fn parse(text: &str) -> Result<CopySpec, String> {
        let (source, place) = match text.rsplit_once(':') {
            Some((source, name)) => (source, Some(Place::parse(name)?)),
            None => (text, None),
        };
        if source.is_empty() {
            return Err("the source is empty".to_owned());
        }
        Ok(CopySpec { source: source.into(), place })
    }
}

/// `NAME[:DEST]` of `--collect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectSpec {
    /// A file or directory of the workspace.
    pub(crate) name: WorkspacePath,
    /// A path of this machine; `None` for the name's last element in the current directory.
    pub(crate) dest: Option<PathBuf>,
}

impl CollectSpec {
    /// Splits at the last `:`, so that a name with one in it needs a destination after it.
    pub(crate) fn parse(text: &str) -> Result<CollectSpec, String> {
        let (name, dest) = match text.rsplit_once(':') {
            Some((_, "")) => return Err("the destination after `:` is empty".to_owned()),
            Some((name, dest)) => (name, Some(PathBuf::from(dest))),
            None => (text, None),
        };
        let name = WorkspacePath::parse_dir(name).map_err(|error| error.to_string())?;
        if name.is_root() && dest.is_none() {
            return Err("to collect the whole workspace say where to: `.:DIR`".to_owned());
        }
        Ok(CollectSpec { name, dest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, into: bool) -> Option<Place> {
        Some(Place { path: WorkspacePath::parse(path).unwrap(), into })
    }

    #[test]
    fn a_copy_splits_at_the_last_colon() {
        for (text, source, expected) in [
            ("a", "a", None),
            ("/x/a b:c", "/x/a b", place("c", false)),
            ("a:b:c", "a:b", place("c", false)),
            ("a:sub/", "a", place("sub", true)),
            ("a:.", "a", place(".", false)),
            ("a:", "a", place(".", false)),
            ("a:./x", "a", place("x", false)),
        ] {
            let spec = CopySpec::parse(text).unwrap();
            assert_eq!((spec.source, spec.place), (PathBuf::from(source), expected), "{text}");
        }
        for text in ["", ":b", "a:../b", "a:/b"] {
            assert!(CopySpec::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_collection_of_everything_needs_a_destination() {
        let spec = CollectSpec::parse("out/report:x/y").unwrap();
        assert_eq!((spec.name.as_str(), spec.dest), ("out/report", Some(PathBuf::from("x/y"))));
        assert_eq!(CollectSpec::parse("a").unwrap().dest, None);
        assert_eq!(CollectSpec::parse(".:d").unwrap().name, WorkspacePath::root());
        for text in ["", ".", "a:", "../a", "/a:b"] {
            assert!(CollectSpec::parse(text).is_err(), "{text:?}");
        }
    }
}
