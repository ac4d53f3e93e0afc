//! The helper's program, one for each architecture that the library was built with.

// Made by the build: `MISSING` and `PROGRAMS`.
include!(concat!(env!("OUT_DIR"), "/helpers.rs"));

/// The directory of the helper in a container.
pub(crate) const DIRECTORY: &str = "/.agentworkspace";

/// A program that runs in a container without anything of its image.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// In the words of Go's `GOARCH`.
    architecture: &'static str,
    /// SHA-256 in hexadecimal digits.
    pub(crate) digest: &'static str,
    pub(crate) bytes: &'static [u8],
}

impl Program {
    /// Its path in a container.
    pub(crate) fn path(&self) -> String {
        format!("{DIRECTORY}/{}", self.name())
    }

    /// Its name, different for each build.
    pub(crate) fn name(&self) -> String {
        format!("helper-{}", &self.digest[..12])
    }
}

/// The program for an image's architecture; why there is none.
pub(crate) fn find(architecture: &str) -> Result<&'static Program, String> {
    let found = PROGRAMS.iter().find(|program| program.architecture == architecture);
    found.ok_or_else(|| match PROGRAMS {
        [] => format!("there is no helper: {MISSING}"),
        _ => format!("there is no helper for the architecture `{architecture}`"),
    })
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} {})", self.architecture, &self.digest[..12])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_makes_one_for_this_machine_of_a_bounded_size() {
        let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
        let program = find(architecture).unwrap();
        assert!(program.bytes.starts_with(b"\x7fELF"));
        assert!(program.bytes.len() < 3_000_000, "{} bytes", program.bytes.len());
        assert!(find("pdp11").unwrap_err().contains("pdp11"));
    }
}
