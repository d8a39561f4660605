//! Tampering with a store that was closed cleanly: whatever is changed, cut off,
//! swapped or taken away is found when it is opened, and no decision is made on it.

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{Sample, code, decide, frames, in_folder, journal, reading};
use rulekeep::{Decision, Governor, Outcome};
use sha2::{Digest, Sha256};

/// Decisions in the samples here.
const DECISIONS: usize = 24;

/// Asserts that the folder cannot pass for an intact store: it does not open, or
/// it says that it is broken and decides nothing. Never is it a store that works.
fn assert_found(folder: &Path, what: &str) {
    // A second look must find it too: nothing may have been mended or forgotten meanwhile.
    for look in ["first", "second"] {
        let governor = match Sample::builder().auto_register().open(folder) {
            Ok(governor) => governor,
            Err(error) => {
                assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}, {look} look: {error}");
                continue;
            }
        };
        let found = governor.verify().unwrap();
        assert!(!found.valid, "{what}, {look} look: the log passes for valid with {} records", found.records);
        assert!(found.first_broken.is_some(), "{what}, {look} look: no place is named");
        assert_eq!(code(governor.enforce(&reading("a"))), "CHAIN_BROKEN", "{what}, {look} look");
        assert_eq!(code(governor.enforce(&reading("new"))), "CHAIN_BROKEN", "{what}, {look} look");
        let stats = governor.stats("a", ..).unwrap();
        assert!(!stats.chain_integrity, "{what}, {look} look: the statistics call the chain whole");
    }
}

/// Changes a copy of the sample's journal and asserts that this is found, with the view and without.
fn assert_change_is_found(sample: &Sample, what: &str, change: impl Fn(&mut Vec<u8>)) {
    for with_view in [true, false] {
        let store = sample.copy();
        if !with_view {
            fs::remove_dir_all(store.path().join("view")).unwrap();
        }
        let mut bytes = fs::read(journal(store.path())).unwrap();
        let before = bytes.clone();
        change(&mut bytes);
        assert_ne!(bytes, before, "{what}: nothing was changed");
        fs::write(journal(store.path()), bytes).unwrap();
        assert_found(store.path(), &format!("{what}, {}", if with_view { "with a view" } else { "without a view" }));
    }
}

/// Flips one bit at each place, in a fresh store each, and asserts that it is found.
fn assert_flips_are_found(sample: &Sample, places: &[usize]) {
    let intact = fs::read(journal(&sample.folder())).unwrap();
    let head = fs::read(sample.folder().join("HEAD")).unwrap();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(at) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            let store = tempfile::tempdir().unwrap();
            fs::create_dir(store.path().join("journal")).unwrap();
            fs::write(store.path().join("HEAD"), &head).unwrap();
            let mut bytes = intact.clone();
            bytes[*at] ^= 1 << (at % 8);
            fs::write(journal(store.path()), bytes).unwrap();
            let what = format!("bit {} of byte {at} of {}", at % 8, intact.len());
            // The entry that is hit may be the agent's own registration.
            match Sample::builder().auto_register().open(store.path()) {
                Ok(governor) => {
                    assert!(!governor.verify().unwrap().valid, "{what}: the log passes for valid");
                    assert_eq!(code(governor.enforce(&reading("a"))), "CHAIN_BROKEN", "{what}");
                }
                Err(error) => assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}: {error}"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
}

/// A frame's bytes with another body: the checksum fixed, and the link too where asked for.
fn forged(frame: &[u8], body: &[u8], previous_link: Option<&[u8]>) -> Vec<u8> {
    let number = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
    let evidence = &frame[64 + number(20)..];
    let mut header = frame[..28].to_vec();
    header[20..24].copy_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    let link = match previous_link {
        Some(previous) => {
            let digest = Sha256::digest(body);
            Sha256::new().chain_update(previous).chain_update(&header).chain_update(digest).finalize().to_vec()
        }
        None => frame[32..64].to_vec(),
    };
    let mut crc = crc32fast::Hasher::new();
    for part in [&header[..], &link, body] {
        crc.update(part);
    }
    let crc = crc.finalize().to_le_bytes();
    [&header[..], &crc, &link, body, evidence].concat()
}

