//! Evidence that is erased: no file of the store's folder has a byte of it left.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use rulekeep::intent::Input;
use rulekeep::preview::ReplayRange;
use rulekeep::proof::{EvidenceSelection, ExportRange, OpenVerification, ProofId, VerificationState, verify_export};
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Durability, Error, Governor, GovernorBuilder, Intent, RiskLevel, Tier};
use serde_json::{Map, json};

/// A store of 340 decisions with much evidence: more than a segment holds, so that one is sealed.
fn with_a_sealed_segment(folder: &Path) -> (Governor, Planted) {
    let governor = open(folder);
    let mut planted = Planted::default();
    for place in 0..340 {
        planted.decide(&governor, ["ann", "bob"][place % 2], place, 50_000);
    }
    wait_for_a_sealed_segment(&governor, folder);
    (governor, planted)
}

#[test]
fn no_file_has_a_byte_left_of_what_was_erased() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, mut planted) = with_a_sealed_segment(folder.path());
    planted.decide(&governor, "ann", 340, 100);
    planted.decide(&governor, "bob", 341, 100);
    governor.log().flush().unwrap();
    assert_eq!(planted.found_in(folder.path()).len(), 342, "the markers can be seen before");
    let before = (governor.verify().unwrap().head_hash, governor.stats("ann", ..).unwrap());

    let one = planted.id("bob", 7);
    assert_eq!(governor.log().erase_evidence(&EvidenceSelection::Records(vec![one]), "asked for").unwrap(), 1);
    assert_eq!(governor.log().erase_evidence(&agent("ann"), "asked for").unwrap(), 171);
    let is_left = |place: &usize| place % 2 == 1 && *place != 7;
    let left: Vec<usize> = (0..342).filter(is_left).collect();
    assert_eq!(planted.found_in(folder.path()), left, "while it runs");
    let verification = governor.verify().unwrap();
    assert!(verification.valid, "{:?}", verification.first_broken);
    assert_eq!((verification.head_hash, governor.stats("ann", ..).unwrap()), before);
    let answer = governor.log().evidence(&one).unwrap_err();
    assert!(matches!(&answer, Error::EvidenceErased { proof_id } if *proof_id == one.to_string()));
    assert_eq!((answer.code(), answer.http_status()), ("PROOF_NOT_FOUND", 404));
    governor.close().unwrap();
    assert_eq!(planted.found_in(folder.path()), left, "closed");

    let governor = open(folder.path());
    let verification = governor.verify().unwrap();
    assert!(verification.valid, "{:?}", verification.first_broken);
    assert_eq!(planted.found_in(folder.path()), left, "opened again");
    assert!(governor.log().evidence(&planted.id("bob", 9)).is_ok());
    let replay =
        governor.policies().replay(&rulekeep::PolicySet::recommended().unwrap(), &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.erased, replay.not_replayable), (172, 0));
    let mut export = Vec::new();
    governor.log().export(&ExportRange::all(), &mut export, &mut |_, _| {}).unwrap();
    let checked = verify_export(&mut export.as_slice(), &mut |_, _| {}).unwrap();
    assert_eq!((checked.records, checked.without_evidence), (342, 172));
    let everything = EvidenceSelection::Before(Timestamp::from(chrono::Utc::now() + chrono::TimeDelta::days(1)));
    assert_eq!(governor.log().erase_evidence(&everything, "asked for").unwrap(), 170);
    governor.close().unwrap();
    assert_eq!(planted.found_in(folder.path()), [0_usize; 0]);
    assert!(open(folder.path()).verify().unwrap().valid);
}

