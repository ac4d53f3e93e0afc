//! Bearer tokens: who may do what, and until when.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use subtle::ConstantTimeEq as _;

use super::grant::{Authorize, Grant, Scopes};
use crate::error::{Error, Result};

/// The shortest token: 96 bits in base64.
const MIN_TOKEN_BYTES: usize = 16;

/// The tokens that a server accepts.
///
/// They are compared in constant time and show in no debug output.
#[derive(Debug)]
pub struct Tokens {
    source: Source,
    /// Names the holder of a token without showing it.
    identity: RandomState,
}

#[derive(Debug)]
enum Source {
    Fixed(Vec<Token>),
    File { path: PathBuf, state: Mutex<(Option<Stamp>, Vec<Token>)> },
}

#[derive(Clone)]
struct Token {
    secret: String,
    scopes: Scopes,
    expires: Option<SystemTime>,
}

/// What changes whenever a file does: device, number, size, and when content and status changed.
type Stamp = (u64, u64, u64, [i64; 4]);

impl Tokens {
    /// One token.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for one that is shorter than 16 characters, or holds anything
    /// but printable ASCII without spaces.
    pub fn single(token: &str, scopes: Scopes) -> Result<Tokens> {
        let token = Token { secret: checked(token)?, scopes, expires: None };
        Ok(Tokens::new(Source::Fixed(vec![token])))
    }

    /// The tokens in a file, which is read again whenever it changes.
    ///
    /// Each line is a token, its scopes and, if it expires, when:
    /// `TOKEN read,write,exec 2027-01-31T00:00:00Z`. Lines that are empty or begin with `#` mean
    /// nothing. While the file cannot be read or understood nobody is let in.
    ///
    /// # Errors
    ///
    /// What reading the file reports; [`Error::InvalidArgument`] naming the line that is wrong,
    /// without showing it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Tokens> {
        let path = path.as_ref().to_owned();
        let stamp = stamp(&path);
        let tokens = read(&path)?;
        let state = Mutex::new((stamp, tokens));
        Ok(Tokens::new(Source::File { path, state }))
    }

    fn new(source: Source) -> Self {
        Tokens { source, identity: RandomState::new() }
    }

    /// The scopes of a token among these, at this time.
    fn find(tokens: &[Token], given: &str, now: SystemTime) -> Option<Scopes> {
        let mut found = None;
        // Every token is looked at, so that the time taken tells nothing about which one it is.
        for token in tokens {
            let same = bool::from(token.secret.as_bytes().ct_eq(given.as_bytes()));
            if same && token.expires.is_none_or(|expires| now < expires) {
                found = Some(token.scopes);
            }
        }
        found
    }
}

impl Authorize for Tokens {
    fn authorize(&self, token: Option<&str>) -> Option<Grant> {
        let (token, now) = (token?, SystemTime::now());
        let scopes = match &self.source {
            Source::Fixed(tokens) => Tokens::find(tokens, token, now),
            Source::File { path, state } => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let found = stamp(path);
                if found.is_none() || found != state.0 {
                    let tokens = read(path).unwrap_or_else(|error| {
                        tracing::error!(%error, "the tokens cannot be read, so nobody is let in");
                        Vec::new()
                    });
                    *state = (found, tokens);
                }
                Tokens::find(&state.1, token, now)
            }
        };
        scopes.map(|scopes| Grant { identity: self.identity.hash_one(token), scopes })
    }

    fn is_open(&self) -> bool {
        false
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    Some((found.dev(), found.ino(), found.size(), times))
}

fn read(path: &Path) -> Result<Vec<Token>> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::from_io("read the tokens in", &path.to_string_lossy(), error))?;
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            parse(line).map_err(|error| Error::InvalidArgument {
                reason: format!("line {} of `{}`: {error}", index + 1, path.display()),
            })
        })
        .collect()
}

fn parse(line: &str) -> Result<Token> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (secret, scopes, expires) = match fields[..] {
        [secret, scopes] => (secret, scopes, None),
        [secret, scopes, expires] => (secret, scopes, Some(expires)),
        _ => {
            let reason = "it is not `TOKEN SCOPES [EXPIRY]`".to_owned();
            return Err(Error::InvalidArgument { reason });
        }
    };
    let expires = expires.map(humantime::parse_rfc3339).transpose().map_err(|_| Error::InvalidArgument {
        reason: "its expiry is not a time such as 2027-01-31T00:00:00Z".to_owned(),
    })?;
    Ok(Token { secret: checked(secret)?, scopes: scopes.parse()?, expires })
}

fn checked(token: &str) -> Result<String> {
    if token.len() < MIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason =
            format!("a token has at least {MIN_TOKEN_BYTES} printable ASCII characters and no space");
        return Err(Error::InvalidArgument { reason });
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "one-one-one-one-one";
    const TWO: &str = "two-two-two-two-two";

    fn scopes(tokens: &Tokens, token: &str) -> Option<String> {
        tokens.authorize(Some(token)).map(|grant| grant.scopes.to_string())
    }

    #[test]
    fn a_file_is_read_again_when_it_changes_and_admits_nobody_when_it_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        fs::write(&path, format!("# ours\n\n{ONE} read,exec\n{TWO} write 2001-01-01T00:00:00Z\n")).unwrap();
        let tokens = Tokens::from_file(&path).unwrap();
        assert_eq!(scopes(&tokens, ONE).as_deref(), Some("read,exec"));
        assert_eq!(scopes(&tokens, TWO), None, "it has expired");
        assert_eq!(scopes(&tokens, &ONE[1..]), None);
        assert!(tokens.authorize(None).is_none());

        fs::write(&path, format!("{TWO} write 2999-01-01T00:00:00Z\n")).unwrap();
        assert_eq!((scopes(&tokens, ONE), scopes(&tokens, TWO).as_deref()), (None, Some("write")));
        fs::write(&path, format!("{TWO} write\nbroken\n")).unwrap();
        assert_eq!(scopes(&tokens, TWO), None);
        fs::remove_file(&path).unwrap();
        assert_eq!(scopes(&tokens, TWO), None);
        fs::write(&path, format!("{ONE} read\n")).unwrap();
        assert_eq!(scopes(&tokens, ONE).as_deref(), Some("read"));
    }

    #[test]
    fn what_is_wrong_is_named_without_showing_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        for line in ["short read", ONE, &format!("{ONE} all"), &format!("{ONE} read soon")] {
            fs::write(&path, format!("# ours\n{line}\n")).unwrap();
            let error = Tokens::from_file(&path).unwrap_err().to_string();
            assert!(error.contains("line 2") && !error.contains(ONE), "{error}");
        }
        let shown = format!("{:?}", Tokens::single(ONE, Scopes::all()).unwrap());
        assert!(!shown.contains(ONE), "{shown}");
        assert!(Tokens::single("short", Scopes::all()).is_err());
    }
}
