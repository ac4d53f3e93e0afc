//! What is put into a container before it is started: its first process and its root.

use std::time::SystemTime;

use bollard::query_parameters::UploadToContainerOptionsBuilder;
use bytes::Bytes;

use super::accounts::{self, User};
use super::attach::find_shell;
use super::engine::{Engine, SLOW_CALL_TIMEOUT};
use super::options::{ContainerOptions, Profile};
use super::pause;
use super::shared::UserIds;
use super::spec;
use crate::error::{Error, Result};

/// What was found out on the way.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) user: User,
    pub(crate) shell: Option<String>,
}

/// Puts the first process and the workspace root into a container that has not been started.
pub(crate) async fn prepare(
    engine: &Engine,
    container: &str,
    options: &ContainerOptions,
    program: Option<&[u8]>,
    owns_root: bool,
) -> Result<Prepared> {
    let user = prepare_root(engine, container, options, program, owns_root).await?;
    Ok(Prepared { user, shell: find_shell(engine, container).await? })
}

/// Puts the workspace root into a container that has not been started, and a first process if there
/// is one; whom the root belongs to.
///
/// Nothing runs in it yet, so nothing can change a directory between the look and the write.
/// `owns_root` says that the root is a new volume, which belongs to root until now.
pub(crate) async fn prepare_root(
    engine: &Engine,
    container: &str,
    options: &ContainerOptions,
    program: Option<&[u8]>,
    owns_root: bool,
) -> Result<User> {
    let name = spec::user(options);
    let name = match name {
        Some(name) => name,
        None => image_user(engine, container).await?,
    };
    let user = accounts::resolve(engine, container, &name).await?;
    if options.profile == Profile::Strict && user.ids.uid == 0 {
        return Err(Error::InvalidArgument { reason: format!("`{name}` is root, and the profile strict") });
    }
    let mut entries = Entries::default();
    if let Some(program) = program {
        let own = engine.existing_directories(container, pause::DIRECTORY).await;
        own.map_err(|_| Error::InvalidArgument {
            reason: format!("the image has something else than a directory at `{}`", pause::DIRECTORY),
        })?;
        let root = UserIds { uid: 0, gid: 0 };
        entries.directory(pause::DIRECTORY, root)?;
        entries.executable(pause::PATH, program)?;
    }
    let count = options.root.split('/').filter(|part| !part.is_empty()).count();
    let existing = engine.existing_directories(container, &options.root).await?;
    for depth in existing + 1..=count {
        let owner = if depth == count { user.ids } else { UserIds { uid: 0, gid: 0 } };
        entries.directory(&first_components(&options.root, depth), owner)?;
    }
    if owns_root && existing == count {
        entries.directory(&options.root, user.ids)?;
    }
    entries.put(engine, container, "make the workspace root").await?;
    Ok(user)
}

/// The user that the image sets.
async fn image_user(engine: &Engine, container: &str) -> Result<String> {
    let inspected = super::attach::inspect(engine, container).await?;
    Ok(inspected.config.and_then(|config| config.user).unwrap_or_default())
}

/// The path of the first `count` components of an absolute path.
fn first_components(path: &str, count: usize) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(count).collect();
    format!("/{}", parts.join("/"))
}

/// A tar archive to be put at `/`.
pub(crate) struct Entries {
    archive: tar::Builder<Vec<u8>>,
    is_empty: bool,
}

impl Default for Entries {
    fn default() -> Self {
        Entries { archive: tar::Builder::new(Vec::new()), is_empty: true }
    }
}

impl Entries {
    fn directory(&mut self, path: &str, owner: UserIds) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_uid(owner.uid.into());
        header.set_gid(owner.gid.into());
        self.append(header, path, &[])
    }

    pub(crate) fn executable(&mut self, path: &str, content: &[u8]) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o555);
        self.append(header, path, content)
    }

    fn append(&mut self, mut header: tar::Header, path: &str, content: &[u8]) -> Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        header.set_mtime(now.as_secs());
        header.set_size(content.len() as u64);
        self.is_empty = false;
        // Engines guess compression from an archive's first bytes, which are the first name:
        // with a dot they are no format's. The archive's own names are relative.
        let name = format!(".{path}");
        let appended = match header.as_gnu_mut().map(|gnu| gnu.name.get_mut(..name.len())) {
            Some(Some(field)) => {
                field.copy_from_slice(name.as_bytes());
                header.set_cksum();
                self.archive.append(&header, content)
            }
            // A longer name goes into an entry of its own.
            _ => self.archive.append_data(&mut header, &path[1..], content),
        };
        appended.map_err(|source| Error::from_io("archive", path, source))
    }

    /// Puts them into a container, which is to `purpose`.
    pub(crate) async fn put(self, engine: &Engine, container: &str, purpose: &'static str) -> Result<()> {
        if self.is_empty {
            return Ok(());
        }
        let failed = |source| Error::from_io("archive", "/", source);
        let archive = self.archive.into_inner().map_err(failed)?;
        let options =
            UploadToContainerOptionsBuilder::default().path("/").no_overwrite_dir_non_dir("true").build();
        let body = bollard::body_full(Bytes::from(archive));
        let call = engine.docker().upload_to_container(container, Some(options), body);
        engine.call(purpose, SLOW_CALL_TIMEOUT, call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_counted_from_the_top() {
        assert_eq!(first_components("/a/b/c", 2), "/a/b");
    }

    #[test]
    fn no_name_begins_like_a_compressed_archive() {
        let mut entries = Entries::default();
        entries.directory("/BZh", UserIds { uid: 1, gid: 2 }).unwrap();
        let archive = entries.archive.into_inner().unwrap();
        assert!(archive.starts_with(b"./BZh\0"));
        let long = format!("/{}", "x".repeat(200));
        let mut entries = Entries::default();
        entries.directory(&long, UserIds { uid: 1, gid: 2 }).unwrap();
        let archive = entries.archive.into_inner().unwrap();
        let mut archive = tar::Archive::new(archive.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str().unwrap(), &long[1..]);
    }
}
