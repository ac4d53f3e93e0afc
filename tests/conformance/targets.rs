//! The backends and modes that the suite runs over.

use std::sync::Arc;

use agentworkspace::conformance::Fixture;
use agentworkspace::container::Access;

use crate::attached::Attached;
use crate::container::Created;
use crate::engine_fixture::{EngineFixture, Supply};
use crate::local::LocalFixture;
use crate::recipe::Recipe;
use crate::remote::{RemoteFixture, Way};

/// One backend in one mode.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) fixture: Arc<dyn Fixture>,
    /// Whom its trials run as, where that is not the user of this process.
    pub(crate) user: Option<u32>,
    /// Where its containers come from.
    supply: Option<Arc<dyn Supply>>,
}

impl Target {
    fn local(name: &'static str, user: Option<u32>) -> Self {
        Target { name, fixture: Arc::new(LocalFixture), user, supply: None }
    }

    fn remote(name: &'static str, way: Way) -> Self {
        Target { name, fixture: Arc::new(RemoteFixture::new(way)), user: None, supply: None }
    }

    /// Whether an engine takes part in it.
    pub(crate) fn is_engine(&self) -> bool {
        self.supply.is_some()
    }

    fn engine(name: &'static str, recipe: Recipe, supply: impl Supply + 'static) -> Self {
        let supply: Arc<dyn Supply> = Arc::new(supply);
        let fixture = Arc::new(EngineFixture::new(recipe, supply.clone()));
        Target { name, fixture, user: None, supply: Some(supply) }
    }

    fn container(name: &'static str, recipe: Recipe) -> Self {
        Target::engine(name, recipe, Created::default())
    }

    /// Lets go of what is kept between trials.
    pub(crate) async fn end(&self) {
        if let Some(supply) = &self.supply {
            supply.end().await;
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
        Target::remote("remote-loopback", Way::Memory),
        Target::remote("remote-loopback-tiny", Way::Tiny),
        Target::remote("remote-unix", Way::Unix),
        Target::remote("remote-tcp", Way::Tcp),
        Target::remote("remote-tls", Way::Tls),
        Target::container(
            "container-busybox",
            Recipe { concurrent_execs: 200, big_file: 1 << 30, ..busybox.clone() },
        ),
        Target::container("container-busybox-user", Recipe { user, ..busybox.clone() }),
        Target::container("container-debian", debian.clone()),
        Target::container("container-debian-user", Recipe { user, ..debian.clone() }),
        Target::container("container-readonly", Recipe { read_only: true, ..busybox.clone() }),
        Target::container(
            "container-tmpfs",
            Recipe { read_only: true, root_on_tmpfs: true, ..busybox.clone() },
        ),
        Target::container("container-noshell", scratch.clone()),
        Target::container(
            "helper",
            Recipe { big_file: 1 << 30, concurrent_execs: 200, ..by_helper(&busybox) },
        ),
        Target::container("helper-user", Recipe { user, ..by_helper(&busybox) }),
        Target::container("helper-debian", by_helper(&debian)),
        Target::container("helper-readonly", Recipe { read_only: true, ..by_helper(&busybox) }),
        Target::container("helper-readonly-user", Recipe { user, read_only: true, ..by_helper(&busybox) }),
        Target::container("helper-noshell", by_helper(&scratch)),
        Target::engine("attached", busybox, Attached::default()),
    ]);
    targets
}

fn by_helper(recipe: &Recipe) -> Recipe {
    Recipe { access: Access::Helper, ..recipe.clone() }
}
