//! Tests that reading commands leave every byte and modification time of a store unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::fixture::{Place, until};

/// Every file and folder, with its modification time and its bytes.
pub(crate) type Image = BTreeMap<PathBuf, (SystemTime, Vec<u8>)>;

pub(crate) fn image(folder: &Path) -> Image {
    let mut found = Image::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        found.insert(folder.clone(), (fs::metadata(&folder).unwrap().modified().unwrap(), Vec::new()));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            if data.is_dir() {
                folders.push(path);
            } else if data.is_file() {
                found.insert(path.clone(), (data.modified().unwrap(), fs::read(&path).unwrap()));
            }
        }
    }
    found
}

pub(crate) fn assert_same(before: &Image, after: &Image, by: &[&str]) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{by:?}");
    for (path, data) in before {
        assert!(data == &after[path], "{by:?} changed {}", path.display());
    }
}

/// The reading commands, with their arguments.
fn verbs(place: &Place) -> Vec<Vec<&str>> {
    let lines = [
        "log query",
        "log query --agent support-1 --decision deny --open",
        "log tail",
        "log stats support-1",
        "log show prf_ --evidence",
        "agents list",
        "agents show support-1",
        "agents trust support-1",
        "escalations list",
        "escalations show esc_",
        "kill-switch list",
        "keys list",
        "webhooks list",
        "webhooks deliveries whk_",
    ];
    let words = |line: &'static str| {
        line.split(' ').map(|word| if word.ends_with('_') { place.id(word) } else { word }).collect()
    };
    lines.into_iter().map(words).collect()
}

#[test]
fn reading_a_closed_store_changes_nothing_in_it() {
    let place = Place::new();
    let store = place.work().join("store");
    let before = image(&store);
    for verb in verbs(&place) {
        place.ok(&[verb.as_slice(), &["--store", "store"]].concat());
        assert_same(&before, &image(&store), &verb);
    }
    for verb in [["log", "verify", "--store", "store"].as_slice(), &["log", "export", "--store", "store"]] {
        place.ok(verb);
        assert_same(&before, &image(&store), verb);
    }
}

#[test]
fn reading_a_home_without_a_daemon_changes_nothing_in_it() {
    let place = Place::new();
    let before = image(&place.home());
    for verb in verbs(&place).into_iter().chain([vec!["log", "verify"], vec!["log", "export"]]) {
        let mut command = place.command(&verb);
        let output = command.env_remove("RULEKEEP_OPERATOR_KEY").output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_same(&before, &image(&place.home()), &verb);
    }
}

#[test]
fn reading_beside_a_daemon_changes_nothing_in_the_log() {
    let place = Place::with_daemon();
    // The index belongs to the daemon, which flushes it now and then.
    let log = || {
        let mut image = image(&place.home().join("store"));
        image.retain(|path, _| !path.iter().any(|part| part == "view"));
        image
    };
    // Failed deliveries would be recorded, attempt by attempt.
    place.ok(&["webhooks", "remove", place.id("whk_")]);
    // HEAD follows the last write of the journal by a second.
    let changed = |file: &str| fs::metadata(place.home().join("store").join(file)).unwrap().modified().unwrap();
    until(|| changed("HEAD") > changed("journal/0000000000.rkj"));
    let before = log();
    let mut verbs = verbs(&place);
    verbs.retain(|verb| verb[0] != "webhooks");
    for verb in verbs.into_iter().chain([vec!["log", "verify"], vec!["log", "export"]]) {
        let mut command = place.command(&verb);
        let output = command.env_remove("RULEKEEP_OPERATOR_KEY").output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_same(&before, &log(), &verb);
    }
}
