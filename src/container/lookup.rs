//! What a path stands for in a container, by the engine's `HEAD` on the archive.

use bollard::container::PathStatResponse;
use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;

use super::engine::{CALL_TIMEOUT, Engine};
use crate::error::{Error, Result};

/// How many links are followed before they count as a loop, as in Linux.
pub(crate) const MAX_LINKS: usize = 40;

/// The bits of the `mode` in the engine's answer, which is Go's `os.FileMode` and not `st_mode`.
const GO_DIRECTORY: u32 = 1 << 31;
const GO_SYMLINK: u32 = 1 << 27;
/// Directory, symbolic link, device, named pipe, socket, character device, irregular.
const GO_TYPE: u32 = GO_DIRECTORY | GO_SYMLINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19;

/// What a path without links stands for.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The path, without a link in any component.
    pub(crate) path: String,
    mode: u32,
    /// In bytes.
    pub(crate) size: u64,
}

impl Found {
    pub(crate) fn is_directory(&self) -> bool {
        self.mode & GO_DIRECTORY != 0
    }

    pub(crate) fn is_executable_file(&self) -> bool {
        self.mode & GO_TYPE == 0 && self.mode & 0o111 != 0
    }
}

impl Engine {
    /// What is at an absolute path of a container, following links; `None` when nothing is.
    ///
    /// The path is walked from the top, one `HEAD` a component, since the engine itself follows
    /// all links but the last without saying so.
    pub(crate) async fn look_up(&self, container: &str, path: &str) -> Result<Option<Found>> {
        let mut found = Found { path: "/".to_owned(), mode: GO_DIRECTORY | 0o755, size: 0 };
        let mut followed = 0;
        let mut left: Vec<String> = components(path);
        while let Some(name) = left.pop() {
            if !found.is_directory() {
                return Ok(None);
            }
            let here = join(&found.path, &name);
            let Some(stat) = self.stat(container, &here).await? else { return Ok(None) };
            if stat.file_mode & GO_SYMLINK == 0 {
                let size = u64::try_from(stat.size).unwrap_or(0);
                found = Found { path: here, mode: stat.file_mode, size };
                continue;
            }
            followed += 1;
            if followed > MAX_LINKS {
                return Err(Error::TooManyLinks { path: path.to_owned() });
            }
            // The engine answers the target as an absolute path inside the container.
            left.extend(components(&stat.link_target));
            found = Found { path: "/".to_owned(), mode: GO_DIRECTORY | 0o755, size: 0 };
        }
        Ok(Some(found))
    }

    /// How many components of an absolute path are directories of a container, from the top.
    ///
    /// A link among them is [`Error::InvalidArgument`], anything else [`Error::NotADirectory`].
    pub(crate) async fn existing_directories(&self, container: &str, path: &str) -> Result<usize> {
        let mut here = String::new();
        let mut count = 0;
        for name in components(path).into_iter().rev() {
            here = join(&here, &name);
            match self.stat(container, &here).await? {
                None => break,
                Some(stat) if stat.file_mode & GO_SYMLINK != 0 => {
                    return Err(Error::InvalidArgument { reason: format!("`{here}` is a symbolic link") });
                }
                Some(stat) if stat.file_mode & GO_DIRECTORY == 0 => {
                    return Err(Error::NotADirectory { path: here });
                }
                Some(_) => count += 1,
            }
        }
        Ok(count)
    }

    /// What is at an absolute path of a container whose parent is a directory without links; a link
    /// in its last component is not followed.
    ///
    /// One that leads to itself is [`Error::TooManyLinks`]: the engine looks where it leads, and
    /// answers 500 without a word.
    pub(crate) async fn stat(&self, container: &str, path: &str) -> Result<Option<PathStatResponse>> {
        let options = ContainerArchiveInfoOptionsBuilder::default().path(path).build();
        let call = self.docker().get_container_archive_info(container, Some(options));
        match self.call("look up a path in the container", CALL_TIMEOUT, call).await {
            Ok(stat) => Ok(Some(stat)),
            Err(Error::Engine { status: Some(404), .. }) => Ok(None),
            Err(Error::Engine { status: Some(500), message, .. }) if message.is_empty() => {
                Err(Error::TooManyLinks { path: path.to_owned() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The components of an absolute path, last first, with `.` and `..` resolved by name.
fn components(path: &str) -> Vec<String> {
    let mut elements: Vec<String> = Vec::new();
    for element in path.split('/') {
        match element {
            "" | "." => {}
            ".." => drop(elements.pop()),
            _ => elements.push(element.to_owned()),
        }
    }
    elements.reverse();
    elements
}

/// An absolute path with its empty components, `.` and `..` resolved by name.
pub(crate) fn normalized(path: &str) -> String {
    let mut elements = components(path);
    elements.reverse();
    format!("/{}", elements.join("/"))
}

/// `name` in the directory `dir`.
pub(crate) fn join(dir: &str, name: &str) -> String {
    format!("{}/{name}", dir.trim_end_matches('/'))
}
