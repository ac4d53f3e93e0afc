//! Containers for tests, made and removed by the engine's command.

use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::container::shared::Shared;
use crate::container::test_container::{BUSYBOX, DEBIAN, STATIC};
use crate::container::{AttachOptions, ContainerWorkspace, Engine};
use crate::path::WorkspacePath;

/// What a container of a test is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    Busybox,
    Debian,
    /// `/busybox`, a static one, and nothing else.
    Scratch,
}

pub(super) const SHELL_RIGS: [(Image, &str); 4] = [
    (Image::Busybox, "0:0"),
    (Image::Busybox, "1000:1000"),
    (Image::Debian, "0:0"),
    (Image::Debian, "1000:1000"),
];

/// A running container with `/work/root` as the workspace root and `/work/out` beside it.
pub(super) struct Rig {
    pub(super) id: String,
    pub(super) shared: Arc<Shared>,
    /// Dropping it would close the workspace.
    _workspace: ContainerWorkspace,
    image: Image,
    user: String,
}

impl Rig {
    pub(super) async fn new(image: Image, user: &str, run_args: &[&str]) -> Rig {
        let name = match image {
            Image::Busybox => BUSYBOX,
            Image::Debian => DEBIAN,
            Image::Scratch => STATIC,
        };
        let mut args = vec!["run", "-d", "--rm", "--network", "none", "--label", "agentworkspace-test"];
        args.extend(["-w", "/"]);
        args.extend(run_args);
        args.push(name);
        match image {
            Image::Scratch => args.extend(["/busybox", "sleep", "600"]),
            _ => args.extend(["sleep", "600"]),
        }
        let id = docker(&args).trim().to_owned();
        let made = Made(id.clone());
        let rig_root = [
            "mkdir -p /work/root /work/out; printf secret >/work/out/secret;",
            &format!("chown -R {user} /work/root /work/out"),
        ];
        sh_in(&id, image, "0:0", &rig_root.concat());
        let engine = Engine::connect().await.unwrap();
        let options = AttachOptions::default().root("/work/root").user(user);
        let workspace = ContainerWorkspace::attach(&engine, &id, options).await.unwrap();
        std::mem::forget(made);
        let shared = Arc::clone(workspace.shared());
        Rig { id, shared, _workspace: workspace, image, user: user.to_owned() }
    }

    /// Runs a shell script in the container as the workspace's user, with the root as its
    /// directory, and returns what it said.
    pub(super) fn sh(&self, script: &str) -> String {
        sh_in(&self.id, self.image, &self.user, &format!("cd /work/root && {{ {script}\n}}"))
    }

    pub(super) fn root_sh(&self, script: &str) -> String {
        sh_in(&self.id, self.image, "0:0", &format!("cd /work/root && {{ {script}\n}}"))
    }

    /// Lets a script run on in the container.
    pub(super) fn background(&self, script: &str) {
        let applets = if self.image == Image::Scratch { APPLETS } else { "" };
        let script = format!("{applets}\ncd /work/root && {{ {script}\n}}");
        let mut args = vec!["exec", "-d", "-u", &self.user, &self.id];
        args.extend(shell(self.image));
        args.push(&script);
        docker(&args);
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(Made(std::mem::take(&mut self.id)));
    }
}

/// A container that is removed with it.
struct Made(String);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "-fv", &self.0]).stdout(Stdio::null()).status();
    }
}

pub(super) fn path(name: &str) -> WorkspacePath {
    name.parse().unwrap()
}

fn shell(image: Image) -> Vec<&'static str> {
    match image {
        Image::Scratch => vec!["/busybox", "sh", "-c"],
        _ => vec!["sh", "-c"],
    }
}

fn sh_in(id: &str, image: Image, user: &str, script: &str) -> String {
    let mut args = vec!["exec", "-u", user, id];
    args.extend(shell(image));
    // Without links to its applets a static busybox finds them through itself.
    let script = match image {
        Image::Scratch => format!("{APPLETS}\n{script}"),
        _ => script.to_owned(),
    };
    args.push(&script);
    docker(&args)
}

const APPLETS: &str = "for a in mkdir chown chmod ln mv rm cat mkfifo stat ls tar readlink head sleep find touch dd; do \
     eval \"$a() { /busybox $a \\\"\\$@\\\"; }\"; done";

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().unwrap();
    assert!(
        output.status.success(),
        "docker {args:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
