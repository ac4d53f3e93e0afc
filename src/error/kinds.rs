//! Why a command did not start, a workspace is gone, or an image is no good.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a command never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// No such program, neither by its path nor in the command's `PATH`; or its interpreter is
    /// missing.
    NotFound,
    /// It is there and is not an executable file, or not for this machine.
    NotExecutable,
    /// The command's directory is missing, is not a directory or may not be entered.
    BadDirectory,
    /// The user is not known in the workspace or may not be switched to.
    UnknownUser,
    /// Arguments and environment are larger than the system takes.
    ArgumentsTooLong,
    /// No process, memory or file descriptor was left for it.
    NoResources,
    /// Another reason; see the source.
    Other,
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpawnErrorKind::NotFound => "no such program",
            SpawnErrorKind::NotExecutable => "it is not executable",
            SpawnErrorKind::BadDirectory => "its working directory cannot be entered",
            SpawnErrorKind::UnknownUser => "its user is unknown or not allowed",
            SpawnErrorKind::ArgumentsTooLong => "its arguments and environment are too long",
            SpawnErrorKind::NoResources => "no process, memory or file descriptor is left for it",
            SpawnErrorKind::Other => "the system refused",
        })
    }
}

/// What became of a workspace that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
#[non_exhaustive]
pub enum GoneReason {
    /// The container's first process ended by itself or was stopped.
    ContainerExited {
        /// Its exit status as the engine reports it.
        exit_code: Option<i64>,
    },
    /// The container was killed from outside.
    ContainerKilled,
    /// The container's first process was ended for using too much memory.
    OutOfMemory,
    /// The container is paused and was not resumed in time.
    ContainerPaused,
    /// The container was removed.
    ContainerRemoved,
    /// The container was restarted since the workspace was opened; what ran in it has ended.
    ContainerRestarted,
    /// The engine stopped answering, or was restarted.
    EngineUnreachable {
        /// What was seen.
        detail: String,
    },
    /// The root directory is no longer there.
    RootRemoved,
    /// The process that looked after the command was killed.
    SupervisorKilled,
    /// The connection to the server of a remote workspace was lost, or the server ended it.
    Disconnected {
        /// What was seen.
        detail: String,
    },
    /// Something else; the text says what.
    Other {
        /// What was seen.
        detail: String,
    },
}

impl fmt::Display for GoneReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoneReason::ContainerExited { exit_code: Some(code) } => {
                write!(f, "its container exited with status {code}")
            }
            GoneReason::ContainerExited { exit_code: None } => f.write_str("its container exited"),
            GoneReason::ContainerKilled => f.write_str("its container was killed"),
            GoneReason::OutOfMemory => f.write_str("its container ran out of memory"),
            GoneReason::ContainerPaused => f.write_str("its container is paused"),
            GoneReason::ContainerRemoved => f.write_str("its container was removed"),
            GoneReason::ContainerRestarted => f.write_str("its container was restarted"),
            GoneReason::EngineUnreachable { detail } => {
                write!(f, "the engine does not answer ({detail})")
            }
            GoneReason::RootRemoved => f.write_str("its root directory is no longer there"),
            GoneReason::SupervisorKilled => {
                f.write_str("the process that looked after the command was killed")
            }
            GoneReason::Disconnected { detail } => {
                write!(f, "the connection to its server is lost ({detail})")
            }
            GoneReason::Other { detail } => f.write_str(detail),
        }
    }
}

/// What is wrong with an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum ImageErrorKind {
    /// The reference is malformed.
    InvalidReference {
        /// What is wrong with it.
        detail: String,
    },
    /// It is not on the engine, and the pull policy does not allow a pull.
    NotPresent,
    /// The registry does not know it, or wants credentials for it.
    NotFound {
        /// The engine's or the registry's own words.
        detail: String,
    },
    /// The pull failed, after the stated number of tries.
    PullFailed {
        /// How often it was tried.
        attempts: u32,
        /// The engine's or the registry's own words.
        detail: String,
    },
    /// The build failed.
    BuildFailed {
        /// The builder's own words.
        detail: String,
    },
    /// Another image than the one that was required.
    WrongDigest {
        /// The digest that was required.
        required: String,
        /// The digest that was found.
        found: String,
    },
    /// It is for another platform than the one that was asked for.
    WrongPlatform {
        /// The platform that was asked for.
        required: String,
        /// The platform that was found.
        found: String,
    },
}

impl fmt::Display for ImageErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageErrorKind::InvalidReference { detail } => write!(f, "invalid reference: {detail}"),
            ImageErrorKind::NotPresent => {
                f.write_str("not on this engine, and the pull policy does not allow a pull")
            }
            ImageErrorKind::NotFound { detail } => write!(f, "not found: {detail}"),
            ImageErrorKind::PullFailed { attempts: 1, detail } => {
                write!(f, "the pull failed: {detail}")
            }
            ImageErrorKind::PullFailed { attempts, detail } => {
                write!(f, "the pull failed {attempts} times: {detail}")
            }
            ImageErrorKind::BuildFailed { detail } => write!(f, "the build failed: {detail}"),
            ImageErrorKind::WrongDigest { required, found } => {
                write!(f, "it is {found}, and {required} was required")
            }
            ImageErrorKind::WrongPlatform { required, found } => {
                write!(f, "it is for {found}, and {required} was required")
            }
        }
    }
}