/// A body of a decision with another text of the same record.
fn rewritten(body: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to).into_bytes()
}

fn body(frame: &[u8]) -> &[u8] {
    let length = u32::from_le_bytes(frame[20..24].try_into().unwrap()) as usize;
    &frame[64..64 + length]
}

fn is_decision(frame: &[u8]) -> bool {
    frame[4] == 2
}

#[test]
fn the_untouched_copy_is_valid() {
    // Without this the tests below would pass on a store that is broken anyway.
    let sample = Sample::new(DECISIONS);
    let store = sample.copy();
    let governor = Sample::builder().open(store.path()).unwrap();
    assert_eq!(common::picture(&governor, &common::SAMPLE_AGENTS), sample.picture);
    assert!(governor.verify().unwrap().valid);
    assert!(governor.enforce(&reading("a")).is_ok());
    let bytes = fs::read(journal(&sample.folder())).unwrap();
    assert_eq!(frames(&bytes).last().unwrap().end, bytes.len(), "the layout that these tests go by");
}

#[test]
fn a_flipped_bit_anywhere_in_the_entries_is_found() {
    let sample = Sample::new(DECISIONS);
    let length = fs::read(journal(&sample.folder())).unwrap().len();
    // A step that is odd, so that all bits of a byte and all parts of a frame are met.
    let step = ((length - 128) / 400) | 1;
    let places: Vec<usize> = (128..length).step_by(step).collect();
    assert!(places.len() >= 300, "only {} places", places.len());
    assert_flips_are_found(&sample, &places);
}

#[test]
fn a_flipped_bit_in_any_byte_of_the_last_entry_is_found() {
    let sample = Sample::new(DECISIONS);
    let bytes = fs::read(journal(&sample.folder())).unwrap();
    let places: Vec<usize> = frames(&bytes).last().unwrap().clone().collect();
    assert_flips_are_found(&sample, &places);
}

#[test]
fn a_flipped_bit_in_any_byte_of_the_last_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let governor = common::open_with(Sample::builder(), &store);
    common::decide(&governor, "a");
    governor.close().unwrap();
    let sample = Sample { dir: folder, picture: serde_json::Value::Null, ids: Vec::new() };
    let bytes = fs::read(journal(&store)).unwrap();
    let last = frames(&bytes).last().unwrap().clone();
    assert!(is_decision(&bytes[last.clone()]));
    assert_flips_are_found(&sample, &last.collect::<Vec<_>>());
}

#[test]
fn a_flipped_bit_in_any_byte_of_a_segments_header_is_found() {
    let sample = Sample::new(3);
    assert_flips_are_found(&sample, &(0..128).collect::<Vec<_>>());
}

#[test]
fn a_flipped_bit_in_any_byte_of_the_head_is_found() {
    let sample = Sample::new(3);
    let intact = fs::read(sample.folder().join("HEAD")).unwrap();
    for at in 0..intact.len() {
        let store = sample.copy();
        fs::remove_dir_all(store.path().join("view")).unwrap();
        let mut head = intact.clone();
        head[at] ^= 1 << (at % 8);
        fs::write(store.path().join("HEAD"), head).unwrap();
        assert_found(store.path(), &format!("byte {at} of HEAD"));
    }
}

#[test]
fn a_last_entry_that_was_cut_off_is_missed() {
    let sample = Sample::new(DECISIONS);
    for back in [1, 2, 10] {
        assert_change_is_found(&sample, &format!("the last {back} cut off"), |bytes| {
            let frames = frames(bytes);
            bytes.truncate(frames[frames.len() - back].start);
        });
        assert_change_is_found(&sample, &format!("the last {back} zeroed"), |bytes| {
            let frames = frames(bytes);
            bytes[frames[frames.len() - back].start..].fill(0);
        });
    }
}

