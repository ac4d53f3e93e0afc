//! One connection: HTTP/2 over a byte stream.

use std::convert::Infallible;
use std::pin::pin;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::sessions::Server;
use crate::error::{Error, Result};
use crate::remote::executor::Tasks;
use crate::remote::incoming::boxed;
use crate::remote::limits::{LAST_FRAMES, MAX_HEADER_BYTES, MAX_STREAMS, PING_TIMEOUT, SEND_BUFFER_BYTES};

impl Server {
    /// Serves one client over `stream`, until either side closes it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the stream broke off or the client does not speak the protocol. What
    /// the client had started is ended in any case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection, with the same consequence.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<()> {
        let (tasks, windows) = (Tasks::new(), self.windows());
        let service = service_fn(|request: Request<Incoming>| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.handle(request.map(boxed)).await) }
        });
        let connection = http2::Builder::new(tasks.executor())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(MAX_HEADER_BYTES)
            // A client may give up as many calls as it may make.
            .max_pending_accept_reset_streams(MAX_STREAMS as usize)
            .max_local_error_reset_streams(MAX_STREAMS as usize)
            .keep_alive_interval(self.ping_interval())
            .keep_alive_timeout(PING_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let result = tokio::select! {
            result = &mut connection => result,
            () = self.stopped().cancelled() => {
                connection.as_mut().graceful_shutdown();
                // The client may never take what is left for it.
                tokio::time::timeout(LAST_FRAMES, connection).await.unwrap_or(Ok(()))
            }
        };
        tasks.end().await;
        result.map_err(|error| Error::Io {
            operation: "serve".into(),
            path: "a connection".to_owned(),
            source: std::io::Error::other(error),
        })
    }
}