#[test]
fn evidence_from_a_restored_backup_is_erased_again_at_opening() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, planted) = with_a_sealed_segment(folder.path());
    let sealed = folder.path().join("journal/0000000000.rke");
    let backup = fs::read(&sealed).unwrap();
    governor.log().erase_evidence(&agent("ann"), "asked for").unwrap();
    governor.close().unwrap();
    let left: Vec<usize> = (0..340).filter(|place| place % 2 == 1).collect();

    let behind = || builder().verification(OpenVerification::Behind);
    for (what, builder) in [("with the index", builder()), ("without it", builder()), ("verified behind", behind())] {
        fs::write(&sealed, &backup).unwrap();
        let found = planted.found_in(folder.path()).len() - left.len();
        assert!(found > 100, "{what}: {found} are there again");
        if what == "without it" {
            fs::remove_dir_all(folder.path().join("view")).unwrap();
        }
        let governor = builder.open(folder.path()).unwrap();
        while governor.log().verification() != VerificationState::Verified {
            std::thread::yield_now();
        }
        assert_eq!(planted.found_in(folder.path()), left, "{what}");
        let told = format!("evidence of {found} records");
        assert!(governor.status().warnings.iter().any(|warning| warning.contains(&told)), "{what}: {told}");
        if what != "verified behind" {
            assert_eq!(governor.log().opening().erased_evidence_found, found as u64, "{what}");
        }
        let answer = governor.log().evidence(&planted.id("ann", 0)).unwrap_err();
        assert!(matches!(answer, Error::EvidenceErased { .. }), "{what}: {answer}");
        let verification = governor.verify().unwrap();
        assert_eq!((verification.valid, verification.erased_evidence_found), (true, 0), "{what}");
        governor.close().unwrap();
        assert_eq!(planted.found_in(folder.path()), left, "{what}, closed");
    }
    let governor = open(folder.path());
    assert_eq!((governor.log().opening().erased_evidence_found, governor.status().warnings.len()), (0, 0));
}

#[test]
fn an_erasure_of_records_that_are_not_there_erases_nothing() {
    let governor = Governor::builder().auto_register().open_in_memory().unwrap();
    let other = Governor::builder().auto_register().open_in_memory().unwrap();
    let mut planted = Planted::default();
    planted.decide(&governor, "ann", 0, 10);
    let foreign = other.enforce_input("ann", "Summarize the notes").unwrap().enforcement.proof_id;
    let ids = EvidenceSelection::Records(vec![planted.id("ann", 0), foreign]);
    assert_eq!(governor.log().erase_evidence(&ids, "asked for").unwrap_err().code(), "PROOF_NOT_FOUND");
    assert!(governor.log().evidence(&planted.id("ann", 0)).is_ok());
    assert_eq!(governor.log().erase_evidence(&agent("nobody"), "asked for").unwrap(), 0);
    let many = EvidenceSelection::Records(vec![foreign; 10_001]);
    assert_eq!(governor.log().erase_evidence(&many, "asked for").unwrap_err().code(), "INVALID_INPUT");
}

#[test]
fn an_export_with_erased_evidence_is_read_back_as_it_is() {
    let governor = Governor::builder().auto_register().open_in_memory().unwrap();
    let mut planted = Planted::default();
    for place in 0..12 {
        planted.decide(&governor, ["ann", "bob"][place % 2], place, 10);
    }
    let export = |governor: &Governor| {
        let mut export = Vec::new();
        governor.log().export(&ExportRange::all().with_entries(), &mut export, &mut |_, _| {}).unwrap();
        String::from_utf8(export).unwrap()
    };
    let before = export(&governor);
    assert_eq!(governor.log().erase_evidence(&agent("ann"), "asked for").unwrap(), 6);
    let after = export(&governor);
    assert_eq!(after.matches("\"evidence\":null").count(), 6);
    assert!(after.contains("\"kind\":\"erasure\""));
    assert_eq!(verify_export(&mut after.as_bytes(), &mut |_, _| {}).unwrap().without_evidence, 6);

    let folder = tempfile::tempdir().unwrap();
    let import = |name: &str, export: &str| {
        rulekeep::maintenance::import(folder.path().join(name), &mut export.as_bytes(), &mut |_, _| {})
    };
    import("after", &after).unwrap();
    let imported = builder().open(folder.path().join("after")).unwrap();
    let verification = imported.verify().unwrap();
    assert!(verification.valid, "{:?}", verification.first_broken);
    assert_eq!(verification.head_hash, governor.verify().unwrap().head_hash);
    assert!(matches!(imported.log().evidence(&planted.id("ann", 0)), Err(Error::EvidenceErased { .. })));
    assert_eq!(
        imported.log().evidence(&planted.id("bob", 1)).unwrap(),
        governor.log().evidence(&planted.id("bob", 1)).unwrap()
    );
    assert_eq!(export(&imported), after);

    // Evidence that is left out where no erasure in the export covers it.
    let lines = before.lines().zip(after.lines()).map(
        |(before, after)| {
            if after.contains("\"evidence\":null") { after } else { before }
        },
    );
    let cut: Vec<&str> = lines.collect();
    let forged = with_end(&cut[..cut.len() - 1], before.lines().last().unwrap());
    assert!(verify_export(&mut forged.as_bytes(), &mut |_, _| {}).is_ok(), "records alone may lack their evidence");
    let refused = import("forged", &forged).unwrap_err();
    assert_eq!(refused.code(), "INVALID_INPUT");
    assert!(refused.to_string().contains("evidenceHash"), "{refused}");
    assert!(!folder.path().join("forged").exists());
}

