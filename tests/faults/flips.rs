//! Bits flipped at random in every file of a store, sled's too: an error that says so, a view that was made anew, or
//! a log that says where it breaks; never a panic, and never a record less than before in a log that passes for whole.
//!
//! `RULEKEEP_FLIPS` sets how many (default 60).

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use common::{SAMPLE_AGENTS, Sample, code, picture, reading};

fn flips() -> u64 {
    std::env::var("RULEKEEP_FLIPS").ok().and_then(|flips| flips.parse().ok()).unwrap_or(60)
}

/// What came of a flip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    /// The store does not open, and says why.
    Refused,
    /// It opens, names the place, and takes nothing in.
    Broken,
    /// Everything is there.
    Whole,
    /// The same, and the view was made anew.
    WholeWithNewView,
}

#[test]
fn a_flipped_bit_in_any_file_is_told_or_costs_nothing() {
    let sample = Sample::new(60);
    let files: Vec<_> = common::files_below(&sample.folder())
        .into_iter()
        .filter(|file| fs::metadata(file).unwrap().len() > 0)
        .map(|file| file.strip_prefix(sample.folder()).unwrap().to_owned())
        .collect();
    assert!(files.iter().any(|file| file.starts_with("view")) && files.iter().any(|file| file.starts_with("journal")));
    let mut counts: BTreeMap<(String, Came), usize> = BTreeMap::new();
    let mut places = Places(6);
    for flip in 0..flips() {
        let file = &files[places.below(files.len())];
        let store = sample.copy();
        let path = store.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        // sled's log is written ahead in zeros; what was written stands in front.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
        let at = places.below(written);
        bytes[at] ^= 1 << places.below(8);
        fs::write(&path, bytes).unwrap();
        let what = format!("flip {flip}, byte {at} of {}", file.display());

        // Twice: nothing may be mended or forgotten meanwhile.
        let came = [(); 2].map(|()| {
            catch_unwind(AssertUnwindSafe(|| look(&sample, store.path(), &what)))
                .unwrap_or_else(|_| panic!("{what}: it panicked, or something is lost"))
        });
        let in_the_journal = !file.starts_with("view");
        assert!(!in_the_journal || came[0] != Came::Whole || is_padding(file, at), "{what}: it passes for whole");
        assert!(in_the_journal || came[0] >= Came::Whole, "{what}: the view is not the truth, and it counted");
        assert_eq!(came[0] >= Came::Whole, came[1] >= Came::Whole, "{what}: the second look saw something else");
        *counts.entry((file.to_string_lossy().into_owned(), came[0])).or_default() += 1;
    }
    for ((file, came), count) in counts {
        eprintln!("{file}: {count} times {came:?}");
    }
}

fn look(sample: &Sample, folder: &Path, what: &str) -> Came {
    let governor = match Sample::builder().open(folder) {
        Ok(governor) => governor,
        Err(error) => {
            assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}: {error}");
            return Came::Refused;
        }
    };
    let verification = governor.verify().unwrap();
    if !verification.valid {
        assert!(verification.first_broken.is_some(), "{what}: no place is named");
        assert_eq!(code(governor.enforce(&reading("a"))), "CHAIN_BROKEN", "{what}");
        assert!(!governor.stats("a", ..).unwrap().chain_integrity, "{what}");
        return Came::Broken;
    }
    assert!(governor.log().opening().recovered.is_none(), "{what}: an entry was taken for a torn one");
    assert_eq!(picture(&governor, &SAMPLE_AGENTS), sample.picture, "{what}");
    governor.close().unwrap();
    if folder.join("view.damaged").exists() { Came::WholeWithNewView } else { Came::Whole }
}

/// A segment's header ends in bytes that mean nothing beyond being zero.
fn is_padding(file: &Path, at: usize) -> bool {
    file.starts_with("journal") && (72..128).contains(&at)
}

/// Places at random, the same in every run.
struct Places(u64);

impl Places {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}
