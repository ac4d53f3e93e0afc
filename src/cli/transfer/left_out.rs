//! What a copy of a tree leaves out.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::printer::Printer;

/// How many names are shown.
const SHOWN: usize = 5;

/// The FIFOs, devices and sockets below a directory: an archive holds none of them.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    names: Vec<PathBuf>,
    count: u64,
}

impl LeftOut {
    /// Looks for them below `root`, a directory of this machine.
    pub(crate) async fn below(root: PathBuf) -> anyhow::Result<LeftOut> {
        tokio::task::spawn_blocking(move || LeftOut::look(&root))
            .await
            .context("failed to look through the directory")?
            .context("failed to look through the directory")
    }

    fn look(root: &Path) -> io::Result<LeftOut> {
        let mut found = LeftOut::default();
        let mut pending = vec![root.to_owned()];
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(&dir)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    pending.push(entry.path());
                } else if !kind.is_file() && !kind.is_symlink() {
                    found.count += 1;
                    if found.names.len() < SHOWN {
                        found.names.push(entry.path());
                    }
                }
            }
        }
        Ok(found)
    }

    /// Says what was left out, if anything.
    pub(crate) fn tell(&self, printer: &Printer, root: &Path) {
        if self.count == 0 {
            return;
        }
        let names: Vec<String> = self
            .names
            .iter()
            .map(|name| name.strip_prefix(root).unwrap_or(name).display().to_string())
            .collect();
        let more = if self.count > SHOWN as u64 { ", .." } else { "" };
        printer.warning(format_args!(
            "left out {} FIFOs, devices or sockets of `{}`: {}{more}",
            self.count,
            root.display(),
            names.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sockets_are_found_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("link")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("sub/socket")).unwrap();
        let found = LeftOut::below(dir.path().to_owned()).await.unwrap();
        assert_eq!((found.count, found.names), (1, vec![dir.path().join("sub/socket")]));
    }
}
