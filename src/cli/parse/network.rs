//! Networks: `none`, `default`, or a name.

use agentworkspace::container::Network;

/// The network of this name. `host` and `container:...` would share another's network, which a
/// workspace never does.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    match text {
        "" => Err("the name of the network is empty".to_owned()),
        "none" => Ok(Network::None),
        "default" | "bridge" => Ok(Network::Default),
        "host" => {
            Err("a workspace never shares the host's network; use `default` or a network's name".to_owned())
        }
        _ if text.starts_with("container:") => {
            Err("a workspace never shares another container's network; use `default` or a network's name"
                .to_owned())
        }
        name => Ok(Network::Named(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_networks_are_refused() {
        assert_eq!(network("none"), Ok(Network::None));
        assert_eq!(network("default"), Ok(Network::Default));
        assert_eq!(network("lab"), Ok(Network::Named("lab".to_owned())));
        for text in ["", "host", "container:web"] {
            assert!(network(text).is_err(), "{text:?}");
        }
    }
}
