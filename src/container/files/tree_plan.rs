//! Where the entries of an archive land in a paused container, decided before any is written.

use std::collections::{BTreeSet, HashMap};

use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::capabilities::hidden;
use super::engine_files::time;
use super::engine_walk::{Place, first_entry, head, link_target, looping_link};
use super::tar_index::{Entry, EntryKind, refused};
use crate::container::lookup::{MAX_LINKS, join};
use crate::container::shared::Shared;
use crate::error::{Error, Result};
use crate::files::{FileKind, escape_bytes};
use crate::tar::Time;

/// How many directories are looked up at the same time.
const AT_ONCE: usize = 16;

/// The components of a path below the workspace root, without links.
type Real = Vec<Vec<u8>>;

/// What is at a path, as far as it matters.
#[derive(Clone, Debug)]
enum There {
    Nothing,
    Directory,
    Link(Vec<u8>),
    Other(Facts),
}

/// What a hard link to a file must say as well, lest the engine change it.
#[derive(Clone, Copy, Debug)]
struct Facts {
    mode: u32,
    /// Unknown of what the container has.
    owner: Option<(u32, u32)>,
    modified: Time,
}

/// The state that the archive finds and leaves.
pub(super) struct Plan<'a> {
    shared: &'a Shared,
    /// Where the archive is unpacked.
    base: Real,
    /// What the container has, looked up as it is needed.
    found: HashMap<Real, There>,
    /// What the archive has made so far; it hides what the container has.
    made: HashMap<Real, There>,
    /// The entries in order, with names below the workspace root.
    entries: Vec<Entry>,
}

/// Gives every entry the name, below the workspace root, that it lands at. No component of one is
/// a link, so that the engine follows none.
pub(super) async fn plan(shared: &Shared, place: &Place, entries: Vec<Entry>) -> Result<Vec<Entry>> {
    let below_root = place.dir.strip_prefix(shared.root.trim_end_matches('/')).unwrap_or_default();
    let existing: Real = below_root.split('/').filter(|name| !name.is_empty()).map(Into::into).collect();
    let mut base = existing.clone();
    base.extend(place.below.iter().map(|name| name.clone().into_bytes()));
    let mut plan = Plan { shared, base, found: HashMap::new(), made: HashMap::new(), entries: Vec::new() };
    for end in 0..=existing.len() {
        plan.found.insert(existing[..end].to_vec(), There::Directory);
    }
    for end in existing.len() + 1..=plan.base.len() {
        plan.make_directory(plan.base[..end].to_vec());
    }
    plan.look_ahead(&entries).await?;
    for entry in entries {
        plan.add(entry).await?;
    }
    for Entry { name, kind, .. } in &plan.entries {
        let linked = match kind {
            EntryKind::HardLink(target) => Some(target),
            _ => None,
        };
        for name in [Some(name), linked].into_iter().flatten() {
            let root = shared.root.trim_end_matches('/').as_bytes();
            hidden(shared, [root, b"/", name].concat())?;
        }
    }
    Ok(plan.entries)
}

