//! Runs the examples as a reader would, and checks what they print.

use std::path::PathBuf;
use std::process::Command;

/// The program that `cargo test` built from an example, beside the directory of this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("cargo puts tests two levels deep");
    let program = profile.join("examples").join(name);
    assert!(program.exists(), "{} is missing: run all of `cargo test`, which builds it", program.display());
    program
}

/// What an example prints, once it has ended well.
fn output_of(name: &str, args: &[&str]) -> String {
    let output = Command::new(example(name)).args(args).output().expect("the example can be started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("the example prints text")
}

#[test]
fn the_local_example_sorts_its_file_and_is_refused_outside() {
    let printed = output_of("local", &[]);
    assert!(printed.contains("write tests\nbuy milk\n"), "{printed}");
    assert!(printed.contains("the file has 21 bytes"), "{printed}");
    assert!(printed.contains("refused: `../etc/passwd` leads outside of the workspace"), "{printed}");
}

#[cfg(feature = "container")]
#[test]
fn the_container_example_streams_and_tells_failures_apart() {
    let printed = output_of("container", &["agentworkspace/busybox:test"]);
    assert!(printed.contains("sha256:"), "{printed}");
    assert!(printed.contains("step 1\nstep 2\nstep 3\n"), "{printed}");
    assert!(printed.contains("it exited with status 3"), "{printed}");
    assert!(printed.contains("refused: ") && printed.contains("no-such-program"), "{printed}");
    assert!(!printed.contains("unexpected"), "{printed}");
}
