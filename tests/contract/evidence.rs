//! What is kept as evidence: for how long, how the text that was asked, and nothing of secrets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;
use rulekeep::intent::Input;
use rulekeep::intent::InputText;
use rulekeep::preview::ReplayRange;
use rulekeep::proof::{EvidenceSelection, ExportRange, InputEvidence, verify_export};
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Durability, Governor, GovernorBuilder, Intent, Outcome, PolicySet, RiskLevel};
use serde_json::{Map, Value, json};

/// A clock that stands where it was put.
#[derive(Clone, Default)]
struct Still(Arc<AtomicI64>);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(self.0.load(Ordering::Relaxed))
    }
}

fn at(hours: i64) -> Timestamp {
    Timestamp::from(chrono::DateTime::from_timestamp(1_800_000_000 + hours * 3600, 0).unwrap())
}

fn builder() -> GovernorBuilder {
    Governor::builder().auto_register().durability(Durability::Buffered)
}

fn agent(name: &str) -> EvidenceSelection {
    EvidenceSelection::Agent(name.parse().unwrap())
}

#[test]
fn an_erasure_that_touches_evidence_to_be_kept_is_refused_whole() {
    let clock = Still::default();
    let day = Duration::from_secs(24 * 3600);
    let governor = builder().clock(clock.clone()).retain_evidence_for(day).open_in_memory().unwrap();
    let old = governor.enforce_input("ann", "Summarize the notes").unwrap().enforcement.proof_id;
    clock.0.store(12, Ordering::Relaxed);
    let young = governor.enforce_input("ann", "Summarize the notes").unwrap().enforcement.proof_id;
    clock.0.store(30, Ordering::Relaxed);
    governor.log().flush().unwrap();
    let entries = governor.log().journal().entries;
    for selection in [agent("ann"), EvidenceSelection::Records(vec![old, young]), EvidenceSelection::Before(at(20))] {
        let refused = governor.log().erase_evidence(&selection, "asked for").unwrap_err();
        assert_eq!(refused.code(), "CONFLICT");
        let message = refused.to_string();
        assert!(message.contains("1 of the selected records") && message.contains(&at(36).to_string()), "{message}");
        assert!(governor.log().evidence(&old).is_ok() && governor.log().evidence(&young).is_ok());
    }
    assert_eq!(governor.log().journal().entries, entries, "and nothing is noted");
    assert_eq!(governor.log().erase_evidence(&EvidenceSelection::Before(at(12)), "asked for").unwrap(), 1);
    assert!(governor.log().evidence(&old).is_err() && governor.log().evidence(&young).is_ok());
    clock.0.store(36, Ordering::Relaxed);
    assert_eq!(governor.log().erase_evidence(&agent("ann"), "asked for").unwrap(), 1);
}

#[test]
fn before_a_date_nothing_is_erased() {
    let clock = Still::default();
    let builder = builder().clock(clock.clone()).retain_evidence_until(at(100)).retain_evidence_for(Duration::ZERO);
    let governor = builder.open_in_memory().unwrap();
    governor.enforce_input("ann", "Summarize the notes").unwrap();
    clock.0.store(99, Ordering::Relaxed);
    let refused = governor.log().erase_evidence(&agent("ann"), "asked for").unwrap_err();
    assert!(refused.to_string().contains(&at(100).to_string()), "{refused}");
    clock.0.store(100, Ordering::Relaxed);
    assert_eq!(governor.log().erase_evidence(&agent("ann"), "asked for").unwrap(), 1);
}

#[test]
fn the_text_that_was_asked_is_kept_as_it_was_set() {
    let (text, part) = ("Summarize the quarterly zebra notes of Kowalski", "zebra");
    for how in [InputText::No, InputText::Asked, InputText::Digest, InputText::Whole] {
        let folder = tempfile::tempdir().unwrap();
        let governor = builder().input_text(how).open(folder.path()).unwrap();
        let at_once = governor.enforce_input("ann", text).unwrap().enforcement.proof_id;
        let parsed = governor.parse("ann", text).unwrap().intent;
        // As it comes back over a wire.
        let sent = Intent::from_json(&serde_json::to_value(&parsed).unwrap()).unwrap();
        assert_eq!(sent, parsed);
        let later = governor.enforce(&sent).unwrap().proof_id;
        let intent = Intent::new("ann", "read_notes", RiskLevel::Low, ["document:read"]).unwrap();
        let by_hand = governor.enforce(&intent).unwrap().proof_id;
        for id in [at_once, later] {
            let kept = governor.log().evidence(&id).unwrap().input;
            match how {
                InputText::Whole => assert_eq!(kept, Some(InputEvidence::Text(text.to_owned()))),
                InputText::Digest => assert!(matches!(kept, Some(InputEvidence::Sha256(_)))),
                _ => assert_eq!(kept, None),
            }
            let answer = |asked| governor.log().matches_input(&id, asked).unwrap();
            let is_kept = !matches!(how, InputText::No | InputText::Asked);
            let expected = is_kept.then_some(());
            assert_eq!((answer(text), answer("other")), (expected.map(|()| true), expected.map(|()| false)));
        }
        assert_eq!(governor.log().evidence(&by_hand).unwrap().input, None);
        let mut export = Vec::new();
        governor.log().export(&ExportRange::all(), &mut export, &mut |_, _| {}).unwrap();
        assert!(verify_export(&mut export.as_slice(), &mut |_, _| {}).is_ok());
        governor.close().unwrap();
        let governor = builder().open(folder.path()).unwrap();
        assert!(governor.verify().unwrap().valid);
        assert_eq!(
            governor.log().matches_input(&later, text).unwrap().is_some(),
            matches!(how, InputText::Digest | InputText::Whole)
        );
        drop(governor);
        assert_eq!(stands_in(folder.path(), "Kowalski") && stands_in(folder.path(), part), how == InputText::Whole);
    }
}

