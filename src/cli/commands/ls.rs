//! `ls`: the entries of a directory.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use agentworkspace::{
    DirEntry, FileKind, LinkTarget, ListOptions, Metadata, Target, Workspace, WorkspacePath,
};
use anyhow::Context as _;
use clap::Args;

use super::stat::{Stat, link_and_metadata};
use crate::cli::context::Context;
use crate::cli::json::{self, Bytes};
use crate::cli::session::with_target;
use crate::cli::status::{self, Status};
use crate::cli::stdio;

/// List a directory of a workspace.
#[derive(Args)]
pub(crate) struct LsArgs {
    /// The workspace.
    target: Target,
    /// The directory, relative to the root.
    #[arg(default_value = ".")]
    name: WorkspacePath,
    /// Show kind, mode, owner, size, time and where links lead.
    #[arg(short, long)]
    long: bool,
    /// End each name with a NUL byte, and escape nothing.
    #[arg(short = '0', long, conflicts_with_all = ["long", "json"])]
    null: bool,
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An entry with what `-l` asks for; nothing when it was removed meanwhile or its name is not UTF-8.
type Detailed = Option<(Metadata, Option<LinkTarget>)>;

/// Does it.
pub(crate) async fn ls(args: LsArgs, context: &Context) -> anyhow::Result<Status> {
    let LsArgs { target, name, long, null, json } = args;
    with_target(context, &target, async |workspace| {
        let what = || format!("failed to list `{name}` in {target}");
        let mut options = ListOptions::default();
        let mut all = Vec::new();
        loop {
            let page = workspace.read_dir(&name, options.clone()).await.with_context(what)?;
            let mut text = Vec::new();
            for entry in &page.entries {
                let detailed = match long {
                    true => details(&*workspace, &name, entry).await.with_context(what)?,
                    false => None,
                };
                if json {
                    all.push(as_json(entry, detailed));
                } else if null {
                    text.extend_from_slice(entry.name.as_bytes());
                    text.push(0);
                } else {
                    as_line(&mut text, entry, long, detailed);
                }
            }
            stdio::write_out(&text).await?;
            match page.entries.last().filter(|_| page.more) {
                Some(last) => options = options.after(last.name.clone()),
                None => break,
            }
        }
        if json {
            context.printer.json(&all)?;
        }
        Ok(status::OK)
    })
    .await
}

async fn details(
    workspace: &dyn Workspace,
    dir: &WorkspacePath,
    entry: &DirEntry,
) -> agentworkspace::Result<Detailed> {
    let Some(name) = entry.name.as_str() else { return Ok(None) };
    match link_and_metadata(workspace, &dir.join(name)?).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn as_json(entry: &DirEntry, detailed: Detailed) -> serde_json::Value {
    let name = Bytes::new(entry.name.as_bytes().to_vec());
    let mut value = match detailed {
        Some((metadata, link)) => serde_json::json!(Stat::new(metadata, link)),
        None => serde_json::json!({ "kind": entry.kind }),
    };
    value["name"] = serde_json::json!(name);
    value
}

/// On a terminal nothing in a name can be a control sequence; elsewhere names are as they are.
fn as_line(text: &mut Vec<u8>, entry: &DirEntry, long: bool, detailed: Detailed) {
    let terminal = std::io::stdout().is_terminal();
    if long {
        text.extend_from_slice(columns(entry.kind, &detailed).as_bytes());
    }
    if terminal {
        text.extend_from_slice(shown(&entry.name.escaped()).as_bytes());
    } else {
        text.extend_from_slice(entry.name.as_bytes());
    }
    if let Some((_, Some(link))) = detailed {
        text.extend_from_slice(b" -> ");
        if terminal {
            text.extend_from_slice(shown(&link.to_string()).as_bytes());
        } else {
            text.extend_from_slice(link.as_bytes());
        }
    }
    text.push(b'\n');
}

/// Text whose control characters are escaped.
fn shown(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

fn columns(kind: FileKind, detailed: &Detailed) -> String {
    let letter = match kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Socket => 's',
        FileKind::BlockDevice => 'b',
        FileKind::CharDevice => 'c',
        _ => '?',
    };
    let mut columns = String::from(letter);
    let written = match detailed {
        Some((metadata, _)) => {
            let owner = |id: Option<u32>| id.map_or_else(|| "?".to_owned(), |id| id.to_string());
            write!(
                columns,
                " {:04o} {:>5} {:>5} {:>10} {} ",
                metadata.mode,
                owner(metadata.uid),
                owner(metadata.gid),
                metadata.size,
                json::time(metadata.modified)
            )
        }
        None => write!(columns, "    ? {:>5} {:>5} {:>10} {:>24} ", "?", "?", "?", "?"),
    };
    // Writing to a string cannot fail.
    let _ = written;
    columns
}

#[cfg(test)]
mod tests {
    use agentworkspace::EntryName;

    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(shown("a\u{1b}[2Jä\n"), "a\\u{1b}[2Jä\\n");
    }

    #[test]
    fn a_name_that_is_not_utf8_is_base64_in_json() {
        let entry = DirEntry::new(EntryName::new(*b"a\xff").unwrap(), FileKind::File);
        assert_eq!(as_json(&entry, None).to_string(), r#"{"kind":"file","name":{"base64":"Yf8="}}"#);
    }
}
