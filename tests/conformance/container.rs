//! The fixture of `ContainerWorkspace::create`.
//!
//! A container serves one trial at a time, and the next one after its root was emptied; a trial
//! that closes or breaks its workspace uses it up.

use std::sync::{Arc, Mutex, PoisonError};

use agentworkspace::conformance::{Fixture, Site};
use agentworkspace::container::{ContainerOptions, ContainerWorkspace, Engine, Mount};
use agentworkspace::{Environment, Workspace};
use async_trait::async_trait;
use tokio::sync::OnceCell;

use crate::docker;

/// What the containers of one target are like.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) image: &'static str,
    /// A user other than root.
    pub(crate) user: Option<u32>,
    pub(crate) read_only: bool,
    pub(crate) root_on_tmpfs: bool,
    /// The multi-call binary of an image that has nothing else.
    pub(crate) tool: Option<&'static str>,
    pub(crate) concurrent_execs: usize,
}

impl Recipe {
    pub(crate) fn new(image: &'static str) -> Self {
        let (read_only, root_on_tmpfs) = (false, false);
        Recipe { image, user: None, read_only, root_on_tmpfs, tool: None, concurrent_execs: 40 }
    }

    fn options(&self) -> ContainerOptions {
        let env: Environment = [("GIVEN", "by the options")].into_iter().collect();
        let mut options = ContainerOptions::new(self.image).env(env).read_only(self.read_only);
        if let Some(user) = self.user {
            options = options.user(format!("{user}:{user}"));
        }
        if self.root_on_tmpfs {
            options = options.mounts(vec![Mount::tmpfs("/workspace", Some(512 << 20))]);
        }
        options
    }

    pub(crate) fn ids(&self) -> (u32, u32) {
        let user = self.user.unwrap_or(0);
        (user, user)
    }

    pub(crate) fn shell(&self) -> Vec<String> {
        match self.tool {
            Some(tool) => [tool, "sh", "-c"].map(str::to_owned).into(),
            None => ["/bin/sh", "-c"].map(str::to_owned).into(),
        }
    }

    pub(crate) fn program(&self, name: &str) -> Vec<String> {
        self.tool.into_iter().chain([name]).map(str::to_owned).collect()
    }
}

/// Where trials find a directory outside of the root.
pub(crate) const OUTSIDE: &str = "/tmp/outside";

/// Connects to the engine once, and says what to do when there is none.
pub(crate) async fn engine() -> Engine {
    static ENGINE: OnceCell<Engine> = OnceCell::const_new();
    let connected = ENGINE.get_or_try_init(Engine::connect).await;
    match connected {
        Ok(engine) => engine.clone(),
        Err(error) => panic!("{error}: start one with `make engine`"),
    }
}

/// Runs a script in a container, as the numbers `user`, independently of the code under test.
pub(crate) async fn script(
    recipe: &Recipe,
    container: &str,
    user: &str,
    script: &str,
    input: &[u8],
) -> String {
    let shell = recipe.shell();
    let mut arguments = vec!["exec", "-i", "-u", user, "-w", "/", container];
    arguments.extend(shell.iter().map(String::as_str));
    arguments.push(script);
    docker::must(&arguments, input).await
}

/// Empties the root and the directory outside, which is made if need be.
pub(crate) async fn prepare(recipe: &Recipe, container: &str, root: &str) {
    let (uid, gid) = recipe.ids();
    let text = format!(
        "chmod -R u+rwX {root}/ 2>/dev/null; rm -rf {root}/..?* {root}/.[!.]* {root}/* {OUTSIDE}; mkdir -p {OUTSIDE}; \
         chmod 755 {OUTSIDE}; test -z \"$(ls -A {root})\""
    );
    script(recipe, container, &format!("{uid}:{gid}"), &text, b"").await;
}