#[test]
fn the_same_text_has_another_digest_each_time() {
    let governor = builder().input_text(InputText::Digest).open_in_memory().unwrap();
    let kept = |()| {
        let id = governor.enforce_input("ann", "Summarize the notes").unwrap().enforcement.proof_id;
        governor.log().evidence(&id).unwrap().input.unwrap()
    };
    assert_ne!(kept(()), kept(()));
}

#[test]
fn a_decision_on_masked_evidence_is_replayed_and_counted() {
    let governor = builder().open_in_memory().unwrap();
    let intent = Intent::new("ann", "read_notes", RiskLevel::Low, ["document:read"]).unwrap();
    let with_secret = intent.clone().with_context("password", "correct horse").with_context("environment", "test");
    let id = governor.enforce(&with_secret).unwrap().proof_id;
    governor.enforce(&intent).unwrap();
    let context = governor.log().evidence(&id).unwrap().intent["context"].clone();
    assert_eq!(context, json!({ "password": "***", "environment": "test" }));
    let replay = governor.policies().replay(&PolicySet::recommended().unwrap(), &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.records, replay.masked, replay.not_replayable), (2, 1, 0));
}

/// A secret of some shape, and what of it must not be found.
fn secret() -> impl Strategy<Value = (String, String)> {
    let whole = |text: String| (text.clone(), text);
    prop_oneof![
        "AKIA[A-Z0-9]{16}".prop_map(whole),
        "ghp_[A-Za-z0-9]{36}".prop_map(whole),
        "xoxb-[0-9]{11}-[A-Za-z0-9]{24}".prop_map(whole),
        "sk-proj-[A-Za-z0-9]{40}".prop_map(whole),
        "sk_live_[A-Za-z0-9]{24}".prop_map(whole),
        "eyJ[A-Za-z0-9_]{20}\\.eyJ[A-Za-z0-9_]{20}\\.[A-Za-z0-9_]{20}".prop_map(whole),
        "hunter[A-Z][a-z]{5}[0-9]{3}".prop_map(|text| (format!("postgres://user:{text}@db.example.com/x"), text)),
        "Blue[A-Z][a-z]{5}[0-9]{3}".prop_map(|text| (format!("password={text}"), text)),
        "Blue[A-Z][a-z]{5}[0-9]{3}".prop_map(|text| (format!("--password={text}"), text)),
        "[A-Za-z0-9]{40}"
            .prop_map(|text| (format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----"), text)),
        proptest::collection::vec(0..10_u32, 14).prop_map(move |digits| whole(card(&digits))),
    ]
}

/// A number of a card with its check digit.
fn card(digits: &[u32]) -> String {
    let mut digits: Vec<u32> = std::iter::once(4).chain(digits.iter().copied()).collect();
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| if place % 2 == 0 { doubled(*digit) } else { *digit })
        .sum();
    digits.push((10 - sum % 10) % 10);
    digits.iter().map(ToString::to_string).collect()
}

proptest! {
    #![proptest_config(Config { cases: 12, ..Config::default() })]

    #[test]
    fn no_file_ever_has_a_secret_that_was_given(
        secrets in proptest::collection::vec(secret(), 6), key in "[A-Za-z0-9]{20}", words in "[a-z]{3,8}( [a-z]{3,8}){0,3}",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let governor = builder().input_text(InputText::Whole).open(folder.path()).unwrap();
        let planted: Vec<&str> = secrets.iter().map(|(_, part)| part.as_str()).chain([key.as_str()]).collect();
        let text = format!("Summarize the notes {words} with {}", secrets[0].0);
        let context: Map<String, Value> = json!({
            "note": format!("{words} {} {words}", secrets[1].0),
            "deep": [{ "list": [secrets[2].0, 7] }],
            "apiKey": key,
            "repeated": format!("use {key}"),
        }).as_object().cloned().unwrap();
        let id = governor.enforce_input("ann", Input::new(&text).context(&context)).unwrap().enforcement.proof_id;
        governor.report(&id, Outcome::Failure.note(&format!("{words}: {}", secrets[3].0))).unwrap();
        let parsed = governor.parse("ann", Input::new(&text).context(&context)).unwrap().intent;
        let id = governor.enforce(&parsed.with_context("more", secrets[4].0.as_str())).unwrap().proof_id;
        governor.agents().suspend("ann", &secrets[5].0).unwrap();
        governor.agents().resume("ann", &secrets[5].0).unwrap();
        governor.log().flush().unwrap();
        for secret in &planted {
            prop_assert!(!stands_in(folder.path(), secret), "{} is in a file", secret);
        }
        prop_assert_eq!(&governor.log().evidence(&id).unwrap().intent["context"]["apiKey"], "***");
        let selection = EvidenceSelection::Records(vec![id]);
        governor.log().erase_evidence(&selection, &format!("it has {}", secrets[0].0)).unwrap();
        let replay = governor.policies().replay(&PolicySet::recommended().unwrap(), &ReplayRange::all(), |_| {}).unwrap();
        prop_assert_eq!((replay.records, replay.masked, replay.erased), (1, 1, 1));
        governor.close().unwrap();
        for secret in &planted {
            prop_assert!(!stands_in(folder.path(), secret), "{} is in a file of the closed folder", secret);
        }
    }
}

/// Whether a text stands in any file below a folder.
fn stands_in(folder: &Path, text: &str) -> bool {
    files_of(folder).values().any(|content| content.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// Every file below a folder with its content, less the zeros at its end.
fn files_of(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_of(&path));
        } else if let Ok(mut content) = fs::read(&path) {
            content.truncate(content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            files.insert(path, content);
        }
    }
    files
}
