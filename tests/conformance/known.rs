//! Cases that a target is known to break. They are listed as ignored; `--include-ignored` runs them.

/// The start of a target's name, a case, and why it breaks.
const KNOWN: [(&str, &str, &str); 2] = [
    (
        "container-noshell",
        "read::forty_links_are_followed_and_no_more",
        "the engine refuses to look at a link that leads to itself, without saying why",
    ),
    (
        "container-noshell",
        "close::a_reader_still_open_ends",
        "without a shell a file is read into this machine first, and what was read can still be had",
    ),
];

/// Why this target breaks this case, `<area>::<behaviour>`, if it does.
pub(crate) fn reason(target: &str, case: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(start, name, _)| target.starts_with(start) && *name == case).map(|known| known.2)
}
