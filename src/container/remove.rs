//! Removes a workspace's container by its name.

use super::engine::Engine;
use super::prune::{ListedWorkspace, list};
use super::removal::remove_workspace;
use crate::error::{Error, Result};

/// Removes the container of this name or id, or of an id that begins so, with its volumes: one
/// that was made to outlive its workspace, or whose owner is dead.
///
/// # Errors
///
/// [`Error::NoContainer`]; [`Error::InvalidArgument`] for a container that is no workspace's, for
/// one whose owner lives and will remove it, and for the beginning of several ids.
pub async fn remove(engine: &Engine, container: &str) -> Result<()> {
    let listed = list(engine).await?;
    let Some(found) = find(&listed, container)? else {
        return Err(match engine.inspect(container).await? {
            Some(_) => refused(format!("the container `{container}` was not made by agentworkspace")),
            None => Error::NoContainer { container: container.to_owned() },
        });
    };
    if !found.kept && found.owner_alive != Some(false) {
        return Err(refused(format!(
            "the container `{container}` was not made to be kept, and is removed by the process that made it"
        )));
    }
    remove_workspace(engine, &found.id).await
}

fn refused(reason: String) -> Error {
    Error::InvalidArgument { reason }
}

/// The workspace of this name or id; `None` when there is none.
fn find<'a>(listed: &'a [ListedWorkspace], wanted: &str) -> Result<Option<&'a ListedWorkspace>> {
    let exact = |one: &&ListedWorkspace| one.name == wanted || one.container == wanted;
    if let Some(found) = listed.iter().find(exact) {
        return Ok(Some(found));
    }
    let mut beginning = listed.iter().filter(|one| !wanted.is_empty() && one.container.starts_with(wanted));
    match (beginning.next(), beginning.next()) {
        (Some(_), Some(_)) => Err(refused(format!("`{wanted}` is the beginning of several ids"))),
        (found, _) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_before_the_beginning_of_an_id() {
        let one = |name: &str, container: &str| ListedWorkspace {
            id: String::new(),
            container: container.to_owned(),
            name: name.to_owned(),
            image: String::new(),
            state: String::new(),
            owner_alive: None,
            kept: true,
            created: None,
            root: String::new(),
        };
        let listed = [one("x", "abc1"), one("abc", "def2"), one("y", "abd3")];
        let name = |wanted| find(&listed, wanted).unwrap().map(|one| one.name.as_str());
        assert_eq!(name("abc"), Some("abc"));
        assert_eq!(name("abc1"), Some("x"));
        assert_eq!(name("abd"), Some("y"));
        assert_eq!(name("zzz"), None);
        assert_eq!(name(""), None);
        assert!(find(&listed, "ab").is_err());
    }
}
