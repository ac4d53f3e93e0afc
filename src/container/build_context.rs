//! The context of a build: a directory as a tar stream, without what `.dockerignore` leaves out.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::Stream;
use globset::{GlobBuilder, GlobMatcher};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// How many pieces of the archive may wait for the engine.
const QUEUE: usize = 16;

/// How large a piece is.
const PIECE: usize = 64 * 1024;

/// The rules of a `.dockerignore`.
///
/// Each line is one pattern, relative to the context: `*`, `?` and `[..]` within one component,
/// `**` across them; a leading `!` takes back; the last that matches decides. A pattern that
/// matches a directory covers what is below it.
#[derive(Debug, Default)]
pub(super) struct Ignore {
    rules: Vec<Rule>,
    /// The Dockerfile and `.dockerignore` itself always go along, since the builder reads them.
    always: [String; 2],
}

#[derive(Debug)]
struct Rule {
    matcher: GlobMatcher,
    takes_back: bool,
}

impl Ignore {
    /// Reads `<Dockerfile>.dockerignore`, or else `.dockerignore`, of a context.
    pub(super) fn read(context: &Path, dockerfile: &str) -> Result<Ignore> {
        let own = format!("{dockerfile}.dockerignore");
        for name in [own.as_str(), ".dockerignore"] {
            match fs::read_to_string(context.join(name)) {
                Ok(text) => return Ignore::parse(&text, dockerfile),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::from_io("read", name, error)),
            }
        }
        Ignore::parse("", dockerfile)
    }

    fn parse(text: &str, dockerfile: &str) -> Result<Ignore> {
        let mut rules = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (takes_back, pattern) = match line.strip_prefix('!') {
                Some(pattern) => (true, pattern.trim()),
                None => (false, line),
            };
            let pattern: Vec<&str> =
                pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
            if pattern.is_empty() {
                continue;
            }
            let glob = GlobBuilder::new(&pattern.join("/")).literal_separator(true).build();
            let matcher = glob
                .map_err(|error| Error::InvalidArgument { reason: format!("in .dockerignore: {error}") })?
                .compile_matcher();
            rules.push(Rule { matcher, takes_back });
        }
        Ok(Ignore { rules, always: [dockerfile.to_owned(), ".dockerignore".to_owned()] })
    }

    /// Whether a name relative to the context is left out.
    fn leaves_out(&self, name: &Path) -> bool {
        if self.always.iter().any(|always| name == Path::new(always)) {
            return false;
        }
        let matches = |rule: &Rule| {
            name.ancestors()
                .filter(|part| !part.as_os_str().is_empty())
                .any(|part| rule.matcher.is_match(part))
        };
        self.rules.iter().rev().find(|rule| matches(rule)).is_some_and(|rule| !rule.takes_back)
    }

    /// Whether something below a directory that is left out may still be taken back.
    fn may_take_back(&self, dir: &Path) -> bool {
        self.rules.iter().any(|rule| rule.takes_back)
            || self.always.iter().any(|always| Path::new(always).starts_with(dir))
    }
}

/// The archive as a stream, and how its making ended.
pub(super) fn stream(
    context: PathBuf,
    ignore: Ignore,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, JoinHandle<Result<()>>) {
    let (sender, mut receiver) = mpsc::channel(QUEUE);
    let archived = tokio::task::spawn_blocking(move || {
        let writer = io::BufWriter::with_capacity(PIECE, Pieces(sender.clone()));
        archive(&context, &ignore, writer).inspect_err(|error| {
            // It fails only when nobody reads, who then knows.
            let _unread = sender.blocking_send(Err(io::Error::other(error.to_string())));
        })
    });
    (futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)), archived)
}

/// Sends what is written.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn archive(context: &Path, ignore: &Ignore, writer: impl Write) -> Result<()> {
    let mut builder = tar::Builder::new(writer);
    builder.follow_symlinks(false);
    builder.sparse(false);
    add_directory(&mut builder, context, Path::new(""), ignore)?;
    let failed = |error| Error::from_io("archive", "the build context", error);
    builder.into_inner().and_then(|mut writer| writer.flush()).map_err(failed)
}

/// Adds what is in a directory, in the order of names, so that the same context is the same
/// archive.
fn add_directory(
    builder: &mut tar::Builder<impl Write>,
    context: &Path,
    dir: &Path,
    ignore: &Ignore,
) -> Result<()> {
    let failed = |path: &Path, error| Error::from_io("archive", &path.display().to_string(), error);
    let path = context.join(dir);
    let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| failed(&path, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = dir.join(entry.file_name());
        let kind = entry.file_type().map_err(|error| failed(&name, error))?;
        let left_out = ignore.leaves_out(&name);
        let is_directory = kind.is_dir();
        // A socket, FIFO or device of the context means nothing to a build.
        let is_special = !(is_directory || kind.is_file() || kind.is_symlink());
        if !left_out && !is_special {
            builder.append_path_with_name(entry.path(), &name).map_err(|error| failed(&name, error))?;
        }
        if is_directory && (!left_out || ignore.may_take_back(&name)) {
            add_directory(builder, context, &name, ignore)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(rules: &str, name: &str) -> bool {
        Ignore::parse(rules, "Dockerfile").unwrap().leaves_out(Path::new(name))
    }

    #[test]
    fn patterns_follow_dockerignore() {
        assert!(left_out("target", "target/debug/x"));
        assert!(left_out("/target/", "target"));
        assert!(!left_out("target", "a/target"));
        assert!(left_out("**/target", "a/b/target/x"));
        assert!(left_out("*.log", "a.log"));
        assert!(!left_out("*.log", "a/b.log"));
        assert!(left_out("# not\n*\n!src", "README.md"));
        assert!(!left_out("*\n!src", "src/main.rs"));
        assert!(left_out("*\n!src\nsrc/secret", "src/secret"));
        assert!(!left_out("*", "Dockerfile"));
    }

    #[test]
    fn an_archive_holds_what_is_not_left_out_and_links_as_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/keep"), "k").unwrap();
        fs::write(dir.path().join("a/drop"), "d").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let ignore = Ignore::parse("a\n!a/b", "Dockerfile").unwrap();
        let mut bytes = Vec::new();
        archive(dir.path(), &ignore, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names: Vec<(String, bool)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let is_link = entry.header().entry_type().is_symlink();
                (entry.path().unwrap().display().to_string(), is_link)
            })
            .collect();
        let expected = [("a/b".to_owned(), false), ("a/b/keep".to_owned(), false), ("link".to_owned(), true)];
        assert_eq!(
            names.iter().map(|(n, l)| (n.trim_end_matches('/').to_owned(), *l)).collect::<Vec<_>>(),
            expected
        );
    }
}
