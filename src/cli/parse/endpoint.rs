//! The two ends of a copy: `TARGET//NAME`, a path of this machine, or `-`.

use std::path::PathBuf;

use agentworkspace::Target;

use super::pair::Place;

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `-`: standard input or output.
    Standard,
    /// A path of this machine.
    Host(PathBuf),
    /// `TARGET//NAME`.
    Workspace(Target, Place),
}

/// How every target begins; a path of this machine that begins so is written `./local:...`.
const SCHEMES: [&str; 7] = ["local:", "image:", "container:", "http:", "https:", "unix:", "swarm:"];

impl Endpoint {
    /// Splits at the last `//`: a name in a workspace has no empty element, a target may.
    pub(crate) fn parse(text: &str) -> Result<Endpoint, String> {
        if text == "-" {
            return Ok(Endpoint::Standard);
        }
        if !SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            if text.is_empty() {
                return Err("the path is empty".to_owned());
            }
            return Ok(Endpoint::Host(text.into()));
        }
        // A target that is not supported is refused as such, whatever follows it.
        let (target, name) = text.rsplit_once("//").unwrap_or((text, ""));
        let parsed = target.parse::<Target>().map_err(|error| error.to_string())?;
        if !text.contains("//") {
            return Err(format!("`{text}` names nothing in the workspace: write `{text}//NAME`"));
        }
        Ok(Endpoint::Workspace(parsed, Place::parse(name)?))
    }
}

#[cfg(test)]
mod tests {
    use agentworkspace::WorkspacePath;

    use super::*;

    fn workspace(target: &str, path: &str, into: bool) -> Endpoint {
        let path = WorkspacePath::parse(path).unwrap();
        Endpoint::Workspace(target.parse().unwrap(), Place { path, into })
    }

    #[test]
    fn each_form_is_understood() {
        for (text, expected) in [
            ("-", Endpoint::Standard),
            ("a/b", Endpoint::Host("a/b".into())),
            ("a//b", Endpoint::Host("a//b".into())),
            ("./local:x//y", Endpoint::Host("./local:x//y".into())),
            ("local:/tmp/x//a/b", workspace("local:/tmp/x", "a/b", false)),
            ("local:/tmp//x//a", workspace("local:/tmp//x", "a", false)),
            ("container:web//", workspace("container:web", ".", false)),
            ("container:web//a/", workspace("container:web", "a", true)),
            ("image:a:b//c", workspace("image:a:b", "c", false)),
        ] {
            assert_eq!(Endpoint::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_target_without_a_name_and_unsupported_ones_are_refused() {
        assert!(Endpoint::parse("local:/tmp").unwrap_err().contains("local:/tmp//NAME"));
        assert!(Endpoint::parse("http://a//b").unwrap_err().contains("not supported"));
        for text in ["", "local://a", "container:web//../x"] {
            assert!(Endpoint::parse(text).is_err(), "{text:?}");
        }
    }
}
