//! One process by the engine's exec calls, without any promise beyond theirs.

use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::{Stream, StreamExt as _};
use tokio::io::AsyncWrite;

use super::engine::{CALL_TIMEOUT, Engine, SLOW_CALL_TIMEOUT};
use crate::collector::chunk;
use crate::error::{Error, Result};
use crate::output::OutputChunk;

/// What to run, as the engine takes it.
#[derive(Clone, Debug)]
pub(crate) struct RawExec {
    pub(crate) args: Vec<String>,
    /// `NAME=value`, over the container's own environment.
    pub(crate) env: Vec<String>,
    /// `uid:gid` or another form that the engine takes.
    pub(crate) user: String,
    /// Absolute in the container.
    pub(crate) dir: String,
    /// Whether standard input is attached; otherwise the process sees its end at once.
    pub(crate) stdin: bool,
}

/// The streams of a running exec.
pub(crate) struct RawStreams {
    /// The engine's id of the exec.
    pub(crate) id: String,
    pub(crate) output: Pin<Box<dyn Stream<Item = Result<OutputChunk>> + Send>>,
    /// Must be shut down for end of file: dropping it alone does not close it.
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// What the engine says of an exec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawState {
    pub(crate) running: bool,
    pub(crate) exit_code: Option<i64>,
    /// In the engine's process namespace: good only to see whether there was a process at all.
    pub(crate) pid: Option<i64>,
}

impl Engine {
    /// Starts `exec` in `container` without a terminal. That the process could not be started
    /// shows only in its output and state.
    pub(crate) async fn start_exec(&self, container: &str, exec: RawExec) -> Result<RawStreams> {
        let config = ExecConfig {
            attach_stdin: Some(exec.stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            env: Some(exec.env),
            cmd: Some(exec.args),
            user: Some(exec.user),
            working_dir: Some(exec.dir),
            ..Default::default()
        };
        let created = self
            .call("create an exec", SLOW_CALL_TIMEOUT, self.docker().create_exec(container, config))
            .await?;
        let options = StartExecOptions { detach: false, tty: false, output_capacity: Some(64 * 1024) };
        let started = self
            .call("start an exec", SLOW_CALL_TIMEOUT, self.docker().start_exec(&created.id, Some(options)))
            .await?;
        let StartExecResults::Attached { output, input } = started else {
            return Err(self.unexpected("start an exec", "the engine detached the exec"));
        };
        let engine = self.clone();
        let output = output.map(move |frame| match frame {
            Ok(LogOutput::StdOut { message }) => Ok(chunk(false, message)),
            Ok(LogOutput::StdErr { message }) => Ok(chunk(true, message)),
            // Without a terminal every frame has a stream; anything else means that framing broke.
            Ok(LogOutput::Console { .. } | LogOutput::StdIn { .. }) => {
                Err(engine.unexpected("read exec output", "a frame belongs to no output stream"))
            }
            Err(error) => Err(engine.error("read exec output", error)),
        });
        Ok(RawStreams { id: created.id, output: Box::pin(output), input })
    }

    /// The state of an exec.
    pub(crate) async fn exec_state(&self, id: &str) -> Result<RawState> {
        let state = self.call("inspect an exec", CALL_TIMEOUT, self.docker().inspect_exec(id)).await?;
        Ok(RawState { running: state.running.unwrap_or(false), exit_code: state.exit_code, pid: state.pid })
    }

    /// How many processes run in a container.
    pub(crate) async fn count_processes(&self, container: &str) -> Result<usize> {
        let call = self.docker().top_processes(container, None);
        let listed = self.call("list the processes of the container", CALL_TIMEOUT, call).await?;
        listed.processes.map(|processes| processes.len()).ok_or_else(|| {
            self.unexpected("list the processes of the container", "the engine's answer holds no list")
        })
    }

    fn unexpected(&self, operation: &str, message: &str) -> Error {
        Error::Engine { operation: operation.to_owned(), status: None, message: message.to_owned() }
    }
}
