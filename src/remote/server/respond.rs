//! Responses, and what requests hold.

use std::io;
use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{BoxError, Error, Result};
use crate::path::WorkspacePath;
use crate::remote::error::WireError;
use crate::remote::incoming::{BodyReader, Incoming};
use crate::remote::limits::MAX_JSON_BYTES;
use crate::remote::outgoing::Outgoing;

/// The id of the session that a request belongs to.
pub(in crate::remote) const SESSION: HeaderName = HeaderName::from_static("agentworkspace-session");

/// The metadata of a file beside its content.
pub(in crate::remote) const METADATA: HeaderName = HeaderName::from_static("agentworkspace-metadata");

pub(super) type Answer = Result<Response<Outgoing>>;

pub(super) fn json(value: &impl Serialize) -> Answer {
    Ok(typed("application/json", Outgoing::json(value)))
}

pub(super) fn done() -> Answer {
    json(&serde_json::json!({}))
}

/// Raw bytes or frames.
pub(super) fn stream(body: Outgoing) -> Response<Outgoing> {
    typed("application/octet-stream", body)
}

fn typed(content_type: &'static str, body: Outgoing) -> Response<Outgoing> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The response to a request that failed.
pub(super) fn failed(error: &Error) -> Response<Outgoing> {
    let mut response = typed("application/json", Outgoing::json(&WireError::from(error)));
    *response.status_mut() = status(error);
    response
}

/// The response to a request without a token that is known.
pub(super) fn unauthorized() -> Response<Outgoing> {
    let error = Error::InvalidArgument { reason: "the server does not accept this token".to_owned() };
    let mut response = failed(&error);
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

/// The nearest status, for whoever looks without knowing the protocol.
fn status(error: &Error) -> StatusCode {
    match error {
        Error::NotFound { .. } | Error::NoContainer { .. } => StatusCode::NOT_FOUND,
        Error::OutsideWorkspace { .. } | Error::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        Error::InvalidPath { .. } | Error::InvalidArgument { .. } | Error::Archive { .. } => {
            StatusCode::BAD_REQUEST
        }
        Error::AlreadyExists { .. } | Error::DirectoryNotEmpty { .. } | Error::ProcessDone => {
            StatusCode::CONFLICT
        }
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::StorageFull { .. } | Error::SpoolFull { .. } => StatusCode::INSUFFICIENT_STORAGE,
        Error::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        Error::Closed => StatusCode::GONE,
        Error::Gone { .. } | Error::NoEngine { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::Io { .. } | Error::Engine { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// What a body of a client that does not keep to the protocol, or that went away, means.
fn broken(error: Option<BoxError>) -> Error {
    match error {
        None => {
            let source = io::Error::from(io::ErrorKind::UnexpectedEof);
            Error::Io { operation: "read".into(), path: "the request".to_owned(), source }
        }
        Some(error) => Error::InvalidArgument { reason: format!("the request is malformed: {error}") },
    }
}

pub(super) fn reader(headers: &HeaderMap, body: Incoming) -> BodyReader {
    BodyReader::new(body, headers, Arc::new(broken))
}

pub(super) async fn body<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T> {
    let (parts, body) = request.into_parts();
    reader(&parts.headers, body).json(MAX_JSON_BYTES).await
}

pub(super) fn query<T: DeserializeOwned>(request: &Request<Incoming>) -> Result<T> {
    serde_urlencoded::from_str(request.uri().query().unwrap_or_default())
        .map_err(|error| Error::InvalidArgument { reason: format!("the query is malformed: {error}") })
}

pub(super) fn path(text: &str) -> Result<WorkspacePath> {
    WorkspacePath::parse(text)
}
