//! Follows the engine's events of one container for as long as its workspace is open.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status, EventMessage};
use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt as _;

use super::engine::Engine;
use super::monitor::{Condition, Monitor};
use super::shared::Shared;
use crate::error::GoneReason;

/// How long after the end of a container its other events may come: the stop that caused it or
/// the removal that follows.
const FOLLOW_UP: Duration = Duration::from_millis(300);

/// How long the start after a stop may take that makes a restart of it. A state that shows the end
/// waits a little longer for what the events say.
const RESTART: Duration = Duration::from_millis(900);

/// How long an engine that went away may take to come back, as in a restart of its service.
const RECONNECT: Duration = Duration::from_secs(6);

/// The first pause between two attempts to reach the engine again; it doubles up to the last.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(1);

/// When the list is looked at again for a pause that it did not show. The last look is after any that
/// may have met a resume.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(80),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

/// Starts to follow the events of an open container.
///
/// `since` is a moment of the engine's clock before the container was found in this `state`.
pub(crate) fn follow(shared: &Arc<Shared>, since: SystemTime, state: ContainerState) {
    shared.monitor.remember_state(state);
    let follower = Follower {
        engine: shared.engine.clone(),
        id: shared.id.clone(),
        monitor: shared.monitor.clone(),
        since,
        killed: None,
        stopped: false,
    };
    let mut conditions = shared.monitor.subscribe();
    tokio::spawn(async move {
        // The sender lives in the follower's monitor, so only the condition can end the wait.
        tokio::select! {
            _closed = conditions.wait_for(|condition| *condition == Condition::Closed) => {}
            () = follower.run() => {}
        }
    });
}

struct Follower {
    engine: Engine,
    id: String,
    monitor: Monitor,
    since: SystemTime,
    /// When somebody last sent SIGKILL to the container's first process.
    killed: Option<Instant>,
    /// Whether somebody had the engine stop the container.
    stopped: bool,
}

impl Follower {
    async fn run(mut self) {
        loop {
            self.read_events().await;
            // The stream ended: the engine or the connection is gone, or the engine ends streams
            // by itself.
            if !self.reconnect().await {
                return;
            }
        }
    }

    /// Reads events until the stream breaks.
    async fn read_events(&mut self) {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let filters = [("container", vec![self.id.as_str()]), ("type", vec!["container"])].into();
        let options = EventsOptionsBuilder::default()
            .since(&format!("{}.{:09}", since.as_secs(), since.subsec_nanos()))
            .filters(&filters)
            .build();
        let mut events = Box::pin(self.engine.docker().events(Some(options)));
        // How the container ended, until its follow-up events have come.
        let mut ended: Option<GoneReason> = None;
        loop {
            let event = match ended.take() {
                None => events.next().await,
                Some(why) => match tokio::time::timeout(self.patience(), events.next()).await {
                    Ok(event) => {
                        ended = Some(why);
                        event
                    }
                    Err(_) => {
                        self.monitor.set(Condition::Gone(why));
                        continue;
                    }
                },
            };
            let Some(Ok(event)) = event else {
                if let Some(why) = ended {
                    self.monitor.set(Condition::Gone(why));
                }
                return;
            };
            self.note_time(&event);
            self.handle(&event, &mut ended).await;
        }
    }

