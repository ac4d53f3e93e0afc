//! The commands that the readme shows, run as they stand there.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{command, image, unique};

/// The first block of shell commands below the heading `heading`.
fn block<'a>(readme: &'a str, heading: &str) -> &'a str {
    let (_, section) = readme.split_once(heading).expect("the heading is there");
    let (_, block) = section.split_once("```sh\n").expect("a block is below it");
    block.split_once("```").expect("the block ends").0
}

/// Closes a container whatever came of the test.
struct Closed(String);

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = command(["close", &self.0]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[test]
fn its_commands_work() {
    image();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(checkout.join("README.md")).unwrap();
    let name = Closed(unique("readme"));
    // A name of the test's own, since somebody may have a container of the name that is shown.
    let script = block(&readme, "## The command in a minute").replace("web", &name.0);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("README.md"), &readme).unwrap();
    std::fs::write(dir.path().join("test_it.py"), "def test_it():\n    assert True\n").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_agentworkspace"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euxc", &script])
        .current_dir(dir.path())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}\n{shown}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(dir.path().join("junit.xml").exists(), "{shown}");
    for wanted in ["1 passed", "\nhello\n", "Debian", "# agentworkspace"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}
