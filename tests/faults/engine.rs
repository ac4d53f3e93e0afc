//! An engine of the test's own, which may be stopped and started.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// The image that trials use, copied from the machine's engine.
pub(crate) const IMAGE: &str = "agentworkspace/busybox:test";

/// How long the engine may take to answer after it was started.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// How long an engine may take to resume a container.
const RESUME_DEADLINE: Duration = Duration::from_secs(5);

pub(crate) struct PrivateEngine {
    directory: tempfile::TempDir,
    daemon: Mutex<Option<Child>>,
    /// Held for reading by a trial that needs the engine up, for writing by one that stops it.
    pub(crate) in_use: RwLock<()>,
}

impl PrivateEngine {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("aw-engine-").tempdir()?;
        let engine = PrivateEngine { directory, daemon: Mutex::new(None), in_use: RwLock::new(()) };
        engine.up()?;
        let mut save = Command::new("docker")
            .args(["save", IMAGE])
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to run docker save")?;
        let archive = save.stdout.take().context("the pipe was asked for")?;
        let load = engine.docker().arg("load").stdin(archive).output()?;
        ensure!(
            save.wait()?.success() && load.status.success(),
            "failed to copy {IMAGE} to the second engine"
        );
        Ok(engine)
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    /// The `docker` command for this engine.
    pub(crate) fn docker(&self) -> Command {
        let mut docker = Command::new("docker");
        docker.env("DOCKER_HOST", self.address());
        docker
    }

    /// Runs a `docker` command that must succeed.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let output = self.docker().args(args).output()?;
        ensure!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Resumes a paused container.
    ///
    /// Engine 20.10 on cgroup v1 may hang in that for ever: a process that it was starting as the
    /// pause came is frozen with a lock held that the resume waits for. Thawed by hand, the process
    /// goes on and lets it go.
    pub(crate) fn unpause(&self, container: &str) -> anyhow::Result<()> {
        let mut resuming = self.docker().args(["unpause", container]).spawn()?;
        if let Some(status) = wait_until(&mut resuming, Instant::now() + RESUME_DEADLINE)? {
            ensure!(status.success(), "docker unpause {container}: {status}");
            return Ok(());
        }
        let freezer = format!("/sys/fs/cgroup/freezer/docker/{container}/freezer.state");
        std::fs::write(&freezer, "THAWED").with_context(|| format!("failed to write {freezer}"))?;
        let status = wait_until(&mut resuming, Instant::now() + START_DEADLINE)?;
        // One that was thawed by hand may count as not paused.
        ensure!(status.is_some(), "docker unpause {container} hangs, also after its cgroup was thawed");
        Ok(())
    }

    /// Removes what a stop has left, with the volumes that only it has. A workspace that was dropped
    /// may be doing the same.
    pub(crate) fn remove_containers(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            let listed = self.docker().args(["ps", "-aq"]).output()?;
            ensure!(listed.status.success(), "docker ps: {}", String::from_utf8_lossy(&listed.stderr));
            let ids = String::from_utf8_lossy(&listed.stdout);
            let removed = ids.split_whitespace().map(|id| self.run(&["rm", "-fv", id]));
            let failed = removed.filter_map(anyhow::Result::err).last();
            match failed {
                None if ids.trim().is_empty() => return Ok(()),
                Some(error) if Instant::now() >= deadline => return Err(error),
                _ => {}
            }
        }
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn up(&self) -> anyhow::Result<()> {
        let log = std::fs::File::create(self.path("log"))?;
        // In the machine's own network namespace a second daemon without a bridge would delete the first one's.
        let child = Command::new("unshare")
            .args(["--net", "--mount", "dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false"])
            .arg(format!("--host={}", self.address()))
            .arg(format!("--data-root={}", self.path("data").display()))
            .arg(format!("--exec-root={}", self.path("run").display()))
            .arg(format!("--pidfile={}", self.path("pid").display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("failed to start dockerd in namespaces of its own")?;
        *self.daemon.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let deadline = Instant::now() + START_DEADLINE;
        while !self.docker().args(["version"]).output()?.status.success() {
            let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
            ensure!(Instant::now() < deadline, "the second engine does not answer:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Stops the daemon, and with it every container.
    pub(crate) fn down(&self) -> anyhow::Result<()> {
        let Some(mut child) = self.daemon.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            bail!("the second engine is not running");
        };
        // `unshare` replaced itself by the daemon, so this is the daemon's own process.
        let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        ensure!(stopped.success(), "the second engine could not be told to stop");
        child.wait()?;
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if let Err(error) = self.down() {
            eprintln!("the second engine was not stopped: {error:#}");
        }
    }
}

/// The status of a child that ends before the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> anyhow::Result<Option<ExitStatus>> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}
