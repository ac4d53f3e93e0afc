//! Runs the built command and looks at what it leaves.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveImageOptions};

/// The image of the tests: busybox with all of its applets.
pub(crate) const IMAGE: &str = "agentworkspace/busybox:test";

/// What came of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("standard output is UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails unless the status is this one.
    #[track_caller]
    pub(crate) fn expect(self, status: i32) -> Ran {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }
}

/// The command, with nothing of this process's environment that would change what it prints.
pub(crate) fn command<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentworkspace"));
    command.args(args).env_remove("AGENTWORKSPACE_LOG").env_remove("RUST_BACKTRACE");
    command
}

/// Runs the command with nothing to read.
pub(crate) fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    run_with_input(args, b"")
}

/// Runs the command with this on its standard input.
pub(crate) fn run_with_input<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
    finish(command(args), input)
}

/// Runs a prepared command to its end.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = input.to_vec();
    // The command may end without reading it all.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the command ends");
    let _ = writer.join();
    Ran {
        status: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `local:DIR`.
pub(crate) fn local(dir: &Path) -> String {
    format!("local:{}", dir.display())
}

/// Waits until `condition` holds, or fails.
#[track_caller]
pub(crate) fn wait_for(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for a child to end, or kills it and fails.
#[track_caller]
pub(crate) fn wait_for_exit(child: &mut Child, patience: Duration) -> std::process::ExitStatus {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the command did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks the engine, past the command under test.
fn engine<T>(ask: impl AsyncFnOnce(&Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let docker = Docker::connect_with_defaults().expect("an address of an engine");
        let docker = match docker.negotiate_version().await {
            Ok(docker) => docker,
            Err(error) => panic!("no container engine answers; start one with `make engine`: {error}"),
        };
        ask(&docker).await
    })
}

/// The image, once it is known that the engine has it.
pub(crate) fn image() -> &'static str {
    let found = engine(async |docker| docker.inspect_image(IMAGE).await);
    if let Err(error) = found {
        panic!("the engine has no {IMAGE}; make it with `make images`: {error}");
    }
    IMAGE
}

/// Removes an image that a test built. An engine may be busy with its images for long, which is
/// nothing that the test is about.
pub(crate) fn remove_image(id: &str) {
    engine(async |docker| {
        let removing = docker.remove_image(id, None::<RemoveImageOptions>, None);
        let _ = tokio::time::timeout(Duration::from_secs(10), removing).await;
    });
}

/// The ids of the containers that a process of this number made, stopped ones included.
pub(crate) fn containers_of(pid: u32) -> Vec<String> {
    with_label(&format!("agentworkspace.owner.pid={pid}"))
}

/// The ids of the containers with this label, stopped ones included.
pub(crate) fn with_label(label: &str) -> Vec<String> {
    engine(async |docker| {
        let filters: HashMap<&str, Vec<&str>> = [("label", vec![label])].into();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = docker.list_containers(Some(options)).await.expect("the engine lists containers");
        listed.into_iter().filter_map(|container| container.id).collect()
    })
}

/// A name that no other test and no other run of the tests has.
pub(crate) fn unique(name: &str) -> String {
    format!("aw-cli-{name}-{}", std::process::id())
}

/// A kept container, closed when it is dropped.
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) id: String,
}

impl Kept {
    /// Makes one.
    pub(crate) fn create(name: &str, options: &[&str]) -> Kept {
        let name = unique(name);
        let args = ["create", "--image", image(), "--name", &name].into_iter().chain(options.iter().copied());
        let ran = run(args).expect(0);
        Kept { id: ran.text().trim().to_owned(), name }
    }

    /// `container:NAME`.
    pub(crate) fn target(&self) -> String {
        format!("container:{}", self.name)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = command(["close", &self.name]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
