//! The backends and modes that the suite runs over.

use std::sync::Arc;

use agentworkspace::conformance::Fixture;

use crate::local::LocalFixture;

/// One backend in one mode.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) fixture: Arc<dyn Fixture>,
    /// Whom its trials run as, where that is not the user of this process.
    pub(crate) user: Option<u32>,
}

impl Target {
    fn new(name: &'static str, fixture: impl Fixture) -> Self {
        Target { name, fixture: Arc::new(fixture), user: None }
    }

    /// Lets go of what its fixture keeps between trials.
    pub(crate) async fn end(&self) {}
}

/// Every target. A local one for another user is there only where this process may become one:
/// otherwise `local` is it.
pub(crate) fn all() -> Vec<Target> {
    let mut targets = vec![Target::new("local", LocalFixture)];
    if rustix::process::geteuid().is_root() || crate::again::is_child() {
        targets.push(Target { user: Some(1000), ..Target::new("local-user", LocalFixture) });
    }
    targets
}
