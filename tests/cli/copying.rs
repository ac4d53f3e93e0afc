//! `cp`, `--copy` and `--collect`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::support::{Kept, local, run, run_with_input};

/// A tree with everything that has to survive.
fn tree(at: &Path) {
    fs::create_dir_all(at.join("sub/empty")).unwrap();
    fs::write(at.join("sub/f"), b"f\0\xff").unwrap();
    fs::write(at.join("run me"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(at.join("run me"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("sub/f", at.join("link")).unwrap();
    symlink("/etc/passwd", at.join("absolute")).unwrap();
}

#[track_caller]
fn assert_tree(at: &Path) {
    assert_eq!(fs::read(at.join("sub/f")).unwrap(), b"f\0\xff");
    assert!(at.join("sub/empty").is_dir());
    assert_eq!(fs::metadata(at.join("run me")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(at.join("link")).unwrap(), Path::new("sub/f"));
    assert_eq!(fs::read_link(at.join("absolute")).unwrap(), Path::new("/etc/passwd"));
}

/// A tree and a file to a target and back.
fn copy_both_ways(target: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    tree(&dir.path().join("in"));
    run(["cp", &path("in"), &format!("{target}//copies/t")]).expect(0);
    run(["cp", &format!("{target}//copies/t"), &path("out")]).expect(0);
    assert_tree(&dir.path().join("out"));
    run(["cp", &format!("{target}//copies/"), &path("whole/")]).expect(0);
    assert_tree(&dir.path().join("whole/copies/t"));

    run(["cp", &path("in/sub/f"), &format!("{target}//copies/")]).expect(0);
    run(["cp", &format!("{target}//copies/f"), &path("made/by/copy")]).expect(0);
    assert_eq!(fs::read(path("made/by/copy")).unwrap(), b"f\0\xff");

    run_with_input(["cp", "-", &format!("{target}//piped")], b"piped\xff").expect(0);
    assert_eq!(run(["cp", &format!("{target}//piped"), "-"]).expect(0).stdout, b"piped\xff");
    let archive = run(["cp", &format!("{target}//copies/t"), "-"]).expect(0).stdout;
    let names: Vec<_> = tar::Archive::new(&archive[..])
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().into_owned())
        .collect();
    assert!(names.iter().any(|name| name == Path::new("sub/f")), "{names:?}");
}

#[test]
fn trees_go_to_a_directory_and_back() {
    let dir = tempfile::tempdir().unwrap();
    copy_both_ways(&local(dir.path()));
}

#[test]
fn trees_go_to_a_container_and_back() {
    copy_both_ways(&Kept::create("copying", &[]).target());
}

#[test]
fn what_is_left_out_is_said() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("in")).unwrap();
    let _listener = UnixListener::bind(dir.path().join("in/socket")).unwrap();
    let from = dir.path().join("in");
    let ran = run(["run", "--copy", from.to_str().unwrap(), "--", "ls", "-a", "in"]).expect(0);
    assert!(ran.stderr.contains("warning: left out 1 FIFOs, devices or sockets"), "{ran:?}");
    assert!(ran.stderr.contains(": socket"), "{ran:?}");
    assert!(!ran.text().contains("socket"), "{ran:?}");
}

#[test]
fn results_are_collected_whatever_the_status() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("input"), "in").unwrap();
    let copy = format!("{}:data/renamed", dir.path().join("input").display());
    let collect = format!("out:{}", dir.path().join("result").display());
    let script = "mkdir out && cat data/renamed > out/f && exit 4";
    run(["run", "-q", "--copy", &copy, "--collect", &collect, "--", "sh", "-c", script]).expect(4);
    assert_eq!(fs::read_to_string(dir.path().join("result/f")).unwrap(), "in");
}

#[test]
fn a_missing_result_fails_a_command_that_did_not() {
    let dir = tempfile::tempdir().unwrap();
    let collect = format!("missing:{}", dir.path().join("x").display());
    let ran = run(["run", "-q", "--collect", &collect, "--", "true"]).expect(125);
    assert!(ran.stderr.contains("`missing` does not exist"), "{ran:?}");
    run(["run", "-q", "--collect", &collect, "--", "sh", "-c", "exit 4"]).expect(4);
    let json = run(["run", "-q", "--json", "--collect", &collect, "--", "true"]).expect(125).json();
    assert_eq!((&json["exit_code"], &json["error"]["code"]), (&0.into(), &"not_found".into()));
}

#[test]
fn nothing_is_collected_outside_of_the_destination() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("dest");
    fs::create_dir_all(&dest).unwrap();
    fs::create_dir_all(dir.path().join("outside")).unwrap();
    // The destination holds a link that leads out, under a name that the workspace uses as well.
    symlink("../outside", dest.join("trap")).unwrap();
    let collect = format!("out:{}", dest.display());
    let script = "mkdir -p out/trap && echo x > out/trap/f";
    run(["run", "-q", "--collect", &collect, "--", "sh", "-c", script]).expect(0);
    assert!(fs::read_dir(dir.path().join("outside")).unwrap().next().is_none());
    assert!(fs::symlink_metadata(dest.join("trap")).unwrap().is_dir());
}

#[test]
fn privileged_bits_do_not_come_along() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let collect = |what: &str| format!("{what}:{}", path(what).display());
    let script = "mkdir tree && echo x > tree/f && echo x > f && chmod 6755 f tree/f";
    let (file, tree) = (collect("f"), collect("tree"));
    run(["run", "-q", "--collect", &file, "--collect", &tree, "--", "sh", "-c", script]).expect(0);
    for name in ["f", "tree/f"] {
        assert_eq!(fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777, 0o755, "{name}");
    }
}

#[test]
fn one_side_is_in_a_workspace() {
    for (source, dest) in
        [("a", "b"), ("-", "-"), ("local:.//a", "local:.//b"), ("local:.", "b"), ("-", "local:.//")]
    {
        run(["cp", source, dest]).expect(2);
    }
    run(["cp", "/no/such/file", "local:.//x"]).expect(1);
}