    /// Remembers the time of an event, so that a new stream goes on after it.
    fn note_time(&mut self, event: &EventMessage) {
        if let Some(nanos) = event.time_nano.and_then(|nanos| u64::try_from(nanos).ok()) {
            self.since = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos.saturating_add(1));
        }
    }

    async fn handle(&mut self, event: &EventMessage, ended: &mut Option<GoneReason>) {
        let attribute = |name: &str| {
            event.actor.as_ref().and_then(|actor| actor.attributes.as_ref()).and_then(|all| all.get(name))
        };
        // Execs have actions such as `exec_die: sh -c ...`.
        let action = event.action.as_deref().unwrap_or_default();
        match action.split(':').next().unwrap_or_default() {
            "exec_die" => attribute("execID").into_iter().for_each(|exec| self.monitor.note_exit(exec)),
            "oom" => self.monitor.note_oom(),
            "kill" if attribute("signal").is_some_and(|signal| signal == "9" || signal == "SIGKILL") => {
                self.killed = Some(Instant::now());
            }
            "die" | "died" => {
                let exit_code = attribute("exitCode").or(attribute("containerExitCode"));
                *ended = Some(self.end(exit_code.and_then(|code| code.parse().ok())).await);
            }
            // A stop is a signal, a wait and, at last, SIGKILL: no mere kill.
            "stop" => {
                self.stopped = true;
                if let Some(GoneReason::ContainerKilled) = ended {
                    *ended = Some(GoneReason::ContainerExited { exit_code: Some(137) });
                }
            }
            "pause" if !self.note_pause().await => self.look_again(),
            "unpause" => drop(self.note_pause().await),
            "start" if self.was_restarted().await => {
                *ended = None;
                self.monitor.set(Condition::Gone(GoneReason::ContainerRestarted));
            }
            "destroy" | "remove" => {
                // Why it ended says more where the engine removes what has ended.
                if let Some(why) = ended.take().filter(|_| self.monitor.is_removed_at_end()) {
                    self.monitor.set(Condition::Gone(why));
                }
                self.monitor.set(Condition::Gone(GoneReason::ContainerRemoved));
            }
            _ => {}
        }
    }

    /// How long the events after an end may take.
    fn patience(&self) -> Duration {
        if self.stopped { RESTART } else { FOLLOW_UP }
    }

    /// Why the container ended, as far as its events so far tell.
    async fn end(&self, exit_code: Option<i64>) -> GoneReason {
        if self.killed.is_some() {
            return GoneReason::ContainerKilled;
        }
        let state = self.engine.inspect(&self.id).await.ok().flatten().and_then(|container| container.state);
        let marked = state.is_some_and(|state| state.oom_killed == Some(true));
        self.monitor.end(exit_code, marked)
    }

    /// Finds out whether somebody else has the container paused. An event does not tell: it may be
    /// of a pause of the workspace itself that has ended since. What the state shows beside one of
    /// those is not believed either, and the event of a pause after it comes later.
    ///
    /// Gives whether somebody has it paused.
    async fn note_pause(&self) -> bool {
        note_pause(&self.engine, &self.id, &self.monitor).await
    }

    /// Looks again, because an engine sends the event of a pause before its list shows it. Beside the
    /// following, which must not stand still.
    fn look_again(&self) {
        let (engine, id, monitor) = (self.engine.clone(), self.id.clone(), self.monitor.clone());
        let before = monitor.own_pauses().now();
        tokio::spawn(async move {
            for delay in LOOKS {
                tokio::time::sleep(delay).await;
                // A pause of the workspace has events of its own.
                let is_open = monitor.check_open().is_ok();
                if !is_open || !monitor.own_pauses().none_since(before) {
                    return;
                }
                note_pause(&engine, &id, &monitor).await;
            }
        });
    }

    /// Whether the container runs for another time than the one that was opened.
    async fn was_restarted(&self) -> bool {
        match self.engine.inspect(&self.id).await {
            Ok(Some(container)) => {
                !self.monitor.is_same_start(container.state.unwrap_or_default().started_at.as_ref())
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// Tries to reach the engine again, for a bounded time; whether it is worth to go on.
    async fn reconnect(&self) -> bool {
        let start = Instant::now();
        let mut delay = FIRST_DELAY;
        loop {
            tokio::time::sleep(delay).await;
            match self.engine.inspect(&self.id).await {
                Ok(Some(container)) => {
                    let state = container.state.unwrap_or_default();
                    match state.status {
                        Some(Status::RUNNING | Status::PAUSED)
                            if self.monitor.is_same_start(state.started_at.as_ref()) => {}
                        Some(Status::RUNNING | Status::PAUSED) => {
                            self.monitor.set(Condition::Gone(GoneReason::ContainerRestarted));
                        }
                        _ => {
                            let marked = state.oom_killed == Some(true);
                            self.monitor.set(Condition::Gone(self.monitor.end(state.exit_code, marked)));
                        }
                    }
                    return true;
                }
                Ok(None) => {
                    self.monitor.set(Condition::Gone(GoneReason::ContainerRemoved));
                    return false;
                }
                Err(error) if start.elapsed() >= RECONNECT => {
                    let detail = std::error::Error::source(&error)
                        .map_or_else(|| error.to_string(), |source| source.to_string());
                    self.monitor.set(Condition::Gone(GoneReason::EngineUnreachable { detail }));
                    return false;
                }
                Err(_) => delay = (delay * 2).min(LAST_DELAY),
            }
        }
    }
}

async fn note_pause(engine: &Engine, id: &str, monitor: &Monitor) -> bool {
    let before = monitor.own_pauses().now();
    if monitor.own_pauses().is_active() {
        monitor.set(Condition::Running);
        return false;
    }
    let Ok(is_paused) = engine.is_paused(id).await else { return false };
    let by_others = is_paused && monitor.own_pauses().none_since(before);
    monitor.set(if by_others { Condition::Paused } else { Condition::Running });
    by_others
}
