//! The first exchange.

use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::descriptor::{Descriptor, Details};

/// What a client says first.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::remote) struct Hello {
    /// The newest generation it speaks.
    pub(in crate::remote) generation: u32,
}

/// What the server answers.
#[derive(Serialize, Deserialize)]
pub(in crate::remote) struct Welcome {
    /// The newest generation it speaks; both sides use the older of the two.
    pub(in crate::remote) generation: u32,
    /// What every later request of this session carries.
    pub(in crate::remote) session: String,
    pub(in crate::remote) descriptor: Descriptor,
    #[serde(default)]
    pub(in crate::remote) details: Details,
    #[serde(default)]
    pub(in crate::remote) capabilities: Capabilities,
    /// The environment of commands. Empty for a client that may not run any.
    #[serde(default)]
    pub(in crate::remote) env: Vec<(String, String)>,
}
