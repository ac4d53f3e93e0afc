//! Bytes that break naive code: in names, contents, arguments and output.

use super::place::{Must as _, Place, name};
use crate::WorkspaceExt as _;

cases!("odd_bytes" {
    odd_names_work_for_every_operation [Files];
    odd_names_can_be_renamed_and_removed [Files, ChangeTree];
    binary_content_survives [Files];
    binary_output_survives;
    invalid_text_is_kept_and_shown_with_a_replacement;
    one_line_of_ten_megabytes_survives;
    a_long_script_survives;
});

/// Names that shells, URLs, globs and terminals would take apart.
const NAMES: [&str; 22] = [
    "a b+c&d=e?f#g%h",
    "caf\u{e9} \u{65e5}\u{672c}\u{8a9e} \u{1f600}",
    " leading and trailing ",
    "-rf",
    "--help",
    "new\nline",
    "cr\r\nlf",
    "tab\ttab",
    "'single'",
    "\"double\"",
    "back\\slash",
    "$HOME",
    "`id`",
    "$(id)",
    "*",
    "[a-z]?",
    "~",
    "!history",
    ";semi|pipe>",
    "\u{1b}[31mred",
    "%00%2f..%2f",
    ".hidden",
];

/// Written, read, described, listed, seen by a command and entered by one.
pub async fn odd_names_work_for_every_operation(at: &Place) {
    for odd in NAMES {
        let file = format!("{odd}/{odd}");
        at.put(&file, odd).await;
        assert_eq!(at.text(&file).await, odd);
        assert!(at.ws().metadata(&name(&file)).await.must("stat").is_file(), "{odd:?}");
        let ran = at.run(at.program("cat", ["--", odd]).dir(odd)).await;
        assert_eq!(ran.out(), odd, "{ran}");
        at.ws().copy(&name(&file), &name(&format!("{odd}/copy"))).await.must("copy");
        let page = at.ws().read_dir_all(&name(odd)).await.must("list");
        assert!(page.iter().any(|entry| entry.name.as_str() == Some(odd)), "{odd:?} in {page:?}");
    }
    assert_eq!(at.ws().read_dir_all(&name(".")).await.must("list").len(), NAMES.len());
}

/// Each by its own name and no other.
pub async fn odd_names_can_be_renamed_and_removed(at: &Place) {
    for odd in NAMES {
        at.put("plain", odd).await;
        at.ws().rename(&name("plain"), &name(odd)).await.must("rename");
        at.ws().set_mode(&name(odd), 0o600).await.must("set a mode");
    }
    for (index, odd) in NAMES.into_iter().enumerate() {
        assert_eq!(at.text(odd).await, odd);
        at.ws().remove(&name(odd)).await.must("remove");
        let left = at.ws().read_dir_all(&name(".")).await.must("list").len();
        assert_eq!(left, NAMES.len() - index - 1, "{odd:?} removed one file and no other");
    }
}

/// Every byte value, in every position of a block.
pub async fn binary_content_survives(at: &Place) {
    let data: Vec<u8> =
        (0..70_000u32).flat_map(|i| [(i % 256) as u8, (i / 256) as u8, 0, 0xff, b'\r', b'\n']).collect();
    at.put("f", data.clone()).await;
    assert!(at.get("f").await == data, "the bytes differ");
    let ran = at.run(at.program("cat", ["f"])).await;
    assert!(*ran.stdout == *data, "a command sees other bytes");
}

/// Nothing is taken for text.
pub async fn binary_output_survives(at: &Place) {
    let data: Vec<u8> = (0..=255u8).cycle().take(100_000).collect();
    let ran = at.run(at.sh("cat >&2; printf '\\000\\377\\001'").stdin(data.clone())).await;
    assert_eq!(&*ran.stdout, b"\0\xff\x01", "{ran}");
    assert!(*ran.stderr == *data, "standard error differs");
}

/// The bytes are there; the text has U+FFFD.
pub async fn invalid_text_is_kept_and_shown_with_a_replacement(at: &Place) {
    let ran = at.run(at.sh("printf 'a\\377b\\303'")).await;
    assert_eq!(&*ran.stdout, b"a\xffb\xc3", "{ran}");
    assert_eq!(ran.out(), "a\u{fffd}b\u{fffd}");
}

/// No buffer is split by lines.
pub async fn one_line_of_ten_megabytes_survives(at: &Place) {
    let size = 10 << 20;
    let ran = at.run(at.sh(format!("head -c {size} /dev/zero | tr '\\0' x; printf end"))).await;
    assert_eq!(ran.stdout.len(), size + 3, "{}", ran.end);
    assert!(ran.stdout[..size].iter().all(|byte| *byte == b'x') && ran.stdout.ends_with(b"end"));
}

/// One argument as long as the system takes it, with quotes and newlines in it.
pub async fn a_long_script_survives(at: &Place) {
    let script = "# it's a \"comment\" with $dollars\n".repeat(3000) + "echo end";
    assert!(script.len() < 128 << 10);
    assert_eq!(at.done(&script).await, "end\n");
}
