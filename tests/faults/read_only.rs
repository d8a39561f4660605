//! A store in a folder that cannot be written to: it is refused with a reason, at once, and nothing happens to it.
#![cfg(target_os = "linux")]

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{SAMPLE_AGENTS, Sample, picture};
use rulekeep::Error;

/// A folder that shows another one and takes no writes, whoever asks.
struct ReadOnly {
    folder: tempfile::TempDir,
}

impl ReadOnly {
    /// `None` where this process may not mount.
    fn of(store: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = |arguments: &[&str]| {
            let mut command = Command::new("mount");
            command.args(arguments).arg(folder.path()).stderr(std::process::Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !mount(&["--bind", store.to_str().unwrap()]) {
            eprintln!("skipped: nothing can be mounted here");
            return None;
        }
        let mounted = Self { folder };
        if mount_read_only(mounted.folder.path()) {
            return Some(mounted);
        }
        eprintln!("skipped: nothing can be mounted read-only here");
        None
    }
}

fn mount_read_only(folder: &Path) -> bool {
    Command::new("mount").args(["-o", "remount,bind,ro"]).arg(folder).status().is_ok_and(|status| status.success())
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

fn content(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    common::files_below(folder)
        .into_iter()
        .map(|file| (file.strip_prefix(folder).unwrap().to_owned(), fs::read(&file).unwrap()))
        .collect()
}

fn assert_names_the_cause(error: &Error, folder: &Path) {
    assert_eq!((error.code(), error.http_status()), ("STORAGE_UNAVAILABLE", 503), "{error}");
    let message = error.message();
    assert!(message.contains(folder.to_str().unwrap()), "the folder is not named: {message}");
    assert!(message.contains("cannot be written to"), "the cause is not named: {message}");
}

#[test]
fn a_store_that_cannot_be_written_is_refused_and_unchanged() {
    let sample = Sample::new(12);
    let before = content(&sample.folder());
    let Some(read_only) = ReadOnly::of(&sample.folder()) else { return };
    for _ in 0..2 {
        let error = common::error(Sample::builder().open(read_only.folder.path()));
        assert_names_the_cause(&error, read_only.folder.path());
    }
    drop(read_only);
    assert_eq!(content(&sample.folder()), before);
    let governor = Sample::builder().open(sample.folder()).unwrap();
    assert_eq!(picture(&governor, &SAMPLE_AGENTS), sample.picture);
}

#[test]
fn no_store_is_made_where_nothing_can_be_written() {
    let empty = tempfile::tempdir().unwrap();
    let Some(read_only) = ReadOnly::of(empty.path()) else { return };
    let error = common::error(Sample::builder().open(read_only.folder.path()));
    assert_names_the_cause(&error, read_only.folder.path());
    let error = common::error(Sample::builder().open(read_only.folder.path().join("below")));
    assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{error}");
}

/// Root may write wherever the mount allows it; everybody else is stopped by the folder's permissions.
#[test]
fn a_folder_without_write_permission_is_refused_with_reason() {
    use std::os::unix::fs::PermissionsExt;
    let sample = Sample::new(12);
    let permissions = |mode: u32| {
        for path in common::files_below(&sample.folder()).iter().chain([&sample.folder()]) {
            let is_folder = path.is_dir();
            fs::set_permissions(path, fs::Permissions::from_mode(mode | if is_folder { 0o111 } else { 0 })).unwrap();
        }
    };
    permissions(0o444);
    let probe = sample.folder().join("probe");
    if fs::write(&probe, b"").is_ok() {
        fs::remove_file(probe).unwrap();
        eprintln!("skipped: permissions do not stop this process");
    } else {
        assert_names_the_cause(&common::error(Sample::builder().open(sample.folder())), &sample.folder());
    }
    permissions(0o644);
}
