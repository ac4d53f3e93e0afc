//! Content handed from async code to blocking code, piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::tasks::Stop;
use crate::error::{Error, Result};
use crate::files::Content;

/// How much is read at once.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

/// How many pieces wait between the two sides: enough to keep both busy, 1 MiB in all.
const PIECES: usize = 4;

/// Content as blocking code reads it.
pub(super) enum Source {
    /// It is in memory.
    Bytes(Bytes),
    /// It comes from async code.
    Pieces(Pieces),
    /// Another file of the workspace.
    File(io::Take<File>),
}

/// The future that reads async content into its [`Source`].
pub(super) type Filling = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Piece {
    Data(Bytes),
    Failed(io::Error),
    End,
}

/// The blocking end of a [`Filling`].
pub(super) struct Pieces {
    pieces: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

/// Splits content into what blocking code reads and what has to be polled meanwhile.
pub(super) fn feed(content: Content) -> (Source, Option<Filling>) {
    match content.into_bytes() {
        Ok(bytes) => (Source::Bytes(bytes), None),
        Err(content) => {
            let (sender, pieces) = mpsc::channel(PIECES);
            let filling = Box::pin(fill(content.into_reader(), sender));
            (Source::Pieces(Pieces { pieces, current: Bytes::new(), ended: false }), Some(filling))
        }
    }
}

async fn fill(mut reader: Pin<Box<dyn AsyncRead + Send>>, sender: mpsc::Sender<Piece>) {
    loop {
        let mut data = BytesMut::with_capacity(PIECE_BYTES);
        let piece = match reader.read_buf(&mut data).await {
            Ok(0) => Piece::End,
            Ok(_) => Piece::Data(data.freeze()),
            Err(e) => Piece::Failed(e),
        };
        let last = !matches!(piece, Piece::Data(_));
        // A failed send means that the blocking side has given up and says why itself.
        if sender.send(piece).await.is_err() || last {
            return;
        }
    }
}

impl Pieces {
    fn read(&mut self, buf: &mut [u8], stop: &Stop) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match stop.wait(self.pieces.recv())? {
                Some(Piece::Data(data)) => self.current = data,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Failed(e)) => return Err(e),
                // The filling was dropped in the middle, and with it the caller's future.
                None => return Err(Error::Closed.into()),
            }
        }
        Ok(take(&mut self.current, buf))
    }
}

/// Moves the start of `bytes` into `buf`.
fn take(bytes: &mut Bytes, buf: &mut [u8]) -> usize {
    let size = bytes.len().min(buf.len());
    bytes.copy_to_slice(&mut buf[..size]);
    size
}

impl Source {
    /// The next piece into `buf`; 0 at the end. An error is the content's own, so whatever its
    /// kind it says nothing about the name it was meant for.
    pub(super) fn next(&mut self, buf: &mut [u8], path: &str, stop: &Stop) -> Result<usize> {
        loop {
            stop.check()?;
            let read = match self {
                Source::Bytes(bytes) => Ok(take(bytes, buf)),
                Source::Pieces(pieces) => pieces.read(buf, stop),
                Source::File(file) => file.read(buf),
            };
            match read {
                Ok(read) => return Ok(read),
                Err(e) if e.kind() == io::ErrorKind::Interrupted && e.get_ref().is_none() => {}
                Err(e) if e.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
                    return Err(Error::from_io("read", path, e));
                }
                Err(source) => {
                    let operation = "read the content for".into();
                    return Err(Error::Io { operation, path: path.to_owned(), source });
                }
            }
        }
    }
}