#[test]
fn a_last_entry_that_was_cut_short_is_missed() {
    let sample = Sample::new(DECISIONS);
    let last = frames(&fs::read(journal(&sample.folder())).unwrap()).last().unwrap().clone();
    for keep in [1, 4, 63, 64, 65, last.len() - 1] {
        assert_change_is_found(&sample, &format!("{keep} bytes kept"), |bytes| bytes.truncate(last.start + keep));
        assert_change_is_found(&sample, &format!("{keep} bytes kept before zeros"), |bytes| {
            bytes[last.start + keep..].fill(0);
        });
    }
}

#[test]
fn an_entry_that_was_taken_out_of_the_middle_is_missed() {
    let sample = Sample::new(DECISIONS);
    for place in [0, 1, 10] {
        assert_change_is_found(&sample, &format!("entry {place} taken out"), |bytes| {
            let frame = frames(bytes)[place].clone();
            bytes.drain(frame);
        });
        assert_change_is_found(&sample, &format!("entry {place} zeroed"), |bytes| {
            let frame = frames(bytes)[place].clone();
            bytes[frame].fill(0);
        });
    }
}

#[test]
fn two_entries_that_were_swapped_are_found() {
    let sample = Sample::new(DECISIONS);
    for (first, second) in [(5, 6), (5, 20), (0, 5)] {
        assert_change_is_found(&sample, &format!("entries {first} and {second} swapped"), |bytes| {
            let frames = frames(bytes);
            let (a, b) = (frames[first].clone(), frames[second].clone());
            let middle = bytes[a.end..b.start].to_vec();
            let swapped = [&bytes[b.clone()], &middle, &bytes[a.clone()]].concat();
            bytes.splice(a.start..b.end, swapped);
        });
    }
}

#[test]
fn an_entry_that_stands_twice_is_found() {
    let sample = Sample::new(DECISIONS);
    assert_change_is_found(&sample, "the last entry once more", |bytes| {
        let frame = frames(bytes).last().unwrap().clone();
        bytes.extend_from_within(frame);
    });
    assert_change_is_found(&sample, "an entry of the middle once more", |bytes| {
        let frame = frames(bytes)[7].clone();
        let copy = bytes[frame.clone()].to_vec();
        bytes.splice(frame.end..frame.end, copy);
    });
}

#[test]
fn what_was_added_behind_the_end_is_no_entry() {
    let sample = Sample::new(DECISIONS);
    let other = Sample::new(DECISIONS + 1);
    let foreign = fs::read(journal(&other.folder())).unwrap();
    let last = foreign[frames(&foreign).last().unwrap().clone()].to_vec();
    assert_change_is_found(&sample, "an entry of another store behind the end", |bytes| {
        bytes.extend_from_slice(&last);
    });
}

#[test]
fn a_record_edited_with_its_checksum_is_found() {
    let sample = Sample::new(DECISIONS);
    let edits =
        [("DENY", "ALLOW"), ("\"trustScore\":", "\"trustScore\":1"), ("\"entityId\":\"b\"", "\"entityId\":\"c\"")];
    for (from, to) in edits {
        assert_change_is_found(&sample, &format!("{from} made {to}"), |bytes| {
            let all = frames(bytes);
            let chosen = all.iter().find(|range| {
                let frame = &bytes[(*range).clone()];
                is_decision(frame) && String::from_utf8_lossy(body(frame)).contains(from)
            });
            let range = chosen.expect("a record with that text").clone();
            let frame = bytes[range.clone()].to_vec();
            let edited = forged(&frame, &rewritten(body(&frame), from, to), None);
            bytes.splice(range, edited);
        });
    }
}

