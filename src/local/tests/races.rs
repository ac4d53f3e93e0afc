//! Confinement while another thread swaps a directory for a link that leads outside.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::io::AsyncReadExt as _;

use super::{Fixture, path};
use crate::tar::{Entry, TarWriter, Time};
use crate::workspace::Workspace as _;

/// How many swaps a race must have seen to say anything.
const SWAPS: u64 = 500;

/// Swaps `root/swapped`, a directory, with `root/link`, which leads beside the root, until told
/// to stop.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(fixture: &Fixture) -> Self {
        std::fs::create_dir(fixture.outside("beside")).unwrap();
        std::fs::write(fixture.outside("beside/file"), "outside").unwrap();
        std::fs::write(fixture.outside("beside/secret"), "outside").unwrap();
        std::fs::create_dir(fixture.host("swapped")).unwrap();
        std::fs::write(fixture.host("swapped/file"), "inside").unwrap();
        std::os::unix::fs::symlink("../beside", fixture.host("link")).unwrap();
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (a, b) = (fixture.host("swapped"), fixture.host("link"));
        let thread = std::thread::spawn({
            let (stop, swaps) = (stop.clone(), swaps.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Swapper { stop, swaps, thread: Some(thread) }
    }

    fn goes_on(&self, rounds: u64) -> bool {
        self.swaps.load(Ordering::Relaxed) < SWAPS || rounds < SWAPS
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// An archive with a file, a link and a directory below `swapped`.
fn archive() -> Vec<u8> {
    let mut writer = TarWriter::new(Vec::new());
    for (kind, name, link) in [
        (tar::EntryType::Regular, "swapped/file", ""),
        (tar::EntryType::Symlink, "swapped/soft", "file"),
        (tar::EntryType::Link, "swapped/hard", "swapped/file"),
        (tar::EntryType::Directory, "swapped/made/", ""),
        (tar::EntryType::Regular, "swapped/made/file", ""),
    ] {
        let modified = Time { seconds: 1, nanos: 0 };
        let (name, link) = (name.as_bytes(), link.as_bytes());
        let entry = Entry { name, kind, link, mode: 0o777, owner: (0, 0), size: 0, modified };
        writer.start(&entry).unwrap();
    }
    writer.finish().unwrap()
}

fn outside_is_untouched(fixture: &Fixture) {
    let beside = std::fs::metadata(fixture.outside("beside")).unwrap();
    assert!(beside.mtime() > 1 && beside.mode() & 0o777 != 0o777);
    let mut names: Vec<_> =
        std::fs::read_dir(fixture.outside("beside")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["file", "secret"]);
    assert_eq!(std::fs::read(fixture.outside("beside/file")).unwrap(), b"outside");
}

#[tokio::test]
async fn files_stay_inside_while_a_directory_is_swapped_for_a_link() {
    let fixture = Fixture::new();
    let swapper = Swapper::start(&fixture);
    let w = &fixture.workspace;
    let (mut rounds, mut written, mut refused) = (0, 0, 0);
    while swapper.goes_on(rounds) {
        rounds += 1;
        if let Ok(reader) = w.open(&path("swapped/file"), Default::default()).await {
            assert_ne!(reader.read_all().await.unwrap(), b"outside");
        }
        if let Ok(page) = w.read_dir(&path("swapped"), Default::default()).await {
            assert!(page.entries.iter().all(|entry| entry.name.as_str() != Some("secret")));
        }
        match fixture.write("swapped/file", "inside").await {
            Ok(_) => written += 1,
            Err(error) => refused += u64::from(error.is_outside()),
        }
        let _ = fixture.write("swapped/new/deep", "inside").await;
        let _ = w.set_mode(&path("swapped/file"), 0o600).await;
        let _ = w.rename(&path("swapped/new"), &path("swapped/other")).await;
        let _ = w.remove_all(&path("swapped/other")).await;
        let _ = w.remove(&path("swapped/file")).await;
    }
    drop(swapper);
    // Both sides of the race were seen, otherwise it says nothing.
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused");
    outside_is_untouched(&fixture);
}

#[tokio::test]
async fn archives_stay_inside_while_a_directory_is_swapped_for_a_link() {
    let fixture = Fixture::new();
    let swapper = Swapper::start(&fixture);
    let w = &fixture.workspace;
    let mut rounds = 0;
    while swapper.goes_on(rounds) {
        rounds += 1;
        let _ = w.put_archive(&path("."), archive().into(), Default::default()).await;
        if let Ok(mut reader) = w.get_archive(&path("swapped"), Default::default()).await {
            let mut data = Vec::new();
            if reader.read_to_end(&mut data).await.is_ok() {
                assert!(!data.windows(7).any(|bytes| bytes == b"outside"));
            }
        }
        let _ = w.remove_all(&path("swapped/made")).await;
    }
    drop(swapper);
    outside_is_untouched(&fixture);
}
