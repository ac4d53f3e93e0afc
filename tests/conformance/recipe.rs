//! What the containers of one target are like, and ways into them that are independent of the code
//! under test.

use agentworkspace::Environment;
use agentworkspace::container::{Access, ContainerOptions, Engine, Mount};
use tokio::sync::OnceCell;

use crate::docker;

/// What the containers of one target are like.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) image: &'static str,
    pub(crate) access: Access,
    /// A user other than root.
    pub(crate) user: Option<u32>,
    pub(crate) read_only: bool,
    pub(crate) root_on_tmpfs: bool,
    /// The multi-call binary of an image that has nothing else.
    pub(crate) tool: Option<&'static str>,
    pub(crate) concurrent_execs: usize,
    /// The size of the file that is streamed in and out.
    pub(crate) big_file: u64,
}

impl Recipe {
    pub(crate) fn new(image: &'static str) -> Self {
        Recipe {
            image,
            access: Access::Engine,
            user: None,
            read_only: false,
            root_on_tmpfs: false,
            tool: None,
            concurrent_execs: 40,
            big_file: 96 << 20,
        }
    }

    pub(crate) fn options(&self) -> ContainerOptions {
        let env: Environment = [("GIVEN", "by the options")].into_iter().collect();
        let mut options =
            ContainerOptions::new(self.image).access(self.access).env(env).read_only(self.read_only);
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

    /// Runs a script in a container, as the numbers `user`.
    pub(crate) async fn script(&self, container: &str, user: &str, script: &str, input: &[u8]) -> String {
        let shell = self.shell();
        let mut arguments = vec!["exec", "-i", "-u", user, "-w", "/", container];
        arguments.extend(shell.iter().map(String::as_str));
        arguments.push(script);
        docker::must(&arguments, input).await
    }

    /// As [`script`](Self::script), as the workspace's user.
    async fn script_as_user(&self, container: &str, script: &str, input: &[u8]) -> String {
        let (uid, gid) = self.ids();
        self.script(container, &format!("{uid}:{gid}"), script, input).await
    }

    /// Empties the root and the directory outside, which is made if need be.
    pub(crate) async fn prepare(&self, container: &str, root: &str) {
        let text = format!(
            "chmod -R u+rwX {root}/ 2>/dev/null; rm -rf {root}/..?* {root}/.[!.]* {root}/* {OUTSIDE}; \
             mkdir -p {OUTSIDE}; chmod 755 {OUTSIDE}; test -z \"$(ls -A {root})\""
        );
        self.script_as_user(container, &text, b"").await;
    }

    /// Everything below a path as comparable lines.
    pub(crate) async fn snapshot(&self, container: &str, path: &str) -> String {
        let text = format!(
            "find {path} | sort | while read -r f; do stat -c '%n %f %u %s %Y' \"$f\"; \
             [ -L \"$f\" ] && readlink \"$f\" || {{ [ -f \"$f\" ] && cat \"$f\"; }}; done; :"
        );
        self.script(container, "0:0", &text, b"").await
    }

    /// Writes a file outside as the workspace's user.
    pub(crate) async fn plant(&self, container: &str, path: &str, data: &[u8]) {
        self.script_as_user(container, &format!("cat > {path}; chmod 666 {path}"), data).await;
    }

    /// Changes an owner with the rights of the engine.
    pub(crate) async fn give_away(&self, container: &str, path: &str, uid: u32) -> bool {
        let owner = uid.to_string();
        let program = self.program("chown");
        let mut arguments = vec!["exec", "--privileged", "-u", "0:0", container];
        arguments.extend(program.iter().map(String::as_str));
        arguments.extend([owner.as_str(), path]);
        docker::run(&arguments, b"").await.status.success()
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
