//! What a workspace says of itself.

use super::place::Place;
use crate::{Capabilities, Descriptor, Kind, WorkspaceExt as _};

cases!("details" {
    the_descriptor_says_what_a_session_records;
    the_root_is_where_commands_start;
    details_say_who_commands_run_as;
    capabilities_agree_with_what_is_there;
    nothing_secret_shows;
});

/// Kind, reference and root, the same every time and in JSON.
pub async fn the_descriptor_says_what_a_session_records(at: &Place) {
    let descriptor = at.ws().descriptor();
    assert_eq!(descriptor, at.ws().descriptor());
    assert_eq!(descriptor.kind, at.ws().kind());
    assert!(descriptor.root.starts_with('/'), "{descriptor:?}");
    match descriptor.kind {
        Kind::Local => assert_eq!(descriptor.reference, ""),
        Kind::Container => {
            let digits = descriptor.reference.strip_prefix("sha256:").unwrap_or_default();
            assert!(digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{descriptor:?}");
        }
        Kind::Remote => assert!(!descriptor.reference.is_empty(), "{descriptor:?}"),
    }
    let json = serde_json::to_value(&descriptor).unwrap_or_default();
    assert_eq!(json["kind"], descriptor.kind.to_string());
    assert_eq!(json["ref"], descriptor.reference);
    assert!(serde_json::from_value::<Descriptor>(json).is_ok_and(|back| back == descriptor));
}

/// By the name that the workspace's own processes use.
pub async fn the_root_is_where_commands_start(at: &Place) {
    let ran = at.run(at.sh("pwd")).await;
    assert_eq!(ran.out().trim_end(), at.ws().descriptor().root, "{ran}");
}

/// And name the container, the image and the engine where there are such.
pub async fn details_say_who_commands_run_as(at: &Place) {
    let details = at.ws().details();
    assert!(!details.workspace_id.is_empty());
    let (uid, gid) = at.fixture.ids();
    assert_eq!(at.done("id -u; id -g").await, format!("{uid}\n{gid}\n"));
    if !details.user.is_empty() {
        assert_eq!(details.user, format!("{uid}:{gid}"));
    }
    if at.ws().kind() == Kind::Container {
        assert_eq!(details.user, format!("{uid}:{gid}"));
        assert!(details.container.as_ref().is_some_and(|container| container.id.len() == 64), "{details:?}");
        assert!(
            details.image.as_ref().is_some_and(|image| image.image_id.starts_with("sha256:")),
            "{details:?}"
        );
        assert!(details.engine.as_ref().is_some_and(|engine| !engine.version.is_empty()), "{details:?}");
    }
}

/// A starter is there exactly when it is declared.
pub async fn capabilities_agree_with_what_is_there(at: &Place) {
    let capabilities = at.ws().capabilities();
    assert_eq!(at.ws().as_starter().is_some(), capabilities.start);
    let Some(starter) = at.ws().as_starter() else { return };
    assert_eq!(starter.descriptor(), at.ws().descriptor(), "a wrapper returns itself");
    let json = serde_json::to_string(&capabilities).unwrap_or_default();
    assert!(serde_json::from_str::<Capabilities>(&json).is_ok_and(|back| back == capabilities), "{json}");
}

/// Values of variables and input are in no debug output.
pub async fn nothing_secret_shows(at: &Place) {
    let command = at.sh("exit 0").env("TOKEN", "hunter2").stdin("swordfish");
    let text = format!("{command:?}");
    assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{text}");
    let text = format!("{:?}", at.ws());
    for (name, value) in at.ws().env().iter() {
        let shows = value.len() > 12 && text.contains(value);
        assert!(!shows, "the value of {name} shows in {text}");
    }
}
