//! Real containers for the tests of this module.

use std::process::Command as Host;
use std::sync::Arc;

use super::engine::Engine;
use super::options::AttachOptions;
use super::shared::Shared;
use super::workspace::ContainerWorkspace;

pub(crate) const BUSYBOX: &str = "agentworkspace/busybox:test";
pub(crate) const DEBIAN: &str = "agentworkspace/debian:test";
/// Holds nothing but a static `/busybox`.
pub(crate) const STATIC: &str = "agentworkspace/static:test";

/// An attached workspace, which is closed when this is dropped.
pub(crate) struct Attached(ContainerWorkspace);

impl std::ops::Deref for Attached {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        self.0.shared()
    }
}

/// A container that is removed when the test ends.
pub(crate) struct TestContainer {
    pub(crate) id: String,
}

impl TestContainer {
    /// Runs `image` idly, with further options of `docker run`.
    pub(crate) fn run(image: &str, options: &[&str]) -> TestContainer {
        let mut args = vec!["run", "-d", "--init", "--network", "none", "--label", "agentworkspace-test"];
        args.extend(options);
        args.push(image);
        args.extend(if image == STATIC { ["/busybox", "sleep"] } else { ["sleep", "3600"] });
        if image == STATIC {
            args.push("3600");
        }
        TestContainer { id: docker(&args) }
    }

    /// The workspace in it with this root.
    pub(crate) async fn attach(&self, root: &str) -> Attached {
        self.attach_with(AttachOptions::default().root(root)).await
    }

    pub(crate) async fn attach_with(&self, options: AttachOptions) -> Attached {
        let engine = Engine::connect().await.unwrap();
        Attached(ContainerWorkspace::attach(&engine, &self.id, options).await.unwrap())
    }

    /// The command lines of what runs in it, its first processes left out.
    pub(crate) fn processes(&self) -> Vec<String> {
        let top = docker(&["top", &self.id, "-o", "pid,stat,args"]);
        let lines = top.lines().skip(1).map(str::trim);
        let own =
            |line: &&str| !line.contains("sleep 3600") && !line.contains(" Z") && !line.contains("<defunct>");
        lines.filter(own).map(str::to_owned).collect()
    }
}

impl Drop for TestContainer {
    fn drop(&mut self) {
        docker(&["rm", "-fv", &self.id]);
    }
}

/// Runs the engine's own command line.
pub(crate) fn docker(args: &[&str]) -> String {
    let output = Host::new("docker").args(args).output().unwrap();
    assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
