//! Cases that a target is known to break. They are listed as ignored; `--include-ignored` runs them.

/// The start of a target's name, a case, and why it breaks.
const KNOWN: [(&str, &str, &str); 1] = [(
    "container-noshell",
    "links::an_absolute_link_is_outside_even_if_its_target_is_not",
    "without a shell the engine looks up a command's directory, and follows an absolute link",
)];

/// Why this target breaks this case, `<area>::<behaviour>`, if it does.
pub(crate) fn reason(target: &str, case: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(start, name, _)| target.starts_with(start) && *name == case).map(|known| known.2)
}
