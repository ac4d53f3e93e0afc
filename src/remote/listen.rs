//! Where clients come from: unix sockets, TCP and TLS.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream as BlockingUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, chmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::executor::Tasks;
use super::server::Server;
use super::tls::ServerTls;
use crate::error::{Error, Result};

/// How many connections are open at the same time.
const MAX_CONNECTIONS: usize = 1024;

/// How many connections wait to be accepted.
const BACKLOG: i32 = 128;

/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted, which is so when no descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A place where clients connect.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    tls: Option<ServerTls>,
    anyone: bool,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener, SocketAddr),
}

/// A byte stream of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Listener {
    /// Listens at a unix socket that only this user may connect to. What a process that has ended
    /// left at `path` is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] when somebody listens there or something else has the name; what
    /// making the socket reports.
    pub fn unix(path: impl AsRef<Path>) -> Result<Listener> {
        let path = path.as_ref();
        let listener =
            listen_at(path).map_err(|error| Error::from_io("listen at", &path.to_string_lossy(), error))?;
        Ok(Listener { socket: Socket::Unix(listener, SocketFile(path.to_owned())), tls: None, anyone: false })
    }

    /// Listens at `address`, `HOST:PORT`; port 0 is one that is free.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub async fn tcp(address: &str) -> Result<Listener> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            io::Result::Ok(Socket::Tcp(listener, address))
        };
        let socket = bound.await.map_err(|error| Error::from_io("listen at", address, error))?;
        Ok(Listener { socket, tls: None, anyone: false })
    }

    /// Speaks TLS.
    #[must_use]
    pub fn tls(self, tls: ServerTls) -> Self {
        Listener { tls: Some(tls), ..self }
    }

    /// Lets anyone in who reaches it, also from other machines. Whoever connects may then run
    /// commands here.
    #[must_use]
    pub fn allow_anyone(self) -> Self {
        Listener { anyone: true, ..self }
    }

    /// Where it listens, as [`RemoteWorkspace::dial`](super::RemoteWorkspace::dial) takes it.
    pub fn url(&self) -> String {
        match &self.socket {
            Socket::Unix(_, file) => format!("unix:{}", file.0.display()),
            Socket::Tcp(_, address) if self.tls.is_some() => format!("https://{address}"),
            Socket::Tcp(_, address) => format!("http://{address}"),
        }
    }

    /// Serves whoever connects, until [`Server::shutdown`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] when the server wants no token and other machines reach it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes every connection and ends what their clients started.
    pub async fn serve(self, server: &Server) -> Result<()> {
        if let Socket::Tcp(_, address) = &self.socket
            && !address.ip().is_loopback()
        {
            if server.is_open() && !self.anyone {
                return Err(Error::InvalidArgument {
                    reason: format!(
                        "whoever reaches {address} could run commands here: name a token, listen on a \
                         loopback address, or allow anyone explicitly"
                    ),
                });
            }
            if self.tls.is_none() {
                tracing::warn!(%address, "tokens and content are sent without encryption");
            }
        }
        let tasks = Tasks::new();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accepting = async {
            loop {
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                match self.accept().await {
                    Ok(stream) => {
                        let (server, tls) = (server.clone(), self.tls.clone());
                        hyper::rt::Executor::execute(&tasks.executor(), async move {
                            if let Err(error) = handle(&server, tls, stream).await {
                                tracing::debug!(%error, "a connection ended");
                            }
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            () = server.stopped().cancelled() => {}
        }
        tasks.finish(super::limits::LAST_FRAMES).await;
        Ok(())
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match &self.socket {
            Socket::Unix(listener, _) => Box::new(listener.accept().await?.0),
            Socket::Tcp(listener, _) => {
                let stream = listener.accept().await?.0;
                // Small frames are answers that somebody waits for.
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

async fn handle(server: &Server, tls: Option<ServerTls>, stream: Box<dyn Stream>) -> Result<()> {
    let Some(ServerTls(config)) = tls else { return server.serve(stream).await };
    let handshake = TlsAcceptor::from(config).accept(stream);
    let timeout = || io::Error::from(io::ErrorKind::TimedOut);
    let accepted =
        tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.unwrap_or_else(|_| Err(timeout()));
    server.serve(accepted.map_err(|error| Error::from_io("greet", "a client", error))?).await
}

/// The name of a unix socket, which goes when nobody listens there any more.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl fmt::Debug for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    // A socket that refuses is what a process that has ended left behind.
    if BlockingUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        && rustix::fs::lstat(path)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket())
    {
        std::fs::remove_file(path)?;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &address).map_err(|errno| match errno {
        rustix::io::Errno::ADDRINUSE => io::Error::from(io::ErrorKind::AlreadyExists),
        errno => errno.into(),
    })?;
    // Nobody can connect before `listen`, so the mode is never too wide.
    chmod(path, Mode::RUSR | Mode::WUSR)?;
    listen(&socket, BACKLOG)?;
    UnixListener::from_std(std::os::unix::net::UnixListener::from(socket))
}