impl Plan<'_> {
    /// Looks up everything of the archive that the container may have, a level at a time.
    async fn look_ahead(&mut self, entries: &[Entry]) -> Result<()> {
        let mut directories: BTreeSet<(usize, Real)> = BTreeSet::new();
        for entry in entries {
            let elements: Real = entry.name.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
            // Of a file whose name the engine's calls do not take nothing can be found out.
            let own = matches!(entry.kind, EntryKind::Directory) || is_text(&elements);
            for end in 1..elements.len() + usize::from(own) {
                let path = [self.base.as_slice(), &elements[..end]].concat();
                directories.insert((path.len(), path));
            }
        }
        let deepest = directories.last().map_or(0, |(depth, _)| *depth);
        for depth in 0..=deepest {
            let level = directories.range((depth, Vec::new())..(depth + 1, Vec::new()));
            let wanted: Vec<Real> =
                level.map(|(_, path)| path).filter(|path| self.is_unknown(path)).cloned().collect();
            let shared = self.shared;
            let found: Vec<(Real, There)> = stream::iter(wanted)
                .map(|path| async move { look_up(shared, &path).await.map(|there| (path, there)) })
                .buffer_unordered(AT_ONCE)
                .try_collect()
                .await?;
            self.found.extend(found);
        }
        Ok(())
    }

    /// Whether only the container can say what is at `path`: its parent is a directory there.
    fn is_unknown(&self, path: &Real) -> bool {
        let parent = path[..path.len().saturating_sub(1)].to_vec();
        !self.made.contains_key(path)
            && !self.found.contains_key(path)
            && !self.made.contains_key(&parent)
            && matches!(self.found.get(&parent), Some(There::Directory))
    }

    async fn there(&mut self, path: &Real) -> Result<There> {
        if let Some(there) = self.made.get(path).or_else(|| self.found.get(path)) {
            return Ok(there.clone());
        }
        // Below what the container does not have nothing need be looked up.
        if !self.is_unknown(path) {
            return Ok(There::Nothing);
        }
        let there = look_up(self.shared, path).await?;
        self.found.insert(path.clone(), there.clone());
        Ok(there)
    }

    /// Follows `names` from the base as a directory, and makes what is missing of it.
    async fn directory(&mut self, names: &[Vec<u8>], entry: &[u8]) -> Result<Real> {
        let mut real = self.base.clone();
        let mut left: Vec<Vec<u8>> = names.iter().rev().cloned().collect();
        let mut links = 0;
        while let Some(name) = left.pop() {
            match name.as_slice() {
                b"" | b"." => continue,
                b".." if real.pop().is_none() => {
                    return Err(refused(entry, "it leads outside of the workspace"));
                }
                b".." => continue,
                _ => real.push(name),
            }
            match self.there(&real).await? {
                There::Directory => {}
                There::Nothing => self.make_directory(real.clone()),
                There::Other(_) => return Err(refused(entry, "a component of its name is not a directory")),
                There::Link(target) => {
                    links += 1;
                    if target.starts_with(b"/") {
                        return Err(refused(entry, "it leads through a link outside of the workspace"));
                    }
                    if links > MAX_LINKS {
                        return Err(refused(entry, "it leads through too many links"));
                    }
                    real.pop();
                    left.extend(target.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
                }
            }
        }
        Ok(real)
    }

    /// Notes a directory, and adds an entry for it.
    fn make_directory(&mut self, real: Real) {
        let mut entry = super::engine_files::made(self.shared, &[], EntryKind::Directory);
        entry.name = real.join(&b'/');
        self.entries.push(entry);
        self.made.insert(real, There::Directory);
    }

    async fn add(&mut self, mut entry: Entry) -> Result<()> {
        let elements: Vec<Vec<u8>> = entry.name.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        let name = std::mem::take(&mut entry.name);
        entry.owner = (self.shared.user.uid, self.shared.user.gid);
        let Some((last, parents)) = elements.split_last() else { return Ok(()) };
        if matches!(entry.kind, EntryKind::Directory) {
            let real = self.directory(&elements, &name).await?;
            entry.name = real.join(&b'/');
            self.entries.push(entry);
            return Ok(());
        }
        let mut real = self.directory(parents, &name).await?;
        real.push(last.clone());
        let is_text = is_text(std::slice::from_ref(last));
        if is_text && matches!(self.there(&real).await?, There::Directory) {
            return Err(refused(&name, "a directory is there, which a file does not replace"));
        }
        let there = match &entry.kind {
            EntryKind::Symlink(target) => There::Link(target.clone()),
            EntryKind::HardLink(target) => match self.hard_link(target, &name).await? {
                // It is that file already.
                (to, _) if to == real => return Ok(()),
                (to, there) => {
                    if let There::Other(Facts { mode, owner, modified }) = there {
                        (entry.mode, entry.modified) = (mode, modified);
                        entry.owner = owner.unwrap_or(entry.owner);
                    }
                    entry.kind = EntryKind::HardLink(to.join(&b'/'));
                    there
                }
            },
            EntryKind::File { .. } | EntryKind::Directory => {
                There::Other(Facts { mode: entry.mode, owner: Some(entry.owner), modified: entry.modified })
            }
        };
        entry.name = real.join(&b'/');
        self.entries.push(entry);
        self.made.insert(real, there);
        Ok(())
    }

    /// What the hard link `entry` names.
    async fn hard_link(&mut self, target: &[u8], entry: &[u8]) -> Result<(Real, There)> {
        let elements: Vec<Vec<u8>> = target.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        let mut real = match elements.split_last() {
            Some((_, parents)) => self.known_directory(parents, entry).await?,
            None => Vec::new(),
        };
        real.extend(elements.last().cloned());
        let there = match self.there(&real).await? {
            There::Nothing => return Err(refused(entry, "what it links to does not exist")),
            There::Directory => return Err(refused(entry, "it links to a directory")),
            There::Other(facts @ Facts { owner: None, .. }) => {
                let owner = first_entry(self.shared, &absolute(self.shared, &real)?).await?.owner;
                There::Other(Facts { owner: Some(owner), ..facts })
            }
            there => there,
        };
        Ok((real, there))
    }

    /// As [`Plan::directory`], for a name that is only looked at: nothing is made for it.
    async fn known_directory(&mut self, names: &[Vec<u8>], entry: &[u8]) -> Result<Real> {
        let planned = self.entries.len();
        let real = self.directory(names, entry).await?;
        if self.entries.len() > planned {
            return Err(refused(entry, "what it links to does not exist"));
        }
        Ok(real)
    }
}

/// Whether the engine's calls, which take text only, can name it.
fn is_text(elements: &[Vec<u8>]) -> bool {
    elements.iter().all(|element| std::str::from_utf8(element).is_ok())
}

/// The absolute path in the container of one below the root.
fn absolute(shared: &Shared, path: &Real) -> Result<String> {
    let mut absolute = shared.root.clone();
    for name in path {
        // The engine's calls take text only, so that nobody could say what is there.
        let name = std::str::from_utf8(name).map_err(|_| {
            refused(&path.join(&b'/'), "what is at a name that is not UTF-8 cannot be found out")
        })?;
        absolute = join(&absolute, name);
    }
    Ok(absolute)
}

/// What the container has at a path below the root.
async fn look_up(shared: &Shared, path: &Real) -> Result<There> {
    let absolute = absolute(shared, path)?;
    hidden(shared, &absolute)?;
    let found = match head(shared, &absolute).await {
        Err(Error::TooManyLinks { .. }) => {
            let (_, target) = looping_link(shared, &absolute).await?;
            return Ok(There::Link(target.as_bytes().to_vec()));
        }
        other => other?,
    };
    let Some(found) = found else { return Ok(There::Nothing) };
    Ok(match found.kind {
        FileKind::Directory => There::Directory,
        FileKind::Symlink => {
            let target = link_target(shared, &absolute, &escape_bytes(&path.join(&b'/'))).await?;
            There::Link(target.as_bytes().to_vec())
        }
        _ => There::Other(Facts { mode: found.mode, owner: None, modified: time(found.modified) }),
    })
}
