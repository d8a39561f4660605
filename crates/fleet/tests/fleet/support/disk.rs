//! A folder for published files in which there is sometimes no room.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder that can be filled. It ends with the value.
pub(crate) struct Disk {
    parent: TempDir,
    is_mounted: bool,
}

impl Disk {
    /// A small file system of its own, with options of `mount`; `None`, saying so, where nothing can be mounted.
    pub(crate) fn small(options: &str) -> Option<Self> {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(parent.path()).output();
        let why = match mounted {
            Ok(output) if output.status.success() => {
                fs::create_dir(parent.path().join(FILES)).expect("there is room");
                return Some(Self { parent, is_mounted: true });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("SKIPPED: a small file system cannot be mounted: {}", why.trim());
        None
    }

    /// A link to a folder, and to a file while the folder is said to be full. Needs no rights.
    pub(crate) fn replaced() -> Self {
        let parent = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(parent.path().join("folder")).expect("our own folder");
        let disk = Self { parent, is_mounted: false };
        disk.point_to("folder");
        disk
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.parent.path().join(FILES)
    }

    pub(crate) fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).expect("an entry needs no room");
        if self.is_mounted {
            while ballast.write_all(&[1; 512]).is_ok() {}
        } else {
            self.point_to("ballast");
        }
    }

    pub(crate) fn relieve(&self) {
        if !self.is_mounted {
            self.point_to("folder");
        }
        fs::remove_file(self.ballast()).expect("it was filled");
    }

    fn ballast(&self) -> PathBuf {
        self.parent.path().join("ballast")
    }

    /// Changes the link at once: a hub may be writing.
    fn point_to(&self, name: &str) {
        let new = self.parent.path().join("new");
        symlink(name, &new).and_then(|()| fs::rename(&new, self.files())).expect("our own folder");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazily: a hub that ends may still have a file open.
            let _ = Command::new("umount").arg("-l").arg(self.parent.path()).status();
        }
    }
}

/// The files in a folder and below it.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

const FILES: &str = "files";
