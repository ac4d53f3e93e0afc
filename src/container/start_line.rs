//! Tells a command's own output from what its start reports.

use bytes::Bytes;

use crate::collector::chunk;
use crate::output::OutputChunk;

/// How much of what came before the start is kept for an error message.
const MAX_WORDS: usize = 8 * 1024;

/// What the start of a command has reported so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing yet.
    Pending,
    /// The program runs or is about to.
    Started,
    /// It was not started, for this reason in the words of the script.
    Failed(String),
    /// The kernel refused the program at the last moment.
    Refused,
}

/// Watches the output of a command for the lines of its start script, which begin with a nonce
/// that no program can know beforehand, and takes them out.
#[derive(Debug)]
pub(crate) struct StartLine {
    /// `None` when no script is in between: then the program counts as started, and only the
    /// engine knows better.
    nonce: Option<Vec<u8>>,
    /// Whether the lines come on standard error, as without a terminal.
    on_stderr: bool,
    state: Start,
    /// `pid:start` of the program, in the container's numbers.
    leader: Option<String>,
    /// What came before the line on its stream: noise of the shell.
    held: Vec<u8>,
    /// The first words on either stream, in case they are the engine's.
    words: Vec<u8>,
}

impl StartLine {
    pub(crate) fn new(nonce: Option<&str>, on_stderr: bool) -> Self {
        StartLine {
            nonce: nonce.map(|nonce| nonce.as_bytes().to_vec()),
            on_stderr,
            state: if nonce.is_some() { Start::Pending } else { Start::Started },
            leader: None,
            held: Vec::new(),
            words: Vec::new(),
        }
    }

    pub(crate) fn state(&self) -> &Start {
        &self.state
    }

    /// Whether a script is in between.
    pub(crate) fn is_scripted(&self) -> bool {
        self.nonce.is_some()
    }

    pub(crate) fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// What was printed around a failed start.
    pub(crate) fn words(&self) -> String {
        let words = [self.words.as_slice(), self.held.as_slice()].concat();
        String::from_utf8_lossy(&words).trim().to_owned()
    }

    /// Takes a chunk and gives back what of it is the program's own.
    pub(crate) fn take(&mut self, taken: OutputChunk) -> Option<OutputChunk> {
        let (is_stderr, bytes) = match taken {
            OutputChunk::Stdout(bytes) => (false, bytes),
            OutputChunk::Stderr(bytes) => (true, bytes),
        };
        let own = match &self.nonce {
            Some(nonce) if is_stderr == self.on_stderr => {
                let nonce = nonce.clone();
                match self.state {
                    Start::Pending => self.before_start(&nonce, &bytes),
                    _ => self.after_start(&nonce, bytes),
                }
            }
            _ => {
                let room = MAX_WORDS.saturating_sub(self.words.len());
                if self.state == Start::Pending || self.nonce.is_none() {
                    self.words.extend_from_slice(&bytes[..room.min(bytes.len())]);
                }
                bytes
            }
        };
        (!own.is_empty()).then(|| chunk(is_stderr, own))
    }

    /// Holds everything back until the script's line is whole; what follows it is the program's.
    fn before_start(&mut self, nonce: &[u8], bytes: &[u8]) -> Bytes {
        self.held.extend_from_slice(bytes);
        let Some(at) = find(&self.held, nonce) else {
            let excess = self.held.len().saturating_sub(MAX_WORDS);
            self.held.drain(..excess);
            return Bytes::new();
        };
        let Some(end) = self.held[at..].iter().position(|byte| *byte == b'\n') else {
            return Bytes::new();
        };
        let line = String::from_utf8_lossy(&self.held[at + nonce.len()..at + end]).into_owned();
        let rest = self.held.split_off(at + end + 1);
        self.held.truncate(at);
        let mut fields = line.split_whitespace();
        match fields.next() {
            Some("ok") => {
                self.state = Start::Started;
                if let (Some(pid), Some(start)) = (fields.next(), fields.next()) {
                    self.leader = Some(format!("{pid}:{start}"));
                }
            }
            Some(reason) => self.state = Start::Failed(reason.to_owned()),
            None => self.state = Start::Failed(String::new()),
        }
        Bytes::from(rest)
    }

    /// A line after the start says that the program was refused after all. The shell writes it
    /// with one call, so it comes in one chunk.
    fn after_start(&mut self, nonce: &[u8], bytes: Bytes) -> Bytes {
        let Some(at) = find(&bytes, nonce) else { return bytes };
        self.state = Start::Refused;
        bytes.slice(..at)
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn err(text: &str) -> OutputChunk {
        OutputChunk::Stderr(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_line_is_found_in_pieces_and_the_rest_is_the_programs() {
        let mut line = StartLine::new(Some("N0"), true);
        assert_eq!(line.take(err("warning: locale\nN")), None);
        let early = OutputChunk::Stdout(Bytes::from_static(b"x"));
        assert_eq!(line.take(early.clone()), Some(early));
        assert_eq!(line.take(err("0 ok 12 3")), None);
        assert_eq!(line.state(), &Start::Pending);
        assert_eq!(line.take(err("45\nhello")), Some(err("hello")));
        assert_eq!((line.state(), line.leader()), (&Start::Started, Some("12:345")));
        assert_eq!(line.take(err("exec: bad\nN0 refused\n")), Some(err("exec: bad\n")));
        assert_eq!(line.state(), &Start::Refused);
    }

    #[test]
    fn a_failure_keeps_its_word() {
        let mut line = StartLine::new(Some("N0"), true);
        assert_eq!(line.take(err("N0 outside\n")), None);
        assert_eq!(line.state(), &Start::Failed("outside".to_owned()));
    }
}
