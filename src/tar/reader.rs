//! Reading an archive, entry by entry.

use super::header::{self, Header};
use super::member::{Member, MemberKind};
use super::pax::{self, Pax};
use super::sparse::{MAX_PARTS, Map, Part};
use super::{BLOCK, Time};
use crate::error::{Error, Result};
use crate::files::escape_bytes;

/// The longest extended header and the longest name that is read, in bytes: Linux has no names
/// over 4 KiB, and maps of sparse files fit.
const MAX_EXTENSION_BYTES: u64 = 1 << 20;

/// How much is read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// How compressed streams begin.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// A tar stream.
pub(crate) struct TarReader<F> {
    /// Gives the next bytes of the stream; none at its end.
    source: F,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// What is left of the current entry, padding included.
    left: u64,
    padding: u64,
    globals: Pax,
    /// The name of the current entry, for errors.
    current: String,
    first: bool,
}

impl<F: FnMut(&mut [u8]) -> Result<usize>> TarReader<F> {
    pub(crate) fn new(source: F) -> Self {
        TarReader {
            source,
            buffer: vec![0; PIECE_BYTES],
            start: 0,
            end: 0,
            left: 0,
            padding: 0,
            globals: Pax::default(),
            current: String::new(),
            first: true,
        }
    }

    /// The next entry; `None` after the archive's end mark, when all content has been read.
    pub(crate) fn next(&mut self) -> Result<Option<Member>> {
        self.skip_rest()?;
        self.current.clear();
        let mut pax = self.globals.clone();
        let (mut long_name, mut long_link) = (None, None);
        loop {
            let Some(header) = self.header()? else {
                while !self.fill()?.is_empty() {
                    self.start = self.end;
                }
                return Ok(None);
            };
            let size = header.size().ok_or_else(|| self.broken("its size is not a number"))?;
            match header.kind() {
                b'x' | b'X' => self.extension(size).and_then(|data| self.records(&mut pax, &data))?,
                b'g' => {
                    let data = self.extension(size)?;
                    let mut globals = std::mem::take(&mut self.globals);
                    self.records(&mut globals, &data)?;
                    self.globals = globals;
                    pax = self.globals.clone();
                }
                b'L' => long_name = Some(until_nul(self.extension(size)?)),
                b'K' => long_link = Some(until_nul(self.extension(size)?)),
                // A volume label says nothing about a file.
                b'V' => self.enter(size),
                _ => return self.member(&header, size, pax, long_name, long_link).map(Some),
            }
            self.skip_rest()?;
        }
    }

    /// Puts the headers of an entry together.
    fn member(
        &mut self,
        header: &Header,
        size: u64,
        pax: Pax,
        long_name: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
    ) -> Result<Member> {
        let name = pax.sparse.name.clone().or_else(|| pax.path.clone()).or(long_name);
        let name = name.unwrap_or_else(|| header.name());
        self.current = escape_bytes(&name);
        let kind = match header.kind() {
            // Old archives mark a directory by the end of its name alone.
            0 | b'0' | b'7' if name.ends_with(b"/") => MemberKind::Directory,
            0 | b'0' | b'7' | b'S' => MemberKind::File,
            b'1' => MemberKind::HardLink,
            b'2' => MemberKind::Symlink,
            b'5' => MemberKind::Directory,
            other => MemberKind::Other(other),
        };
        let stored = pax.size.unwrap_or(size);
        self.enter(stored);
        let (map, size) = self.map(header, &pax, stored)?;
        let modified = match pax.modified {
            Some(time) => time,
            None => {
                let seconds = header.modified().ok_or_else(|| self.broken("its time is not a number"))?;
                Time { seconds, nanos: 0 }
            }
        };
        Ok(Member {
            name,
            kind,
            link: pax.link.or(long_link).unwrap_or_else(|| header.link().to_vec()),
            mode: header.mode().ok_or_else(|| self.broken("its mode is not a number"))? & 0o7777,
            modified,
            owner: (pax.uid.unwrap_or_else(|| header.uid()), pax.gid.unwrap_or_else(|| header.gid())),
            size,
            map,
        })
    }

    /// Which parts of the file are stored, and its real size.
    fn map(&mut self, header: &Header, pax: &Pax, stored: u64) -> Result<(Map, u64)> {
        let bad = "its map of data and holes is malformed";
        if header.kind() == b'S' {
            let (mut parts, mut more, size) = header.sparse().ok_or_else(|| self.broken(bad))?;
            while more {
                // These blocks are not part of the stored size.
                let block = self.block()?.ok_or_else(|| self.truncated())?;
                let entries = header::sparse_entries(&block[..504]);
                parts.extend(entries.ok_or_else(|| self.broken(bad))?);
                more = block[504] != 0;
                if parts.len() > MAX_PARTS {
                    return Err(self.broken("it has too many holes"));
                }
            }
            let map = Map::checked(parts, size, stored).ok_or_else(|| self.broken(bad))?;
            return Ok((map, size));
        }
        if !pax.sparse.is_some() {
            return Ok((Map::whole(stored), stored));
        }
        if pax.sparse.unknown {
            return Err(self.broken("its kind of sparse file is not known"));
        }
        let size = pax.sparse.real_size.ok_or_else(|| self.broken(bad))?;
        let parts = match &pax.sparse.map {
            _ if pax.sparse.map_in_data => self.map_in_data()?,
            Some(numbers) => Map::pairs(numbers).ok_or_else(|| self.broken(bad))?,
            None => return Err(self.broken(bad)),
        };
        let map = Map::checked(parts, size, self.left).ok_or_else(|| self.broken(bad))?;
        Ok((map, size))
    }