/// The lines with an end that says of them what it must.
fn with_end(lines: &[&str], end: &str) -> String {
    use sha2::Digest as _;
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    let digest = hex::encode(sha2::Sha256::digest(text.as_bytes()));
    let start = end.find("sha256\":\"").unwrap();
    format!("{text}{}sha256\":\"sha256:{digest}\"}}\n", &end[..start])
}

fn agent(name: &str) -> EvidenceSelection {
    EvidenceSelection::Agent(name.parse().unwrap())
}

fn builder() -> GovernorBuilder {
    Governor::builder().durability(Durability::Buffered)
}

fn open(folder: &Path) -> Governor {
    let governor = builder().open(folder).unwrap();
    for name in ["ann", "bob"] {
        let registered = governor.agents().register(Agent::new(name).at_tier(Tier::T4));
        assert!(registered.is_ok() || governor.agents().get(name).is_ok());
    }
    governor
}

fn wait_for_a_sealed_segment(governor: &Governor, folder: &Path) {
    let is_sealed = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rks");
    while !files_of(&folder.join("journal")).keys().any(is_sealed)
        || files_of(&folder.join("journal")).contains_key(&folder.join("journal/0000000000.rkj"))
    {
        governor.log().flush().unwrap();
        std::thread::yield_now();
    }
}

/// Texts that were put into what was asked, and the records of it.
#[derive(Default)]
struct Planted {
    ids: BTreeMap<(String, usize), ProofId>,
}

impl Planted {
    /// Decides once by words and context or by an intent, with a marker and some text that does not compress.
    fn decide(&mut self, governor: &Governor, agent: &str, place: usize, filler: usize) {
        let mut filling = String::with_capacity(filler);
        let mut state = place as u64 + 1;
        while filling.len() < filler {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            filling.extend([(state >> 38).to_string().as_str(), " "]);
        }
        let (text, marker) = (format!("Summarize the {} notes", word(place)), marker(place));
        let verdict = if place.is_multiple_of(3) {
            let intent = Intent::new(agent, "summarize_notes", RiskLevel::Low, ["document:read"]).unwrap();
            governor.enforce(&intent.with_context("note", marker).with_context("filling", filling)).unwrap()
        } else {
            let mut context = Map::new();
            context.insert("about".to_owned(), json!({ "notes": [marker], "filling": filling }));
            governor.enforce_input(agent, Input::new(&text).context(&context)).unwrap().enforcement
        };
        self.ids.insert((agent.to_owned(), place), verdict.proof_id);
    }

    fn id(&self, agent: &str, place: usize) -> ProofId {
        self.ids[&(agent.to_owned(), place)]
    }

    /// The places of which a half of a marker or word stands in any file, at any depth. Where the files are compressed a few
    /// letters of one may have come to be a mention of another.
    fn found_in(&self, folder: &Path) -> Vec<usize> {
        let found: HashSet<Vec<u8>> = files_of(folder).values().flat_map(|content| halves_in(content)).collect();
        let is_found = |text: &str| halves_of(text.as_bytes()).any(|half| found.contains(half));
        let places: BTreeSet<usize> = self.ids.keys().map(|(_, place)| *place).collect();
        places.into_iter().filter(|place| is_found(&marker(*place)) || is_found(&word(*place))).collect()
    }
}

fn halves_of(marker: &[u8]) -> impl Iterator<Item = &[u8]> {
    marker.chunks(8)
}

/// Everything that could be half a marker.
fn halves_in(content: &[u8]) -> Vec<Vec<u8>> {
    let runs = content.split(|byte| !(b'a'..=b'p').contains(byte)).filter(|run| run.len() >= 8);
    runs.flat_map(|run| run.windows(8)).map(<[u8]>::to_vec).collect()
}

fn marker(place: usize) -> String {
    let mut number = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let letters = number.to_le_bytes().map(|byte| format!("{}{}", letter(byte >> 4), letter(byte & 15)));
    letters.concat()
}

fn word(place: usize) -> String {
    marker(place + 1_000_000)
}

fn letter(number: u8) -> char {
    char::from(b'a' + number)
}

/// Every file below a folder with its content.
fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_of(&path));
        } else if let Ok(content) = fs::read(&path) {
            files.insert(path, content);
        }
    }
    files
}
