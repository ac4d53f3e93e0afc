//! The environment that an engine gives to every process in a container.

use super::accounts;
use super::engine::Engine;
use super::shared::UserIds;
use crate::environment::Environment;
use crate::error::Result;

/// What engines set where the image does not.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What an engine gives to the processes of one container by itself.
#[derive(Clone, Debug)]
pub(crate) struct EngineEnv {
    /// The container's own variables, with what the engine adds below them.
    variables: Environment,
    /// Whether the home directory is that of whom a process runs as.
    home_is_the_users: bool,
}

impl EngineEnv {
    /// Of a container whose processes no engine starts.
    #[cfg(feature = "helper")]
    pub(crate) fn none() -> EngineEnv {
        EngineEnv { variables: Environment::empty(), home_is_the_users: false }
    }

    /// Of a container whose own variables are `config`, in the engine's form, for processes of
    /// `user`.
    pub(crate) async fn of(
        engine: &Engine,
        container: &str,
        config: &[String],
        hostname: Option<&str>,
        user: UserIds,
    ) -> Result<EngineEnv> {
        let own: Environment = config.iter().filter_map(|variable| variable.split_once('=')).collect();
        let home_is_the_users = own.get("HOME").is_none();
        let mut variables = Environment::empty();
        variables.insert("PATH", DEFAULT_PATH);
        if let Some(hostname) = hostname.filter(|hostname| !hostname.is_empty()) {
            variables.insert("HOSTNAME", hostname);
        }
        if home_is_the_users {
            variables.insert("HOME", accounts::home(engine, container, user.uid).await?);
        }
        Ok(EngineEnv { variables: variables.merged(&own), home_is_the_users })
    }

    /// Everything that it gives.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name)
    }

    /// What a workspace's processes start with: all of it unless it is left out, and `over` on
    /// top. Without a `PATH` no shell finds a program, so there always is one.
    pub(crate) fn workspace(&self, clear: bool, has_shell: bool, over: &Environment) -> Environment {
        let kept: Environment = match (clear, has_shell) {
            (false, _) => self.variables.clone(),
            (true, true) => [("PATH", DEFAULT_PATH)].into_iter().collect(),
            // Only a shell could take these out again.
            (true, false) => {
                let fixed = ["HOSTNAME", "HOME"].into_iter();
                let fixed = fixed.filter_map(|name| Some((name, self.variables.get(name)?)));
                [("PATH", DEFAULT_PATH)].into_iter().chain(fixed).collect()
            }
        };
        kept.merged(over)
    }

    /// Whether a process gets its user's home directory if nobody says otherwise in `over`.
    pub(crate) fn gives_home(&self, over: &Environment) -> bool {
        self.home_is_the_users && over.get("HOME").is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_environment_keeps_what_nothing_can_take_out() {
        let variables: Environment =
            [("PATH", "/bin"), ("HOSTNAME", "h"), ("HOME", "/root"), ("IMAGE", "1")].into_iter().collect();
        let engine = EngineEnv { variables: variables.clone(), home_is_the_users: true };
        let over: Environment = [("A", "b")].into_iter().collect();
        let names = |environment: Environment| -> Vec<String> {
            environment.iter().map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(engine.workspace(false, true, &over), variables.merged(&over));
        assert_eq!(names(engine.workspace(true, true, &over)), ["PATH", "A"]);
        assert_eq!(names(engine.workspace(true, false, &over)), ["PATH", "HOSTNAME", "HOME", "A"]);
        assert!(engine.gives_home(&over));
    }
}
