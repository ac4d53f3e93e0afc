//! Frames: what is sent piece by piece in one body beside other things.
//!
//! A frame is its type (1 byte), the length of its payload (4 bytes, big endian) and the payload:
//! raw bytes or a JSON document.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::error::WireError;
use super::incoming::BodyReader;
use super::limits::{MAX_FRAME_BYTES, MAX_JSON_BYTES};
use crate::error::{Error, Result};

/// The first answer: what there is to know before anything else.
pub(super) const HEAD: u8 = 1;
/// Raw bytes of standard output.
pub(super) const STDOUT: u8 = 2;
/// Raw bytes of standard error.
pub(super) const STDERR: u8 = 3;
/// The last frame when all went well.
pub(super) const END: u8 = 4;
/// An error. The last frame, but for a process that can be waited for again.
pub(super) const ERROR: u8 = 5;
/// Entries of a directory.
pub(super) const ENTRIES: u8 = 6;
/// The outcome of one operation of a batch.
pub(super) const RESULT: u8 = 7;
/// Raw bytes of a file, which the result before them announced.
pub(super) const DATA: u8 = 8;

const HEADER_BYTES: usize = 5;

/// Raw bytes of at most [`MAX_FRAME_BYTES`] as a frame, in one piece when they are few.
pub(super) fn data(kind: u8, payload: Bytes) -> [Bytes; 2] {
    const FEW: usize = 4096;
    let mut frame =
        BytesMut::with_capacity(HEADER_BYTES + if payload.len() <= FEW { payload.len() } else { 0 });
    frame.put_u8(kind);
    frame.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    if payload.len() <= FEW {
        frame.extend_from_slice(&payload);
        return [frame.freeze(), Bytes::new()];
    }
    [frame.freeze(), payload]
}

/// A JSON document as a frame.
pub(super) fn json(kind: u8, value: &impl Serialize) -> Bytes {
    let payload = serde_json::to_vec(value).unwrap_or_default();
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    frame.put_u8(kind);
    frame.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    frame.extend_from_slice(&payload);
    frame.freeze()
}

/// Sends frames into a body. Once nobody wants the body any more, its task is about to be ended,
/// and sending says nothing.
#[derive(Clone, Debug)]
pub(super) struct FrameSender(pub(super) mpsc::Sender<Bytes>);

impl FrameSender {
    pub(super) async fn data(&self, kind: u8, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let payload = bytes.split_to(bytes.len().min(MAX_FRAME_BYTES));
            for piece in data(kind, payload) {
                if !piece.is_empty() {
                    let _ = self.0.send(piece).await;
                }
            }
        }
    }

    pub(super) async fn json(&self, kind: u8, value: &impl Serialize) {
        let _ = self.0.send(json(kind, value)).await;
    }

    pub(super) async fn error(&self, error: &Error) {
        self.json(ERROR, &WireError::from(error)).await;
    }
}

/// One frame, or a part of one with raw bytes.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    payload: Bytes,
}

impl Frame {
    pub(super) fn into_bytes(self) -> Bytes {
        self.payload
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> std::result::Result<T, serde_json::Error> {
        serde_json::from_slice(&self.payload)
    }
}

/// Reads frames out of a body.
#[derive(Debug)]
pub(super) struct FrameReader {
    body: BodyReader,
    header: BytesMut,
    /// How many bytes of the current payload are still to come.
    left: usize,
    /// The document so far.
    document: BytesMut,
}

impl FrameReader {
    pub(super) fn new(body: BodyReader) -> Self {
        FrameReader { body, header: BytesMut::new(), left: 0, document: BytesMut::new() }
    }

    /// The next frame of a type that this build knows. Raw bytes may come in several parts.
    ///
    /// # Errors
    ///
    /// What the body reports; that it is cut when it ends, since the last frame says that it is
    /// the last.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Frame> {
        loop {
            if self.left == 0 {
                self.read_header().await?;
            }
            let kind = self.header[0];
            let is_data = matches!(kind, STDOUT | STDERR | DATA);
            let is_document = matches!(kind, HEAD | END | ERROR | ENTRIES | RESULT);
            while self.left > 0 {
                let piece = self.body.piece(self.left).await?;
                if piece.is_empty() {
                    return Err(self.body.cut());
                }
                self.left -= piece.len();
                if is_data {
                    return Ok(Frame { kind, payload: piece });
                }
                if is_document {
                    self.document.extend_from_slice(&piece);
                }
            }
            if is_document {
                return Ok(Frame { kind, payload: self.document.split().freeze() });
            }
        }
    }

    async fn read_header(&mut self) -> Result<()> {
        if self.header.len() == HEADER_BYTES {
            self.header.clear();
        }
        while self.header.len() < HEADER_BYTES {
            let piece = self.body.piece(HEADER_BYTES - self.header.len()).await?;
            if piece.is_empty() {
                return Err(self.body.cut());
            }
            self.header.extend_from_slice(&piece);
        }
        let length = self.header[1..].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let limit =
            if matches!(self.header[0], STDOUT | STDERR | DATA) { MAX_FRAME_BYTES } else { MAX_JSON_BYTES };
        if length > limit {
            return Err(self.body.broken(format!("a frame of {length} bytes, more than {limit}")));
        }
        self.left = length;
        Ok(())
    }

    /// The error of a peer that does not keep to the protocol.
    pub(super) fn broken(&mut self, what: impl Into<String>) -> Error {
        self.body.broken(what.into())
    }
}