#[test]
fn a_record_edited_with_its_link_contradicts_the_next_one() {
    let sample = Sample::new(DECISIONS);
    assert_change_is_found(&sample, "link fixed", |bytes| {
        let all = frames(bytes);
        let place = (1..all.len() - 1).find(|place| is_decision(&bytes[all[*place].clone()])).unwrap();
        let previous = bytes[all[place - 1].start + 32..all[place - 1].start + 64].to_vec();
        let frame = bytes[all[place].clone()].to_vec();
        let edited =
            forged(&frame, &rewritten(body(&frame), "\"trustTier\":\"T4\"", "\"trustTier\":\"T5\""), Some(&previous));
        bytes.splice(all[place].clone(), edited);
    });
}

#[test]
fn a_last_record_edited_with_its_link_contradicts_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let governor = common::open_with(Sample::builder(), &folder.path().join("store"));
    common::decide(&governor, "a");
    governor.close().unwrap();
    let sample = Sample { dir: folder, picture: serde_json::Value::Null, ids: Vec::new() };
    assert_change_is_found(&sample, "the last record and its link", |bytes| {
        let all = frames(bytes);
        let (before, last) = (all[all.len() - 2].clone(), all[all.len() - 1].clone());
        let previous = bytes[before.start + 32..before.start + 64].to_vec();
        let frame = bytes[last.clone()].to_vec();
        let edited = forged(&frame, &rewritten(body(&frame), "ALLOW", "DENY"), Some(&previous));
        bytes.splice(last, edited);
    });
}

#[test]
fn evidence_that_was_exchanged_is_found() {
    let sample = Sample::new(DECISIONS);
    assert_change_is_found(&sample, "evidence", |bytes| {
        let all = frames(bytes);
        let range = all.iter().find(|range| is_decision(&bytes[(*range).clone()])).unwrap().clone();
        let text = String::from_utf8_lossy(&bytes[range.clone()]).into_owned();
        assert!(text.contains("grantedCapabilities"));
        let at = bytes[range.clone()].windows(13).rposition(|window| window == b"document:read").unwrap();
        bytes[range.start + at..range.start + at + 13].copy_from_slice(b"document:fear");
    });
}

#[test]
fn a_missing_head_is_found() {
    let sample = Sample::new(DECISIONS);
    for with_view in [true, false] {
        let store = sample.copy();
        fs::remove_file(store.path().join("HEAD")).unwrap();
        if !with_view {
            fs::remove_dir_all(store.path().join("view")).unwrap();
        }
        assert_found(store.path(), &format!("no HEAD, view: {with_view}"));
    }
}

#[test]
fn a_head_of_another_store_is_found() {
    let (sample, other) = (Sample::new(DECISIONS), Sample::new(DECISIONS));
    let store = sample.copy();
    fs::copy(other.folder().join("HEAD"), store.path().join("HEAD")).unwrap();
    assert_found(store.path(), "another store's HEAD");
}

#[test]
fn a_journal_of_another_store_is_found() {
    let (sample, other) = (Sample::new(DECISIONS), Sample::new(DECISIONS));
    let store = sample.copy();
    fs::copy(journal(&other.folder()), journal(store.path())).unwrap();
    assert_found(store.path(), "another store's journal");
}

#[test]
fn a_journal_that_was_put_back_to_an_older_day_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let governor = common::open_with(Sample::builder(), &store);
    common::decide(&governor, "a");
    governor.close().unwrap();
    let old = fs::read(journal(&store)).unwrap();
    let old_head = fs::read(store.join("HEAD")).unwrap();
    let governor = common::open_with(Sample::builder(), &store);
    common::decide(&governor, "a");
    governor.close().unwrap();

    fs::write(journal(&store), old).unwrap();
    assert_found(&store, "an older journal under a newer HEAD");
    fs::write(store.join("HEAD"), old_head).unwrap();
    assert_found(&store, "an older journal and HEAD under a newer view");
}

