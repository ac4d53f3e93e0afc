//! The server as a part of an axum application.

use agentworkspace::remote::{DialOptions, RemoteWorkspace, router};
use agentworkspace::{Workspace, WorkspaceExt as _, start};
use axum::Router;
use axum::routing::get;
use tokio::io::AsyncReadExt as _;

use crate::place::{Place, name, sh};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_serves_below_a_path_of_the_application() {
    let place = Place::new();
    let server = place.server();
    let application = Router::new().route("/", get(|| async { "home" })).nest("/agents/one", router(&server));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, application).await });
    let url = format!("http://{address}/agents/one");
    let workspace = RemoteWorkspace::dial(&url, DialOptions::default()).await.expect("a connection");
    let content = vec![b'x'; 1 << 20];
    workspace.write(&name("f"), content.clone().into(), Default::default()).await.expect("a write");
    assert_eq!(workspace.read(&name("f"), 1 << 20).await.expect("a file"), content);
    let output = workspace.exec(sh("cat; exit 3").stdin("in")).await.expect("a command");
    assert_eq!((output.stdout.to_text().as_str(), output.exit_code), ("in", 3));
    let mut process = start(&workspace, sh("cat f | wc -c")).await.expect("a process");
    let mut text = String::new();
    process.stdout().expect("its output").read_to_string(&mut text).await.expect("its output");
    assert_eq!(text.trim(), content.len().to_string());
    workspace.close().await.expect("it closes");
}
