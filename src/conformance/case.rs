//! One case: its name, what it needs, and how it is run.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::fixture::Fixture;
use super::place::{Place, assert_error, name};
use crate::{Capabilities, Command, Error, TtySize, start};

/// How long one case may take before it counts as hanging.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// Declares the cases of one area: `name [Need, ..] as Mode;`.
macro_rules! cases {
    ($area:literal { $($name:ident $([$($need:ident),+])? $(as $mode:ident)?;)* }) => {
        pub(super) const CASES: &[$crate::conformance::Case] = &[$($crate::conformance::Case {
            area: $area,
            name: stringify!($name),
            needs: &[$($($crate::conformance::Need::$need),+)?],
            mode: [
                $($crate::conformance::Mode::$mode,)?
                $crate::conformance::Mode::Shared,
            ][0],
            run: |place| Box::pin($name(place)),
        }),*];
    };
}

/// One behaviour to check.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Case {
    /// The part of the contract it belongs to.
    pub area: &'static str,
    /// What it says, as the name of its function.
    pub name: &'static str,
    /// What the workspace must be able to do; where it cannot, the refusal is checked instead.
    pub needs: &'static [Need],
    /// What it does to the workspace and wants from its process.
    pub mode: Mode,
    /// Runs it; a violation is a panic.
    pub(super) run: for<'a> fn(&'a Place) -> LocalBoxFuture<'a, ()>,
}

/// What a case does to the workspace and wants from its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The workspace is good for another case once its root is emptied.
    Shared,
    /// The workspace is closed or broken afterwards.
    Spent,
    /// It measures the memory of this process, so nothing else may run in it.
    Alone,
}

/// Something that a workspace may declare it cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// File operations at the root; lacking only where the root is on a tmpfs.
    Files,
    /// Trees as archives at the root; lacking only where the root is on a tmpfs.
    Archives,
    /// [`Capabilities::change_tree`].
    ChangeTree,
    /// [`Capabilities::start`].
    Start,
    /// [`Capabilities::tty`].
    Tty,
    /// [`Capabilities::user`].
    User,
    /// [`Capabilities::kill`].
    Kill,
    /// [`Capabilities::leftover_output`].
    LeftoverOutput,
}

impl Need {
    fn is_met(self, place: &Place, capabilities: &Capabilities) -> bool {
        match self {
            Need::Files => capabilities.tmpfs || !place.fixture.root_on_tmpfs(),
            Need::Archives => capabilities.archives_on_tmpfs || !place.fixture.root_on_tmpfs(),
            Need::ChangeTree => capabilities.change_tree,
            Need::Start => capabilities.start,
            Need::Tty => capabilities.start && capabilities.tty,
            Need::User => capabilities.user,
            Need::Kill => capabilities.kill,
            Need::LeftoverOutput => capabilities.leftover_output,
        }
    }

    /// Checks that a workspace without it refuses what needs it.
    async fn assert_refused(self, place: &Place) {
        let ws = place.ws();
        let file = name("refused");
        let quick = || place.sh("exit 0");
        match self {
            Need::Files => {
                assert_error!(
                    ws.write(&file, "x".into(), Default::default()).await,
                    Error::Unsupported { .. }
                );
                assert_error!(ws.open(&file, Default::default()).await, Error::Unsupported { .. });
                assert_error!(ws.read_dir(&name("."), Default::default()).await, Error::Unsupported { .. });
            }
            Need::Archives => {
                let unpacked = ws.put_archive(&name("."), vec![0; 1024].into(), Default::default()).await;
                assert_error!(unpacked, Error::Unsupported { .. });
                assert_error!(
                    ws.get_archive(&name("."), Default::default()).await,
                    Error::Unsupported { .. }
                );
            }
            Need::ChangeTree => {
                assert_error!(ws.remove(&file).await, Error::Unsupported { .. });
                assert_error!(ws.remove_all(&file).await, Error::Unsupported { .. });
                assert_error!(ws.rename(&file, &name("other")).await, Error::Unsupported { .. });
                assert_error!(ws.set_mode(&file, 0o600).await, Error::Unsupported { .. });
            }
            Need::Start => {
                assert!(ws.as_starter().is_none(), "a workspace without `start` gives no starter");
                let refused = start(ws, quick()).await;
                let kind = ws.descriptor().kind.to_string();
                match refused {
                    Err(error @ Error::Unsupported { .. }) => assert!(error.to_string().contains(&kind)),
                    other => panic!("expected a refusal that names `{kind}`, got {other:?}"),
                }
            }
            Need::Tty => {
                let command = quick().tty(TtySize::new(24, 80));
                assert_error!(start(ws, command).await, Error::Unsupported { .. });
            }
            Need::User => {
                assert_error!(ws.exec(quick().user("12345")).await, Error::Unsupported { .. });
            }
            Need::Kill => {
                let command: Command = quick().timeout(Duration::from_secs(60));
                assert_error!(ws.exec(command).await, Error::Unsupported { .. });
            }
            // There is nothing to refuse; the command itself is not to suffer from it.
            Need::LeftoverOutput => {
                let ran = place.run(place.sh("(sleep 4; echo late) & echo out; exit 3")).await;
                assert!(ran.output_detached && ran.exit_code == 3 && ran.out() == "out\n", "{ran}");
                place.done("echo still works").await;
            }
        }
    }
}

impl Case {
    /// Opens a workspace, runs the case in it and lets go of it.
    ///
    /// # Errors
    ///
    /// What was violated, in words.
    pub async fn check(&self, fixture: Arc<dyn Fixture>) -> Result<(), String> {
        let opening = AssertUnwindSafe(fixture.open()).catch_unwind();
        let site = opening.await.map_err(|panic| format!("no workspace: {}", text(&*panic)))?;
        let place = Place::new(fixture.clone(), site);
        let run = AssertUnwindSafe(tokio::time::timeout(CASE_TIMEOUT, self.run(&place))).catch_unwind();
        let result = match run.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(format!("it did not finish within {CASE_TIMEOUT:?}")),
            Err(panic) => Err(text(&*panic)),
        };
        let spent = self.mode == Mode::Spent || result.is_err();
        let release = AssertUnwindSafe(fixture.release(place.into_site(), spent)).catch_unwind();
        let released = release.await.map_err(|panic| format!("afterwards: {}", text(&*panic)));
        result.and(released)
    }

    async fn run(&self, place: &Place) {
        let capabilities = place.ws().capabilities();
        match self.needs.iter().find(|need| !need.is_met(place, &capabilities)) {
            None => (self.run)(place).await,
            Some(need) => need.assert_refused(place).await,
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.area, self.name)
    }
}

/// What a panic said.
fn text(panic: &(dyn Any + Send)) -> String {
    let string = panic.downcast_ref::<String>().cloned();
    string
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without words".to_owned())
}

/// Every case of the suite.
pub fn cases() -> &'static [Case] {
    use super::*;
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
        [
            names::CASES,
            read::CASES,
            write::CASES,
            write_failures::CASES,
            links::CASES,
            listing::CASES,
            metadata::CASES,
            tree::CASES,
            archive_in::CASES,
            archive_refusals::CASES,
            archive_out::CASES,
            exec::CASES,
            environment::CASES,
            streams::CASES,
            timeouts::CASES,
            leftovers::CASES,
            spawn_errors::CASES,
            process::CASES,
            process_end::CASES,
            tty::CASES,
            cancel::CASES,
            close::CASES,
            odd_bytes::CASES,
            races::CASES,
            limits::CASES,
            concurrency::CASES,
            details::CASES,
        ]
        .concat()
    });
    &ALL
}