/// Asserts that a folder that held a log does not open as if it had never held one.
fn assert_never_opens_empty(folder: &Path, what: &str) {
    for look in ["first", "second"] {
        match Governor::builder().open(folder) {
            Err(error) => assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}: {error}"),
            Ok(governor) => assert!(!governor.verify().unwrap().valid, "{what}: it opened empty at the {look} look"),
        }
    }
}

#[test]
fn a_store_without_its_journal_never_opens_empty() {
    let sample = Sample::new(DECISIONS);
    let remove_folder = |folder: &Path, name: &str| fs::remove_dir_all(folder.join(name)).unwrap();

    let store = sample.copy();
    remove_folder(store.path(), "journal");
    assert_never_opens_empty(store.path(), "no journal");

    let store = sample.copy();
    remove_folder(store.path(), "journal");
    remove_folder(store.path(), "view");
    assert_never_opens_empty(store.path(), "only HEAD");

    let store = sample.copy();
    remove_folder(store.path(), "journal");
    fs::remove_file(store.path().join("HEAD")).unwrap();
    assert_never_opens_empty(store.path(), "only the view");

    let store = sample.copy();
    fs::remove_file(journal(store.path())).unwrap();
    assert_never_opens_empty(store.path(), "an empty journal folder");

    let store = sample.copy();
    fs::remove_file(journal(store.path())).unwrap();
    fs::remove_file(store.path().join("HEAD")).unwrap();
    assert_never_opens_empty(store.path(), "an empty journal folder and no HEAD");
}

#[test]
fn a_journal_that_was_emptied_never_opens_empty() {
    let sample = Sample::new(DECISIONS);
    for (keep, with_head, with_view) in [
        (0, true, true),
        (0, true, false),
        (0, false, true),
        (64, true, false),
        (128, true, true),
        (128, true, false),
        (128, false, true),
    ] {
        let store = sample.copy();
        let file = fs::OpenOptions::new().write(true).open(journal(store.path())).unwrap();
        file.set_len(keep).unwrap();
        if !with_head {
            fs::remove_file(store.path().join("HEAD")).unwrap();
        }
        if !with_view {
            fs::remove_dir_all(store.path().join("view")).unwrap();
        }
        assert_never_opens_empty(store.path(), &format!("{keep} bytes kept, HEAD {with_head}, view {with_view}"));
    }
}

/// A view is made anew from the journal; whoever changes it, checksums and
/// all, must not speak for the journal.
#[test]
fn a_view_changed_with_its_checksums_does_not_replace_journal() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    for number in 0..6 {
        let proof_id = decide(&governor, "a");
        let outcome = if number < 2 { Outcome::Success } else { Outcome::Failure };
        governor.report(&proof_id, outcome).unwrap();
    }
    governor.agents().suspend("a", "for good reasons").unwrap();
    let before = serde_json::to_value(governor.stats("a", ..).unwrap()).unwrap();
    governor.close().unwrap();
    drop(governor);

    // With the size of segments that the store gave it.
    let view = sled::Config::new().path(folder.path().join("view")).segment_size(256 << 10).open().unwrap();
    let mut changed = 0;
    for entry in view.scan_prefix("s") {
        let (key, value) = entry.unwrap();
        let mut block = value[4..].to_vec();
        // The counts by decision, risk and outcome follow four numbers of 8 bytes and two of 4: two successes become four.
        let counts: Vec<usize> = (40..block.len()).step_by(2).filter(|at| block[*at] != 0).collect();
        assert_eq!(counts.iter().map(|at| block[*at]).sum::<u8>(), 6);
        block.swap(counts[0], counts[1]);
        let crc = crc32fast::hash(&block).to_le_bytes();
        view.insert(key, [&crc[..], &block].concat()).unwrap();
        changed += 1;
    }
    assert_eq!(changed, 1);
    view.flush().unwrap();
    drop(view);

    let governor = in_folder(folder.path());
    assert_eq!(serde_json::to_value(governor.stats("a", ..).unwrap()).unwrap(), before);
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Deny);
    assert!(governor.verify().unwrap().valid);
}
