//! Mounts, as the engine's own command takes them: `type=bind,source=/data,target=/data`.

use agentworkspace::container::Mount;

use super::size;

/// A mount from `type=bind|volume|tmpfs`, `source` (or `src`), `target` (or `dst`), `size`, and
/// `readonly` or `rw`. A bind mount is read-only unless `rw` is said.
pub(crate) fn mount(text: &str) -> Result<Mount, String> {
    let mut kind = None;
    let mut source = None;
    let mut target = None;
    let mut bytes = None;
    let mut writable = None;
    for field in text.split(',') {
        let (key, value) = field.split_once('=').unwrap_or((field, ""));
        match (key, value) {
            ("type", value) => kind = Some(value),
            ("source" | "src", value) => source = Some(value),
            ("target" | "dst" | "destination", value) => target = Some(value),
            ("size" | "tmpfs-size", value) => bytes = Some(size(value)?),
            ("readonly" | "ro", "" | "true") => writable = Some(false),
            ("rw", "" | "true") => writable = Some(true),
            _ => return Err(format!("`{field}` is not a field of a mount")),
        }
    }
    let target = target
        .filter(|target| target.starts_with('/'))
        .ok_or("a mount needs an absolute `target=` in the container")?;
    let mount = match (kind, source, bytes) {
        (Some("bind"), Some(source), None) if source.starts_with('/') => Mount::bind(source, target),
        (Some("bind"), Some(_), None) => {
            return Err("the `source=` of a bind mount must be absolute".to_owned());
        }
        (Some("volume"), Some(name), None) => Mount::volume(name, target),
        (Some("tmpfs"), None, size) => Mount::tmpfs(target, size),
        (Some("bind" | "volume"), None, _) => return Err("this type of mount needs a `source=`".to_owned()),
        (Some("bind" | "volume"), _, Some(_)) => return Err("only a tmpfs has a `size=`".to_owned()),
        (Some("tmpfs"), Some(_), _) => return Err("a tmpfs has no `source=`".to_owned()),
        _ => return Err("a mount needs `type=bind`, `type=volume` or `type=tmpfs`".to_owned()),
    };
    Ok(match writable {
        Some(writable) => mount.writable(writable),
        None => mount,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_of_mount_is_understood() {
        for (text, expected) in [
            ("type=bind,source=/a,target=/b", Mount::bind("/a", "/b")),
            ("type=bind,src=/a,dst=/b,rw", Mount::bind("/a", "/b").writable(true)),
            ("type=volume,source=v,target=/b,readonly", Mount::volume("v", "/b").writable(false)),
            ("type=tmpfs,target=/t,size=1m", Mount::tmpfs("/t", Some(1 << 20))),
        ] {
            assert_eq!(mount(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nothing_in_a_mount_is_ignored() {
        for text in [
            "",
            "type=bind,target=/b",
            "type=bind,source=a,target=/b",
            "type=bind,source=/a",
            "type=bind,source=/a,target=b",
            "type=bind,source=/a,target=/b,size=1m",
            "type=tmpfs,source=x,target=/t",
            "type=npipe,target=/t",
            "source=/a,target=/b",
            "type=bind,source=/a,target=/b,propagation=shared",
            "type=bind,source=/a,target=/b,readonly=maybe",
        ] {
            assert!(mount(text).is_err(), "{text:?}");
        }
    }
}
