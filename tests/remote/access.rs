//! Who is let in: tokens, scopes, TLS and addresses.

use agentworkspace::remote::{
    ClientTls, DialOptions, Listener, RemoteWorkspace, Scopes, Server, ServerTls, Tokens,
};
use agentworkspace::{Error, Workspace, WorkspaceExt as _, start};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::place::{Place, name, sh};

const TOKEN: &str = "one-one-one-one-one";
const OTHER: &str = "two-two-two-two-two";

async fn serve(server: &Server, listener: Listener) -> String {
    let (server, url) = (server.clone(), listener.url());
    tokio::spawn(async move { listener.serve(&server).await });
    url
}

async fn local(server: &Server) -> String {
    serve(server, Listener::tcp("127.0.0.1:0").await.expect("a port")).await
}

#[tokio::test]
async fn a_token_gives_its_scopes_and_no_more() {
    let place = Place::new();
    let tokens = place.path().with_extension("tokens");
    std::fs::write(&tokens, format!("{TOKEN} read\n{OTHER} write,exec\n")).expect("a file");
    let server = Server::with_tokens(place.source(), Tokens::from_file(&tokens).expect("tokens"));
    let url = local(&server).await;
    let dial = |token: &str| RemoteWorkspace::dial(&url, DialOptions::default().token(token));
    for wrong in [DialOptions::default(), DialOptions::default().token("wrong-wrong-wrong")] {
        let refused = RemoteWorkspace::dial(&url, wrong).await;
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }

    std::fs::write(place.path().join("f"), "x").expect("a file");
    let reader = dial(TOKEN).await.expect("a connection");
    assert_eq!(reader.read(&name("f"), 1).await.expect("a file"), b"x");
    assert_eq!(reader.env().len(), 0, "values are for who may run commands");
    assert!(reader.as_starter().is_none());
    let refused = reader.write(&name("f"), "y".into(), Default::default()).await;
    assert!(
        matches!(&refused, Err(Error::Unsupported { reason, .. }) if reason.contains("`write`")),
        "{refused:?}"
    );
    assert!(matches!(reader.exec(sh("echo > ran")).await, Err(Error::Unsupported { .. })));
    assert!(matches!(reader.remove(&name("f")).await, Err(Error::Unsupported { .. })));

    let writer = dial(OTHER).await.expect("a connection");
    assert_eq!(writer.env().get("SECRET"), Some("hunter2"));
    assert!(matches!(writer.read(&name("f"), 1).await, Err(Error::Unsupported { .. })));
    assert!(matches!(writer.copy(&name("f"), &name("g")).await, Err(Error::Unsupported { .. })));
    writer.write(&name("f"), "y".into(), Default::default()).await.expect("a write");
    assert!(writer.exec(sh("exit 0")).await.expect("a command").success());

    // A token that is taken away is of no use in an open session either.
    std::fs::write(&tokens, format!("{TOKEN} read\n")).expect("a file");
    let refused = start(&writer, sh("exit 0")).await;
    assert!(matches!(refused, Err(Error::Gone { .. })), "{refused:?}");
    assert_eq!(reader.read(&name("f"), 1).await.expect("a file"), b"y");
    std::fs::remove_file(tokens).expect("the file is there");
}

#[tokio::test]
async fn other_machines_are_let_in_with_a_token_or_when_that_is_asked_for() {
    let place = Place::new();
    let server = place.server();
    let everywhere = || async { Listener::tcp("0.0.0.0:0").await.expect("a port") };
    let refused = everywhere().await.serve(&server).await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    let url = serve(&server, everywhere().await.allow_anyone()).await.replace("0.0.0.0", "127.0.0.1");
    let workspace = RemoteWorkspace::dial(&url, DialOptions::default()).await.expect("a connection");
    workspace.close().await.expect("it closes");
    let token = Tokens::single(TOKEN, Scopes::all()).expect("a token");
    let guarded = Server::with_tokens(place.source(), token);
    let url = serve(&guarded, everywhere().await).await.replace("0.0.0.0", "127.0.0.1");
    RemoteWorkspace::dial(&url, DialOptions::default().token(TOKEN)).await.expect("a connection");
}

#[tokio::test]
async fn a_socket_is_for_its_user_and_is_taken_over_only_from_the_dead() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let path = place.path().join("socket");
    // A listener that is dropped without a word leaves its name behind.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let listener = Listener::unix(&path).expect("a name that was left behind");
    let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(Listener::unix(&path), Err(Error::AlreadyExists { .. })));
    let server = place.server();
    let url = serve(&server, listener).await;
    let workspace = RemoteWorkspace::dial(&url, DialOptions::default()).await.expect("a connection");
    assert_eq!(workspace.descriptor().reference, url);
    server.shutdown().await;
    let file = place.path().join("file");
    std::fs::write(&file, "mine").expect("a file");
    assert!(matches!(Listener::unix(&file), Err(Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read(&file).expect("the file"), b"mine");
}

/// An authority, with a certificate for `name` that it has signed and its key.
fn authority(name: &str) -> (String, String, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    (issuer.pem(), certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn tls_checks_the_server_and_the_client() {
    let place = Place::new();
    let (servers, certificate, key) = authority("127.0.0.1");
    let (clients, client, client_key) = authority("client");
    let (_, stranger, stranger_key) = authority("client");
    let tls = ServerTls::with_client_authority(certificate.as_bytes(), key.as_bytes(), clients.as_bytes())
        .expect("a certificate");
    let server = place.server();
    let url = serve(&server, Listener::tcp("127.0.0.1:0").await.expect("a port").tls(tls)).await;
    let dial = |tls: ClientTls| RemoteWorkspace::dial(&url, DialOptions::default().tls(tls));
    let identity = |certificate: &str, key: &str| {
        ClientTls::with_certificate(servers.as_bytes(), certificate.as_bytes(), key.as_bytes())
            .expect("an identity")
    };
    let workspace = dial(identity(&client, &client_key)).await.expect("a connection");
    assert!(workspace.exec(sh("exit 0")).await.expect("a command").success());
    for wrong in [
        identity(&stranger, &stranger_key),
        ClientTls::authority(servers.as_bytes()).expect("an authority"),
        ClientTls::with_certificate(clients.as_bytes(), client.as_bytes(), client_key.as_bytes())
            .expect("an identity"),
    ] {
        let refused = dial(wrong).await;
        assert!(matches!(refused, Err(Error::Gone { .. })), "{refused:?}");
    }
    // The certificate is for an address, not for a name that leads to it.
    let named = url.replace("127.0.0.1", "localhost");
    let options = DialOptions::default().tls(identity(&client, &client_key));
    assert!(RemoteWorkspace::dial(&named, options).await.is_err());
}
