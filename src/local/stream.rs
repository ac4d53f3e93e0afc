//! Bytes handed from blocking code to an async reader, piece by piece.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

use super::feed::PIECE_BYTES;
use super::tasks::Stop;
use crate::error::{Error, GoneReason};

/// How many pieces wait between the two sides, 1 MiB in all.
const PIECES: usize = 4;

enum Piece {
    Data(Bytes),
    Failed(Error),
    End,
}

/// The blocking end before it is in use.
pub(super) struct StreamSender(mpsc::Sender<Piece>);

/// The blocking end, which collects what is written into pieces.
pub(super) struct StreamWriter {
    buffer: Vec<u8>,
    pieces: mpsc::Sender<Piece>,
    stop: Stop,
}

/// The async end. It ends only where the writer finished; a writer that vanished is an error.
pub(super) struct StreamReader {
    current: Bytes,
    pieces: mpsc::Receiver<Piece>,
    ended: bool,
}

/// A bounded stream from blocking to async code.
pub(super) fn stream() -> (StreamSender, StreamReader) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (StreamSender(sender), StreamReader { current: Bytes::new(), pieces: receiver, ended: false })
}

impl StreamSender {
    /// The end for blocking code, which gives up when it is told to stop.
    pub(super) fn writer(self, stop: &Stop) -> StreamWriter {
        StreamWriter { buffer: Vec::with_capacity(PIECE_BYTES), pieces: self.0, stop: stop.clone() }
    }
}

impl StreamWriter {
    /// Sends what is left, and that it is all.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.send(Piece::End)
    }

    /// Ends the stream with an error. That nobody listens is none.
    pub(super) fn fail(&self, error: Error) {
        let _ = self.send(Piece::Failed(error));
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        // The reader was dropped, which is how a caller says that it wants no more.
        let sent = self.stop.wait(self.pieces.send(piece))?;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for StreamWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == PIECE_BYTES {
            self.flush()?;
        }
        let taken = data.len().min(PIECE_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&data[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES));
        self.send(Piece::Data(piece.into()))
    }
}

impl AsyncRead for StreamReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() && !self.ended {
            match ready!(self.pieces.poll_recv(cx)) {
                Some(Piece::Data(data)) => self.current = data,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Failed(error)) => return Poll::Ready(Err(error.into())),
                None => {
                    let detail = "the archive was given up before its end".to_owned();
                    return Poll::Ready(Err(Error::Gone { why: GoneReason::Other { detail } }.into()));
                }
            }
        }
        let size = self.current.len().min(buf.remaining());
        buf.put_slice(&self.current[..size]);
        self.current.advance(size);
        Poll::Ready(Ok(()))
    }
}
