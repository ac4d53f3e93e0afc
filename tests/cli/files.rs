//! `read`, `write`, `ls`, `stat` and `rm`, over a directory and over a container.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Kept, local, run, run_with_input};

/// Every file subcommand on one target.
fn work_on_files(target: &str) {
    let data = b"a\0\xff\n";
    run_with_input(["write", target, "sub/dir/f", "--mode", "600"], data).expect(0);
    assert_eq!(run(["read", target, "sub/dir/f"]).expect(0).stdout, data);
    assert_eq!(
        run(["read", target, "sub/dir/f", "--offset", "1", "--length", "2"]).expect(0).stdout,
        b"\0\xff"
    );
    let stat = run(["stat", "--json", target, "sub/dir/f"]).expect(0).json();
    assert_eq!((&stat["kind"], &stat["size"], &stat["mode"]), (&"file".into(), &4.into(), &"0600".into()));
    assert_eq!(run(["ls", target, "sub"]).expect(0).text(), "dir\n");
    let listed = run(["ls", "--json", target]).expect(0).json();
    let sub = serde_json::json!({"name": "sub", "kind": "directory"});
    assert!(listed.as_array().unwrap().contains(&sub), "{listed}");
    assert!(run(["ls", "-l", target, "sub/dir"]).expect(0).text().starts_with("- 0600 "));

    let ran = run(["rm", target, "sub"]).expect(1);
    assert!(ran.stderr.contains("is not empty"), "{ran:?}");
    run(["rm", "-r", target, "sub"]).expect(0);
    run(["rm", target, "sub"]).expect(1);
    run(["rm", "-f", target, "sub"]).expect(0);
}

/// Names that a shell or a parser could trip over.
fn keep_odd_names(target: &str) {
    for name in [" a ", "a b", "a'b\"", "$(id)", "a\nb", "ä", "*", "a;b", "a\\b"] {
        run_with_input(["write", target, name], name.as_bytes()).expect(0);
        assert_eq!(run(["read", target, name]).expect(0).stdout, name.as_bytes(), "{name:?}");
        run(["stat", target, name]).expect(0);
    }
    run_with_input(["write", target, "--", "-rf"], b"dash").expect(0);
    assert_eq!(run(["read", target, "--", "-rf"]).expect(0).stdout, b"dash");
    let listed = run(["ls", "-0", target]).expect(0).stdout;
    assert!(listed.split(|byte| *byte == 0).any(|name| name == b"a\nb"));
}

#[test]
fn files_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    work_on_files(&local(dir.path()));
    keep_odd_names(&local(dir.path()));
}

#[test]
fn files_of_a_container() {
    let kept = Kept::create("files", &[]);
    work_on_files(&kept.target());
    keep_odd_names(&kept.target());
}

#[test]
fn a_file_is_written_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::write(&source, "content").unwrap();
    let target = local(dir.path());
    run(["write", &target, "copy", source.to_str().unwrap()]).expect(0);
    assert_eq!(std::fs::read(dir.path().join("copy")).unwrap(), b"content");
    let mode = std::fs::metadata(dir.path().join("copy")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
}

#[test]
fn links_are_shown_and_do_not_lead_out() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("out")).unwrap();
    let target = local(dir.path());
    let stat = run(["stat", "--json", &target, "out"]).expect(0).json();
    assert_eq!((&stat["kind"], &stat["link"]), (&"symlink".into(), &"/etc/passwd".into()));
    assert!(run(["ls", "-l", &target]).expect(0).text().contains("out -> /etc/passwd"));
    for args in [&["read", &target, "out"][..], &["write", &target, "out"], &["stat", "-L", &target, "out"]] {
        let ran = run(args).expect(1);
        assert!(ran.stderr.contains("leads outside of the workspace"), "{ran:?}");
    }
}

#[test]
fn a_name_that_is_not_utf8_is_listed_as_it_is() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"a\xff")), "").unwrap();
    let target = local(dir.path());
    assert_eq!(run(["ls", &target]).expect(0).stdout, b"a\xff\n");
    let listed = run(["ls", "--json", &target]).expect(0).json();
    assert_eq!(listed[0]["name"], serde_json::json!({"base64": "Yf8="}));
}

#[test]
fn an_error_says_what_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let target = local(dir.path());
    let ran = run(["read", &target, "x"]).expect(1);
    assert_eq!(ran.stderr, format!("error: failed to read `x` in {target}: `x` does not exist\n"));
    let ran = run(["read", "local:/no/such/directory", "x"]).expect(125);
    assert!(ran.stderr.starts_with("error: failed to open local:/no/such/directory"), "{ran:?}");
}
