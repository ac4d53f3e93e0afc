//! Sessions: each client has its own.

use std::sync::Arc;
use std::time::Duration;

use agentworkspace::remote::{Server, SharedSource};
use agentworkspace::{Environment, Error, LocalWorkspace, Workspace, WorkspaceExt as _, start};

use crate::place::{Place, alive, eventually, marker, name, sh};

#[tokio::test]
async fn the_end_of_one_session_leaves_the_others_alone() {
    let place = Place::new();
    let server = place.server();
    let (one, two) = (place.client(&server).await, place.client(&server).await);
    let (first, second) = (marker(), marker());
    let left = |marker: &str| sh(format!("setsid sleep {marker} > /dev/null 2>&1 &"));
    one.exec(left(&first)).await.expect("a command that leaves something");
    two.exec(left(&second)).await.expect("a command that leaves something");
    one.close().await.expect("it closes");
    assert_eq!((alive(&first), alive(&second)), (0, 1));
    drop(two);
    eventually(Duration::from_secs(5), || alive(&second) == 0).await;
}

#[tokio::test]
async fn a_shared_workspace_outlives_its_sessions() {
    let place = Place::new();
    let env: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let shared: Arc<dyn Workspace> = Arc::new(LocalWorkspace::open(place.path(), env).expect("a workspace"));
    let server = Server::new(SharedSource::new(shared.clone()));
    let (one, two) = (Arc::new(place.client(&server).await), place.client(&server).await);
    let (running, left) = (marker(), marker());
    let process = start(&*one, sh(format!("exec sleep {running}"))).await.expect("a process");
    one.exec(sh(format!("setsid sleep {left} > /dev/null 2>&1 &"))).await.expect("a command");
    let (command, caller) = (sh(format!("sleep {running}; :")), one.clone());
    let pending = tokio::spawn(async move { caller.exec(command).await });
    eventually(Duration::from_secs(10), || alive(&running) >= 3).await;

    one.close().await.expect("it closes");
    assert!(matches!(pending.await.expect("no panic"), Err(Error::Closed)));
    let end = tokio::time::timeout(Duration::from_secs(5), process.wait()).await.expect("in time");
    assert!(matches!(end, Ok(agentworkspace::End::Signaled(_))), "{end:?}");
    eventually(Duration::from_secs(5), || alive(&running) == 0).await;
    assert_eq!(alive(&left), 1, "it belongs to the workspace");
    two.write(&name("f"), "x".into(), Default::default()).await.expect("the other session goes on");
    assert_eq!(shared.read(&name("f"), 1).await.expect("a file"), b"x");
    shared.close().await.expect("it closes");
    assert_eq!(alive(&left), 0);
}
