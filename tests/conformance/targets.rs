//! The backends and modes that the suite runs over.

use std::sync::Arc;

use agentworkspace::conformance::Fixture;

use crate::attached::AttachedFixture;
use crate::container::{ContainerFixture, Recipe};
use crate::local::LocalFixture;

/// One backend in one mode.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) fixture: Arc<dyn Fixture>,
    /// Whom its trials run as, where that is not the user of this process.
    pub(crate) user: Option<u32>,
    keeps: Keeps,
}

/// What a fixture keeps between trials.
#[derive(Clone)]
enum Keeps {
    Nothing,
    Containers(ContainerFixture),
    Attached(AttachedFixture),
}

impl Target {
    fn local(name: &'static str, user: Option<u32>) -> Self {
        Target { name, fixture: Arc::new(LocalFixture), user, keeps: Keeps::Nothing }
    }

    fn container(name: &'static str, recipe: Recipe) -> Self {
        let fixture = ContainerFixture::new(recipe);
        Target { name, fixture: Arc::new(fixture.clone()), user: None, keeps: Keeps::Containers(fixture) }
    }

    fn attached(name: &'static str, recipe: Recipe) -> Self {
        let fixture = AttachedFixture::new(recipe);
        Target { name, fixture: Arc::new(fixture.clone()), user: None, keeps: Keeps::Attached(fixture) }
    }

    /// Lets go of what its fixture keeps between trials.
    pub(crate) async fn end(&self) {
        match &self.keeps {
            Keeps::Nothing => {}
            Keeps::Containers(fixture) => fixture.end().await,
            Keeps::Attached(fixture) => fixture.end().await,
        }
    }
}

/// Every target. A local one for another user is there only where this process may become one:
/// otherwise `local` is it.
pub(crate) fn all() -> Vec<Target> {
    let busybox = Recipe::new("agentworkspace/busybox:test");
    let debian = Recipe::new("agentworkspace/debian:test");
    let scratch = Recipe { tool: Some("/busybox"), ..Recipe::new("agentworkspace/static:test") };
    let user = Some(1000);
    let mut targets = vec![Target::local("local", None)];
    if rustix::process::geteuid().is_root() || crate::again::is_child() {
        targets.push(Target::local("local-user", user));
    }
    targets.extend([
        Target::container("container-busybox", Recipe { concurrent_execs: 200, ..busybox.clone() }),
        Target::container("container-busybox-user", Recipe { user, ..busybox.clone() }),
        Target::container("container-debian", debian.clone()),
        Target::container("container-debian-user", Recipe { user, ..debian }),
        Target::container("container-readonly", Recipe { read_only: true, ..busybox.clone() }),
        Target::container(
            "container-tmpfs",
            Recipe { read_only: true, root_on_tmpfs: true, ..busybox.clone() },
        ),
        Target::container("container-noshell", scratch),
        Target::attached("attached", busybox),
    ]);
    targets
}
