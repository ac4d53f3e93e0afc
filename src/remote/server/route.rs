//! Which request does what, and what it takes.

use hyper::header::AUTHORIZATION;
use hyper::{Method, Request, Response, Version};

use super::respond::{Answer, SESSION, body, done, failed, query, stream, unauthorized};
use super::sessions::Server;
use super::{batch, exec, files, process, streams};
use crate::error::{Error, Result};
use crate::remote::grant::Scopes;
use crate::remote::incoming::Incoming;
use crate::remote::outgoing::Outgoing;
use crate::remote::wire::CallId;

const NOTHING: Scopes = Scopes { read: false, write: false, exec: false };
const READ: Scopes = Scopes { read: true, ..NOTHING };
const WRITE: Scopes = Scopes { write: true, ..NOTHING };
const READ_WRITE: Scopes = Scopes { read: true, write: true, exec: false };
const EXEC: Scopes = Scopes { exec: true, ..NOTHING };

impl Server {
    /// Answers one request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or later the response's body, ends what the request stood for.
    pub(in crate::remote) async fn handle(&self, request: Request<Incoming>) -> Response<Outgoing> {
        let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        let Some(grant) = self.authorize(token) else { return unauthorized() };
        if request.version() != Version::HTTP_2 {
            let reason = "the protocol needs HTTP/2".to_owned();
            return failed(&Error::InvalidArgument { reason });
        }
        let answer = match (request.method(), request.uri().path()) {
            (&Method::POST, "/v1/session") => match body(request).await {
                Ok(hello) => self.open_session(hello, grant).await.map(stream),
                Err(error) => Err(error),
            },
            _ => {
                let id = request.headers().get(SESSION).and_then(|value| value.to_str().ok());
                match self.session(id.unwrap_or_default(), &grant) {
                    Ok(session) => in_session(session, grant.scopes, request).await,
                    Err(error) => Err(error),
                }
            }
        };
        answer.unwrap_or_else(|error| failed(&error))
    }
}

async fn in_session(
    session: std::sync::Arc<super::session::Session>,
    scopes: Scopes,
    request: Request<Incoming>,
) -> Answer {
    let path = request.uri().path().to_owned();
    let needs = |needed: Scopes| -> Result<()> {
        session.check()?;
        scopes.check(needed)
    };
    match (request.method().as_str(), path.as_str()) {
        ("POST", "/v1/close") => {
            session.close().await?;
            done()
        }
        ("GET", "/v1/ping") => done(),
        ("GET", "/v1/file") => {
            needs(READ)?;
            files::read(&session, query(&request)?).await
        }
        ("PUT", "/v1/file") => {
            needs(WRITE)?;
            files::write(&session, query(&request)?, request).await
        }
        ("DELETE", "/v1/file") => {
            needs(WRITE)?;
            files::remove(&session, query(&request)?).await
        }
        ("GET", "/v1/metadata") => {
            needs(READ)?;
            files::metadata(&session, query(&request)?).await
        }
        ("GET", "/v1/link") => {
            needs(READ)?;
            files::read_link(&session, query(&request)?).await
        }
        ("GET", "/v1/dir") => {
            needs(READ)?;
            files::read_dir(&session, query(&request)?).await
        }
        ("POST", "/v1/rename") => {
            needs(WRITE)?;
            files::rename(&session, body(request).await?).await
        }
        ("POST", "/v1/copy") => {
            needs(READ_WRITE)?;
            files::copy(&session, body(request).await?).await
        }
        ("POST", "/v1/directory") => {
            needs(WRITE)?;
            files::create_dir_all(&session, body(request).await?).await
        }
        ("POST", "/v1/mode") => {
            needs(WRITE)?;
            files::set_mode(&session, body(request).await?).await
        }
        ("PUT", "/v1/archive") => {
            needs(WRITE)?;
            files::put_archive(&session, query(&request)?, request).await
        }
        ("POST", "/v1/archive") => {
            needs(READ)?;
            files::get_archive(&session, body(request).await?).await
        }
        ("POST", "/v1/batch") => {
            needs(NOTHING)?;
            batch::batch(session, scopes, request).await
        }
        ("POST", "/v1/exec") => {
            needs(EXEC)?;
            exec::exec(session, request).await
        }
        ("POST", "/v1/cancel") => {
            scopes.check(EXEC)?;
            let CallId { call } = body(request).await?;
            session.cancel_call(call);
            done()
        }
        ("POST", "/v1/start") => {
            needs(EXEC)?;
            process::start(session, request).await
        }
        // A process is named after its end and while its session ends.
        ("PUT", "/v1/process/stdin") => {
            scopes.check(EXEC)?;
            streams::stdin(&session, query(&request)?, request).await
        }
        ("GET", "/v1/process/stdout") => {
            scopes.check(EXEC)?;
            streams::stdout(&session, query(&request)?)
        }
        ("GET", "/v1/process/stderr") => {
            scopes.check(EXEC)?;
            streams::stderr(&session, query(&request)?)
        }
        ("POST", "/v1/process/signal") => {
            scopes.check(EXEC)?;
            process::signal(&session, body(request).await?).await
        }
        ("POST", "/v1/process/resize") => {
            scopes.check(EXEC)?;
            process::resize(&session, body(request).await?).await
        }
        ("POST", "/v1/process/close") => {
            scopes.check(EXEC)?;
            process::close(&session, body(request).await?).await
        }
        (method, _) => Err(Error::InvalidArgument { reason: format!("there is no {method} {path}") }),
    }
}