    /// Reads the map at the start of the data: a count and pairs, one decimal number a line,
    /// padded to a whole block.
    fn map_in_data(&mut self) -> Result<Vec<Part>> {
        let bad = "its map of data and holes is malformed";
        let mut text = Vec::new();
        let mut numbers = Vec::new();
        let mut wanted = 1;
        while numbers.len() < wanted {
            if self.left < BLOCK as u64 {
                return Err(self.broken(bad));
            }
            let block = self.block()?.ok_or_else(|| self.truncated())?;
            self.left -= BLOCK as u64;
            for byte in block {
                match byte {
                    b'\n' if numbers.len() < wanted => {
                        numbers.push(pax::decimal(&text).ok_or_else(|| self.broken(bad))?);
                        text.clear();
                    }
                    _ if numbers.len() < wanted => text.push(byte),
                    _ => {}
                }
                if numbers.len() == 1 && wanted == 1 {
                    let count = usize::try_from(numbers[0]).unwrap_or(usize::MAX);
                    if count > MAX_PARTS {
                        return Err(self.broken("it has too many holes"));
                    }
                    wanted = 1 + 2 * count;
                }
            }
            if text.len() > BLOCK {
                return Err(self.broken(bad));
            }
        }
        Map::pairs(&numbers[1..]).ok_or_else(|| self.broken(bad))
    }

    /// Gives the stored parts of the current entry to `take`, with where they belong.
    pub(crate) fn data(
        &mut self,
        member: &Member,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for (mut offset, mut length) in member.map.0.iter().copied() {
            while length > 0 {
                let piece = self.fill()?;
                if piece.is_empty() {
                    return Err(self.truncated());
                }
                let size = piece.len().min(usize::try_from(length).unwrap_or(usize::MAX));
                take(offset, &piece[..size])?;
                self.start += size;
                self.left = self.left.saturating_sub(size as u64);
                offset += size as u64;
                length -= size as u64;
            }
        }
        Ok(())
    }

    /// The next block as a header; `None` at the end mark.
    fn header(&mut self) -> Result<Option<Header>> {
        let first = std::mem::take(&mut self.first);
        if first {
            while self.end < BLOCK && self.more()? {}
            let start = &self.buffer[..self.end];
            let compressed = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic));
            let is_header = start.first_chunk().is_some_and(|block| Header::parse(*block).is_some());
            if let Some((_, how)) = compressed.filter(|_| !is_header) {
                return Err(self.broken(&format!("the stream is compressed with {how}; decompress it first")));
            }
        }
        let Some(block) = self.block()? else {
            return Err(self.broken("the archive ends without its end mark; it is cut off or no tar stream"));
        };
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        match Header::parse(block) {
            Some(header) => Ok(Some(header)),
            None if first => Err(self.broken("the stream is not a tar archive")),
            None => Err(self.broken("a header's checksum is wrong")),
        }
    }

    /// The data of an extended header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > MAX_EXTENSION_BYTES {
            return Err(self.broken("an extended header is larger than 1 MiB"));
        }
        self.enter(size);
        let mut data = Vec::new();
        while self.left > 0 {
            let left = usize::try_from(self.left).unwrap_or(usize::MAX);
            let piece = self.fill()?;
            if piece.is_empty() {
                return Err(self.truncated());
            }
            let take = piece.len().min(left);
            data.extend_from_slice(&piece[..take]);
            self.start += take;
            self.left -= take as u64;
        }
        Ok(data)
    }

    fn records(&self, pax: &mut Pax, data: &[u8]) -> Result<()> {
        pax.read(data).ok_or_else(|| self.broken("an extended header is malformed"))
    }

    /// Begins data of `size` bytes.
    fn enter(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// Goes to the next header.
    fn skip_rest(&mut self) -> Result<()> {
        let mut rest = self.left.saturating_add(std::mem::take(&mut self.padding));
        self.left = 0;
        while rest > 0 {
            let piece = self.fill()?.len();
            if piece == 0 {
                return Err(self.truncated());
            }
            let skip = piece.min(usize::try_from(rest).unwrap_or(usize::MAX));
            self.start += skip;
            rest -= skip as u64;
        }
        Ok(())
    }

    /// One whole block; `None` at the end of the stream.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            let piece = self.fill()?;
            if piece.is_empty() {
                return if filled == 0 { Ok(None) } else { Err(self.truncated()) };
            }
            let take = piece.len().min(BLOCK - filled);
            block[filled..filled + take].copy_from_slice(&piece[..take]);
            self.start += take;
            filled += take;
        }
        Ok(Some(block))
    }

    /// What is buffered, read on when that is nothing; empty at the end.
    fn fill(&mut self) -> Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.more()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Reads behind what is buffered; whether there was more.
    fn more(&mut self) -> Result<bool> {
        let read = (self.source)(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read > 0)
    }

    fn truncated(&self) -> Error {
        self.broken("the archive is cut off in the middle of it")
    }

    fn broken(&self, reason: &str) -> Error {
        Error::Archive { entry: self.current.clone(), reason: reason.to_owned() }
    }
}

/// A name of GNU's extension, which ends with a NUL.
fn until_nul(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.iter().position(|byte| *byte == 0) {
        name.truncate(end);
    }
    name
}