/// Everything below a path as comparable lines.
pub(crate) async fn snapshot(recipe: &Recipe, container: &str, path: &str) -> String {
    let text = format!(
        "find {path} | sort | while read -r f; do stat -c '%n %f %u %s %Y' \"$f\"; \
         [ -L \"$f\" ] && readlink \"$f\" || {{ [ -f \"$f\" ] && cat \"$f\"; }}; done; :"
    );
    script(recipe, container, "0:0", &text, b"").await
}

/// Writes a file outside as the workspace's user.
pub(crate) async fn plant(recipe: &Recipe, container: &str, path: &str, data: &[u8]) {
    let (uid, gid) = recipe.ids();
    script(recipe, container, &format!("{uid}:{gid}"), &format!("cat > {path}; chmod 666 {path}"), data)
        .await;
}

/// Changes an owner with the rights of the engine.
pub(crate) async fn give_away(recipe: &Recipe, container: &str, path: &str, uid: u32) -> bool {
    let owner = uid.to_string();
    let program = recipe.program("chown");
    let mut arguments = vec!["exec", "--privileged", "-u", "0:0", container];
    arguments.extend(program.iter().map(String::as_str));
    arguments.extend([owner.as_str(), path]);
    docker::run(&arguments, b"").await.status.success()
}

/// Containers that workspaces made.
#[derive(Clone, Debug)]
pub(crate) struct ContainerFixture {
    recipe: Recipe,
    /// Workspaces that no trial uses.
    idle: Arc<Mutex<Vec<Idle>>>,
}

/// A workspace that no trial uses. One in use is nowhere but in its trial, which may drop it.
#[derive(Debug)]
struct Idle {
    workspace: Arc<dyn Workspace>,
    container: String,
}

impl ContainerFixture {
    pub(crate) fn new(recipe: Recipe) -> Self {
        ContainerFixture { recipe, idle: Arc::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what no trial will use any more.
    pub(crate) async fn end(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for Idle { workspace, .. } in idle {
            if let Err(error) = workspace.close().await {
                eprintln!("closing a workspace: {error}");
            }
        }
    }
}

#[async_trait]
impl Fixture for ContainerFixture {
    async fn open(&self) -> Site {
        let idle = self.idle().pop();
        let Idle { workspace, container } = match idle {
            Some(idle) => idle,
            None => {
                let engine = engine().await;
                let made = ContainerWorkspace::create(&engine, self.recipe.options(), |_| {}).await;
                let made =
                    made.unwrap_or_else(|error| panic!("no container of {}: {error}", self.recipe.image));
                let container = made.container_id().to_owned();
                Idle { workspace: Arc::new(made), container }
            }
        };
        prepare(&self.recipe, &container, &workspace.descriptor().root).await;
        Site::new(workspace, OUTSIDE, container)
    }

    async fn release(&self, site: Site, spent: bool) {
        let Site { workspace, key, .. } = site;
        if !spent {
            self.idle().push(Idle { workspace, container: key });
            return;
        }
        workspace.close().await.expect("the workspace closes");
        let left = docker::run(&["inspect", &key], b"").await;
        assert!(!left.status.success(), "the container is there after the close");
    }

    fn shell(&self) -> Vec<String> {
        self.recipe.shell()
    }

    fn program(&self, name: &str) -> Vec<String> {
        self.recipe.program(name)
    }

    fn ids(&self) -> (u32, u32) {
        self.recipe.ids()
    }

    async fn plant(&self, site: &Site, path: &str, data: &[u8]) {
        plant(&self.recipe, &site.key, path, data).await;
    }

    async fn snapshot(&self, site: &Site, path: &str) -> String {
        snapshot(&self.recipe, &site.key, path).await
    }

    async fn give_away(&self, site: &Site, path: &str, uid: u32) -> bool {
        give_away(&self.recipe, &site.key, path, uid).await
    }

    async fn alive(&self, site: &Site, marker: &str) -> usize {
        docker::alive(&site.key, marker).await
    }

    fn root_on_tmpfs(&self) -> bool {
        self.recipe.root_on_tmpfs
    }

    fn big_file(&self) -> u64 {
        96 << 20
    }

    fn concurrent_execs(&self) -> usize {
        self.recipe.concurrent_execs
    }
}
