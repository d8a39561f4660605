//! What bad input gets: an error that says what was wrong, and a governor, a
//! folder and a chain that are as they were before.

use crate::common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{
    ChildProcess, SAMPLE_AGENTS, Sample, builder, child_folder, code, decide, error, in_folder, in_memory, journal,
    picture, reading, say,
};
use rulekeep::intent::Input;
use rulekeep::proof::{ProofId, Sequence};
use rulekeep::status::Health;
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Error, Governor, Outcome, PolicySet, ProofQuery, RiskLevel};
use serde_json::{Map, Value, json};

const MAX_BYTES: usize = 64 * 1024;

/// A context of so many levels: an empty object is one.
fn nested(levels: usize) -> Map<String, Value> {
    let Value::Object(context) = (1..levels).fold(json!({}), |inner, _| json!({ "k": inner })) else { unreachable!() };
    context
}

/// A context whose JSON has so many bytes.
fn sized(bytes: usize) -> Map<String, Value> {
    let frame = json!({ "k": "" }).to_string().len();
    let Value::Object(context) = json!({ "k": "x".repeat(bytes - frame) }) else { unreachable!() };
    context
}

/// A sentence of so many bytes.
fn sentence(bytes: usize) -> String {
    let mut text = "Read the file. ".repeat(bytes / 15 + 1);
    text.truncate(bytes);
    text
}

mod requests {
    use super::*;

    #[test]
    fn an_empty_or_blank_input_is_invalid_input() {
        let governor = in_memory();
        for input in ["", " ", "\n\t \u{3000}"] {
            assert_eq!(code(governor.parse("a", input)), "INVALID_INPUT", "{input:?}");
            assert_eq!(code(governor.enforce_input("a", input)), "INVALID_INPUT", "{input:?}");
        }
        assert_eq!(governor.status().metrics.proof_chain_length, 0);
    }

    #[test]
    fn a_name_that_would_be_read_back_as_something_else_is_refused() {
        let governor = in_memory();
        let reserved = json!({ "$serde_json::private::RawValue": "[1]" });
        let deep = json!([{ "y": reserved }]);
        for value in [reserved, deep] {
            let refused = error(governor.enforce(&reading("a").with_context("x", value.clone())));
            assert_eq!(refused.code(), "INVALID_INTENT", "{refused}");
            let refused = error(governor.agents().register(Agent::new("x").with_attribute("t", value)));
            assert_eq!(refused.code(), "INVALID_INPUT", "{refused}");
        }
        assert_eq!(governor.status().metrics.proof_chain_length, 0);
    }

    #[test]
    fn an_input_of_64_kib_is_accepted_and_one_byte_more_is_not() {
        let governor = in_memory();
        assert!(governor.parse("a", &sentence(MAX_BYTES)).is_ok());
        let error = error(governor.parse("a", &sentence(MAX_BYTES + 1)));
        assert_eq!((error.code(), error.http_status()), ("PAYLOAD_TOO_LARGE", 413));
        assert_eq!(error.details(), Some(json!({ "size": MAX_BYTES + 1, "limit": MAX_BYTES })));
        assert_eq!(code(governor.enforce_input("a", &sentence(MAX_BYTES + 1))), "PAYLOAD_TOO_LARGE");
    }

    #[test]
    fn a_context_of_an_input_is_accepted_32_levels_deep_and_not_33() {
        let governor = in_memory();
        assert!(governor.parse("a", Input::new("Read the file").context(&nested(32))).is_ok());
        let error = error(governor.parse("a", Input::new("Read the file").context(&nested(33))));
        assert_eq!((error.code(), error.details()), ("INVALID_INPUT", Some(json!({ "field": "context" }))));
        assert_eq!(
            code(governor.enforce_input("a", Input::new("Read the file").context(&nested(33)))),
            "INVALID_INPUT"
        );
    }

    #[test]
    fn a_context_of_an_input_is_accepted_up_to_64_kib() {
        let governor = in_memory();
        assert!(governor.parse("a", Input::new("Read the file").context(&sized(MAX_BYTES))).is_ok());
        let too_large = governor.parse("a", Input::new("Read the file").context(&sized(MAX_BYTES + 1)));
        assert_eq!(code(too_large), "PAYLOAD_TOO_LARGE");
    }

    #[test]
    fn a_context_of_an_intent_has_the_same_limits() {
        let governor = in_memory();
        let with = |context: Map<String, Value>| {
            let mut intent = reading("a");
            intent.context = context;
            governor.enforce(&intent)
        };
        assert!(with(nested(32)).is_ok());
        let error = with(nested(33)).unwrap_err();
        assert_eq!((error.code(), error.details()), ("INVALID_INTENT", Some(json!({ "field": "context" }))));
        assert!(with(sized(MAX_BYTES)).is_ok());
        assert_eq!(code(with(sized(MAX_BYTES + 1))), "PAYLOAD_TOO_LARGE");
        assert_eq!(governor.status().metrics.proof_chain_length, 2);
    }

    #[test]
    fn what_parsing_accepts_enforcing_accepts_in_either_form() {
        let governor = in_memory();
        for context in [nested(32), sized(MAX_BYTES)] {
            assert!(governor.enforce_input("a", Input::new("Read the file").context(&context)).is_ok());
            let parsed = governor.parse("a", Input::new("Read the file").context(&context)).unwrap();
            if let Err(error) = governor.enforce(&parsed.intent) {
                panic!("an intent as it was parsed is refused: {error}");
            }
        }
    }

    #[test]
    fn an_unknown_agent_is_not_found_and_not_made() {
        let governor = in_memory();
        assert_eq!(code(governor.parse("nobody", "Read the file")), "AGENT_NOT_FOUND");
        assert_eq!(code(governor.enforce(&reading("nobody"))), "AGENT_NOT_FOUND");
        assert_eq!(code(governor.enforce_input("nobody", "Read the file")), "AGENT_NOT_FOUND");
        assert_eq!(code(governor.policies().explain(&reading("nobody"))), "AGENT_NOT_FOUND");
        assert_eq!(code(governor.agents().suspend("nobody", "")), "AGENT_NOT_FOUND");
        let error = governor.agents().get("nobody").unwrap_err();
        assert_eq!(error.details(), Some(json!({ "agentId": "nobody" })));
        assert_eq!(governor.agents().list().len(), 1);
    }

    #[test]
    fn auto_registration_makes_an_unknown_agent_a_newcomer() {
        let governor = builder().auto_register().open_in_memory().unwrap();
        let enforced = governor.enforce(&reading("new")).unwrap();
        assert_eq!(json!(enforced.trust_snapshot), json!({ "score": 200, "tier": "T1", "tierName": "Observed" }));
        assert_eq!(governor.agents().list().len(), 1);
    }

    #[test]
    fn a_page_and_its_size_have_bounds() {
        let governor = in_memory();
        let all = ProofQuery::entity("a");
        for (query, parameter) in [
            (all.clone().page(0), "page"),
            (all.clone().page_size(0), "pageSize"),
            (all.clone().page_size(201), "pageSize"),
        ] {
            let error = governor.query(&query).unwrap_err();
            assert_eq!((error.code(), error.http_status()), ("INVALID_QUERY", 400));
            assert_eq!(error.details(), Some(json!({ "parameter": parameter })));
        }
        assert!(governor.query(&all.clone().page_size(1)).is_ok());
        assert!(governor.query(&all.page_size(200)).is_ok());
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_an_invalid_query() {
        let governor = in_memory();
        let (early, late) = (Timestamp::from_millis(1_000), Timestamp::from_millis(1_001));
        let query = ProofQuery::entity("a");
        assert_eq!(code(governor.query(&query.clone().from(late).to(early))), "INVALID_QUERY");
        assert!(governor.query(&query.from(early).to(early)).is_ok());
        let period = rulekeep::proof::Period::new(Some(late), Some(early));
        assert_eq!(code(governor.stats("a", period)), "INVALID_QUERY");
    }

    #[test]
    fn an_unknown_proof_is_not_found() {
        let governor = in_memory();
        let known = decide(&governor, "a");
        let other_random = ProofId::new(governor.log().record(&known).unwrap().timestamp, 7, known.sequence());
        let beyond = ProofId::new(Timestamp::from_millis(common::NOON), 7, Sequence::new(1 << 40));
        let no_decision = ProofId::new(Timestamp::from_millis(common::NOON), 7, Sequence::FIRST);
        for unknown in [other_random, beyond, no_decision] {
            assert_eq!(code(governor.log().record(&unknown)), "PROOF_NOT_FOUND");
            assert_eq!(code(governor.log().evidence(&unknown)), "PROOF_NOT_FOUND");
            assert_eq!(code(governor.report(&unknown, Outcome::Success)), "PROOF_NOT_FOUND");
        }
    }

    #[test]
    fn a_different_second_outcome_conflicts_and_the_same_is_fine() {
        let governor = in_memory();
        let proof_id = decide(&governor, "a");
        let trust = governor.report(&proof_id, Outcome::Failure).unwrap();
        assert_eq!(governor.report(&proof_id, Outcome::Failure).unwrap(), trust);
        for other in [Outcome::Success, Outcome::Escalated] {
            let error = governor.report(&proof_id, other).unwrap_err();
            assert_eq!((error.code(), error.http_status()), ("CONFLICT", 409));
        }
        assert_eq!(governor.log().record(&proof_id).unwrap().outcome, Some(Outcome::Failure));
        assert_eq!(governor.agents().get("a").unwrap().trust, trust, "trust moved once");
    }
}

mod policies {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused_with_file_rule_and_field() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("finance.toml");
        let text =
            "name = \"x\"\n\n[[rule]]\nid = \"refunds\"\neffect = \"deny\"\nmatch.capabilites = [\"payment:*\"]\n";
        fs::write(&file, text).unwrap();
        let error = PolicySet::from_file(&file).unwrap_err();
        assert_eq!((error.code(), error.http_status()), ("POLICY_ERROR", 422));
        let message = error.to_string();
        for part in [
            "policy \"finance.toml\" line 6 column 7: ",
            "refunds",
            "match.capabilites",
            "did you mean \"capabilities\"?",
        ] {
            assert!(message.contains(part), "{message:?} does not say {part}");
        }
        let problem = &error.details().unwrap()["problems"][0];
        assert_eq!((&problem["line"], &problem["severity"]), (&json!(6), &json!("error")));
    }

    #[test]
    fn an_unknown_field_is_refused_at_every_level() {
        for (text, field) in [
            (r#"{"name":"x","nmae":"y"}"#, "nmae"),
            (r#"{"name":"x","rule":[{"id":"r","effect":"deny","reviewr":"me"}]}"#, "reviewr"),
            (r#"{"name":"x","rule":[{"id":"r","effect":"deny","match":{"risks":{}}}]}"#, "risks"),
            (r#"{"name":"x","rule":[{"id":"r","effect":"deny","match":{"risk":{"maximum":"LOW"}}}]}"#, "maximum"),
        ] {
            let problems = PolicySet::from_json(text).unwrap_err().details().unwrap()["problems"].to_string();
            assert!(problems.contains(&format!("unknown field \\\"{field}\\\"")), "{problems}");
        }
    }

    #[test]
    fn an_invalid_regular_expression_is_refused_with_its_rule() {
        let text = r#"{"name":"x","rule":[{"id":"hosts","effect":"deny",
            "match":{"context":[{"key":"target","matches":"(unclosed"}]}}]}"#;
        let message = PolicySet::from_json(text).unwrap_err().to_string();
        for part in ["line 2", "hosts", "match.context.matches", "(unclosed"] {
            assert!(message.contains(part), "{message:?} does not say {part}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = PolicySet::from_file(folder.path().join("gone.toml")).unwrap_err();
        assert_eq!(error.code(), "POLICY_ERROR");
        assert!(error.message().contains("gone.toml"), "{error}");
    }
}

mod folders {
    use super::*;

    fn names(folder: &Path) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_that_is_no_store_is_refused_and_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("holiday.jpg"), b"not ours").unwrap();
        fs::create_dir(folder.path().join("more")).unwrap();
        let before = names(folder.path());
        let error = Governor::open(folder.path()).unwrap_err();
        assert_eq!((error.code(), error.http_status()), ("STORAGE_UNAVAILABLE", 503));
        assert!(error.message().contains("holiday.jpg"), "{error}");
        assert_eq!(names(folder.path()), before);
    }

    #[test]
    fn a_path_that_is_a_file_is_refused_and_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"not ours").unwrap();
        let error = Governor::open(&file).unwrap_err();
        assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
        assert!(error.message().contains("file"), "{error}");
        assert_eq!(code(Governor::open(file.join("below"))), "STORAGE_UNAVAILABLE");
        assert_eq!(fs::read(&file).unwrap(), b"not ours");
    }

    #[test]
    fn a_new_store_is_made_with_the_folders_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("one").join("two");
        Governor::open(&deep).unwrap().close().unwrap();
        assert!(journal(&deep).is_file() && deep.join("HEAD").is_file());
    }

    #[test]
    fn child_that_holds_a_store() {
        let Some(folder) = child_folder() else { return };
        let governor = in_folder(&folder);
        say(&decide(&governor, "a").to_string());
        // Until the parent lets go.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        say(&decide(&governor, "a").to_string());
        governor.close().unwrap();
        say("closed");
    }

    #[test]
    fn a_store_held_by_another_process_is_refused_until_released() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = ChildProcess::start("bad_input::folders::child_that_holds_a_store", folder.path());
        let first = child.heard().expect("the child decides");

        let error = builder().open(folder.path()).unwrap_err();
        assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
        assert!(error.message().contains("another"), "{error}");

        child.child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let second = child.heard().expect("the child goes on unharmed");
        assert_eq!(child.heard().as_deref(), Some("closed"));
        let governor = in_folder(folder.path());
        let ids: Vec<String> = common::chain(&governor, &["a"]).iter().map(|record| record.id.to_string()).collect();
        assert_eq!(ids, [first, second]);
    }

    #[test]
    fn a_store_that_this_process_holds_is_refused_too() {
        let folder = tempfile::tempdir().unwrap();
        let governor = in_folder(folder.path());
        assert_eq!(code(Governor::open(folder.path())), "STORAGE_UNAVAILABLE");
        drop(governor);
        assert!(Governor::open(folder.path()).is_ok());
    }

    #[test]
    fn a_closed_governor_answers_that_its_store_is_unavailable() {
        let folder = tempfile::tempdir().unwrap();
        let governor = in_folder(folder.path());
        let proof_id = decide(&governor, "a");
        let clone = governor.clone();
        governor.close().unwrap();
        governor.close().unwrap();
        assert_eq!(code(clone.enforce(&reading("a"))), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.agents().register(Agent::new("b"))), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.agents().suspend("a", "")), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.policies().load(common::policies())), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.report(&proof_id, Outcome::Success)), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.query(&ProofQuery::entity("a"))), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.stats("a", ..)), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.log().record(&proof_id)), "STORAGE_UNAVAILABLE");
        assert_eq!(code(clone.verify()), "STORAGE_UNAVAILABLE");
        assert_eq!(json!(clone.status())["status"], "unhealthy");
    }

    #[test]
    fn a_store_whose_making_was_cut_short_is_made_anew() {
        // A crash right behind the first steps of making a store: nothing was ever acknowledged in it.
        for cut in ["behind the folder", "behind the file", "within the header"] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("journal")).unwrap();
            match cut {
                "behind the file" => fs::write(journal(folder.path()), b"").unwrap(),
                "within the header" => fs::write(journal(folder.path()), b"RKseg002").unwrap(),
                _ => {}
            }
            let governor = builder().open(folder.path()).unwrap_or_else(|error| panic!("{cut}: {error}"));
            governor.agents().register(Agent::new("a")).unwrap();
            decide(&governor, "a");
            assert!(governor.verify().unwrap().valid, "{cut}");
        }
    }
}

mod damage {
    use super::*;

    /// Changes a byte in the middle of the frame with that number.
    fn harm(folder: &Path, frame: usize) -> usize {
        let mut bytes = fs::read(journal(folder)).unwrap();
        let frames = common::frames(&bytes);
        bytes[frames[frame].start + 100] ^= 0x20;
        fs::write(journal(folder), bytes).unwrap();
        frames[frame].start
    }

    #[test]
    fn a_damaged_store_opens_read_only_and_says_where_it_breaks() {
        let sample = Sample::new(20);
        let store = sample.copy();
        let harmed = 12;
        let offset = harm(store.path(), harmed);
        let governor = Sample::builder().open(store.path()).unwrap();

        let found = json!(governor.verify().unwrap());
        assert_eq!(found["valid"], false);
        let broken = &found["firstBroken"];
        assert_eq!(broken["file"], "0000000000.rkj");
        assert_eq!((&broken["offset"], &broken["sequence"]), (&json!(offset), &json!(harmed)));
        assert_eq!(broken["kind"], "damage");
        assert_eq!(json!(governor.verify().unwrap()), found, "the same is found again");

        assert_eq!(code(governor.enforce(&reading("a"))), "CHAIN_BROKEN");
        assert_eq!(code(governor.agents().register(Agent::new("new"))), "CHAIN_BROKEN");
        assert_eq!(code(governor.agents().suspend("a", "")), "CHAIN_BROKEN");
        assert_eq!(code(governor.policies().load(common::policies())), "CHAIN_BROKEN");

        let status = governor.status();
        assert_eq!(json!(status)["status"], "unhealthy");
        assert_eq!(json!(status)["components"]["proofChain"], "unhealthy");
        assert!(!governor.stats("a", ..).unwrap().chain_integrity);
    }

    #[test]
    fn a_damaged_store_still_answers_for_every_readable_record() {
        let sample = Sample::new(20);
        let store = sample.copy();
        harm(store.path(), 12);
        let governor = Sample::builder().open(store.path()).unwrap();
        let records = common::chain(&governor, &SAMPLE_AGENTS);
        assert!(records.len() >= 19, "{} of 20 records", records.len());
        for record in records {
            assert_eq!(governor.log().record(&record.id).unwrap(), record);
        }
    }

    #[test]
    fn a_damaged_store_is_left_as_it_is() {
        let sample = Sample::new(20);
        let store = sample.copy();
        harm(store.path(), 12);
        let before = fs::read(journal(store.path())).unwrap();
        let head = fs::read(store.path().join("HEAD")).unwrap();
        for _ in 0..2 {
            let governor = Sample::builder().open(store.path()).unwrap();
            assert!(!governor.verify().unwrap().valid);
            drop(governor);
        }
        assert_eq!(fs::read(journal(store.path())).unwrap(), before);
        assert_eq!(fs::read(store.path().join("HEAD")).unwrap(), head);
    }

    #[test]
    fn damage_under_an_open_governor_is_found_and_ends_decisions() {
        let folder = tempfile::tempdir().unwrap();
        let governor = in_folder(folder.path());
        for _ in 0..5 {
            decide(&governor, "a");
        }
        assert!(governor.verify().unwrap().valid);
        harm(folder.path(), 4);
        assert!(!governor.verify().unwrap().valid);
        assert_eq!(code(governor.enforce(&reading("a"))), "CHAIN_BROKEN");
        assert!(!governor.stats("a", ..).unwrap().chain_integrity);
    }
}

mod view {
    use super::*;

    /// Asserts that the store holds what the sample holds, and goes on, and still does after a restart.
    fn assert_whole(sample: &Sample, folder: &Path, what: &str) {
        let governor = Sample::builder().open(folder).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(picture(&governor, &SAMPLE_AGENTS), sample.picture, "{what}");
        let proof_id = decide(&governor, "a");
        governor.close().unwrap();
        let governor = Sample::builder().open(folder).unwrap();
        assert_eq!(common::chain(&governor, &SAMPLE_AGENTS).len(), sample.ids.len() + 1, "{what}");
        assert!(governor.log().record(&proof_id).is_ok(), "{what}");
    }

    #[test]
    fn a_deleted_view_is_rebuilt_and_nothing_is_lost() {
        let sample = Sample::new(40);
        let store = sample.copy();
        fs::remove_dir_all(store.path().join("view")).unwrap();
        assert_whole(&sample, store.path(), "deleted");
    }

    #[test]
    fn an_emptied_view_is_rebuilt_and_nothing_is_lost() {
        let sample = Sample::new(40);
        for keep_files in [false, true] {
            let store = sample.copy();
            for file in common::files_below(&store.path().join("view")) {
                if keep_files {
                    fs::write(file, b"").unwrap();
                } else {
                    fs::remove_file(file).unwrap();
                }
            }
            assert_whole(&sample, store.path(), if keep_files { "files emptied" } else { "files removed" });
        }
    }

    #[test]
    fn a_view_that_is_a_file_is_replaced() {
        let sample = Sample::new(10);
        let store = sample.copy();
        fs::remove_dir_all(store.path().join("view")).unwrap();
        fs::write(store.path().join("view"), b"not a folder").unwrap();
        assert_whole(&sample, store.path(), "a file");
    }

    #[test]
    fn a_view_with_flipped_bytes_loses_nothing() {
        let sample = Sample::new(40);
        let mut places = Places(1);
        for round in 0..30 {
            let store = sample.copy();
            let files: Vec<PathBuf> = common::files_below(&store.path().join("view"))
                .into_iter()
                .filter(|file| fs::metadata(file).unwrap().len() > 0)
                .collect();
            let file = &files[places.below(files.len())];
            let mut bytes = fs::read(file).unwrap();
            // The log is written ahead in zeros; what was written stands in front.
            let written = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
            let at = places.below(written);
            bytes[at] ^= 1 << places.below(8);
            fs::write(file, bytes).unwrap();
            let what = format!("round {round}: byte {at} of {}", file.display());
            let governor = Sample::builder().open(store.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(picture(&governor, &SAMPLE_AGENTS), sample.picture, "{what}");
        }
    }

    #[test]
    fn a_view_of_noise_is_rebuilt_and_nothing_is_lost() {
        let sample = Sample::new(40);
        let store = sample.copy();
        let mut places = Places(2);
        for file in common::files_below(&store.path().join("view")) {
            let mut bytes = fs::read(&file).unwrap();
            bytes.fill_with(|| u8::try_from(places.below(256)).unwrap());
            fs::write(file, bytes).unwrap();
        }
        assert_whole(&sample, store.path(), "noise");
    }

    #[test]
    fn a_view_from_an_older_day_catches_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let old_view = folder.path().join("old view");
        let open = || common::open_with(Sample::builder(), &store);
        let governor = open();
        let early: Vec<ProofId> = (0..10).map(|_| decide(&governor, "a")).collect();
        governor.close().unwrap();
        common::copy_folder(&store.join("view"), &old_view);

        let governor = open();
        governor.report(&early[3], Outcome::Failure).unwrap();
        governor.agents().register(Agent::new("b")).unwrap();
        for _ in 0..10 {
            decide(&governor, "b");
        }
        let expected = picture(&governor, &["a", "b"]);
        governor.close().unwrap();

        fs::remove_dir_all(store.join("view")).unwrap();
        common::copy_folder(&old_view, &store.join("view"));
        assert_eq!(picture(&open(), &["a", "b"]), expected);
    }

    #[test]
    fn a_view_that_vanishes_under_an_open_governor_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::open_with(Sample::builder(), folder.path());
        let early = decide(&governor, "a");
        fs::remove_dir_all(folder.path().join("view")).unwrap();
        governor.report(&early, Outcome::Failure).unwrap();
        for _ in 0..20 {
            decide(&governor, "a");
        }
        let before = picture(&governor, &["a"]);
        // Closing persists the view; whether it can or not, the journal is closed.
        governor.close().unwrap();
        assert_eq!(picture(&common::open_with(Sample::builder(), folder.path()), &["a"]), before);
    }

    #[test]
    fn a_view_of_another_store_is_not_believed() {
        let (sample, other) = (Sample::new(20), Sample::new(30));
        let store = sample.copy();
        fs::remove_dir_all(store.path().join("view")).unwrap();
        common::copy_folder(&other.folder().join("view"), &store.path().join("view"));
        assert_whole(&sample, store.path(), "another store's");
    }

    /// Numbers that look random and are the same in every run.
    struct Places(u64);

    impl Places {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }
    }
}

mod full_disk {
    use super::*;

    /// A small file system of its own, unmounted when dropped.
    struct SmallDisk {
        folder: tempfile::TempDir,
    }

    impl SmallDisk {
        /// `None` where nothing can be mounted, with the reason printed.
        fn of_kib(kib: usize) -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            let size = format!("size={kib}k,mode=0777");
            match Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output() {
                Ok(output) if output.status.success() => Some(Self { folder }),
                Ok(output) => {
                    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    eprintln!("skipped: a small file system cannot be mounted: {reason}");
                    None
                }
                Err(error) => {
                    eprintln!("skipped: mount cannot be run: {error}");
                    None
                }
            }
        }

        fn path(&self) -> &Path {
            self.folder.path()
        }

        fn ballast(&self) -> PathBuf {
            self.path().join("ballast")
        }

        /// Writes until nothing more fits.
        fn fill(&self) {
            let mut ballast = fs::File::create(self.ballast()).unwrap();
            while ballast.write_all(&[1; 512]).is_ok() {}
        }

        fn relieve(&self) {
            fs::remove_file(self.ballast()).unwrap();
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            // Lazily: whatever a failing test still holds open must not keep the mount.
            let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
        }
    }

    #[test]
    fn a_decision_that_does_not_fit_on_the_disk_is_refused() {
        let Some(disk) = SmallDisk::of_kib(8 * 1024) else { return };
        let store = disk.path().join("store");
        let governor = in_folder(&store);
        let mut acknowledged: Vec<ProofId> = (0..5).map(|_| decide(&governor, "a")).collect();
        disk.fill();
        let refused = loop {
            match governor.enforce(&reading("a")) {
                Ok(enforced) => acknowledged.push(enforced.proof_id),
                Err(error) => break error,
            }
            assert!(acknowledged.len() < 20_000, "the disk never became full");
        };
        assert_eq!((refused.code(), refused.http_status()), ("STORAGE_UNAVAILABLE", 503), "{refused}");
        // Nothing is taken in any more, whatever it is.
        for _ in 0..3 {
            assert_eq!(code(governor.enforce(&reading("a"))), "STORAGE_UNAVAILABLE");
        }
        assert_eq!(code(governor.agents().register(Agent::new("b"))), "STORAGE_UNAVAILABLE");
        assert_eq!(code(governor.report(&acknowledged[0], Outcome::Success)), "STORAGE_UNAVAILABLE");
        assert_eq!(json!(governor.status())["status"], "unhealthy");
        let page = governor.query(&ProofQuery::entity("a")).unwrap();
        assert!(page.total >= acknowledged.len() as u64, "what was written is still answered");
        let closed = governor.close();
        assert_eq!(code(closed), "STORAGE_UNAVAILABLE");
        drop(governor);

        disk.relieve();
        let governor = in_folder(&store);
        assert!(governor.verify().unwrap().valid);
        for proof_id in &acknowledged {
            assert!(governor.log().record(proof_id).is_ok(), "{proof_id} was acknowledged and is gone");
        }
        decide(&governor, "a");
        governor.close().unwrap();
        drop(governor);
    }

    #[test]
    fn a_store_that_did_not_fit_is_made_once_there_is_room() {
        let Some(disk) = SmallDisk::of_kib(8 * 1024) else { return };
        let store = disk.path().join("store");
        disk.fill();
        assert_eq!(code(builder().open(&store)), "STORAGE_UNAVAILABLE");
        assert_eq!(code(builder().open(&store)), "STORAGE_UNAVAILABLE");
        disk.relieve();
        let governor = in_folder(&store);
        decide(&governor, "a");
        assert!(governor.verify().unwrap().valid);
        governor.close().unwrap();
        drop(governor);
    }

    #[test]
    fn a_store_opens_and_answers_on_a_full_disk() {
        let Some(disk) = SmallDisk::of_kib(8 * 1024) else { return };
        let store = disk.path().join("store");
        let governor = in_folder(&store);
        let proof_id = decide(&governor, "a");
        governor.close().unwrap();
        drop(governor);
        disk.fill();
        let governor = builder().open(&store).unwrap();
        assert!(governor.log().record(&proof_id).is_ok());
        assert!(governor.verify().unwrap().valid);
        // The last page of the journal may have room for one more.
        let refused: Error = (0..1000).find_map(|_| governor.enforce(&reading("a")).err()).expect("the disk is full");
        assert_eq!(refused.code(), "STORAGE_UNAVAILABLE");
        drop(governor);
    }

    #[test]
    fn what_a_buffered_governor_lost_to_a_full_disk_it_says() {
        let Some(disk) = SmallDisk::of_kib(8 * 1024) else { return };
        let store = disk.path().join("store");
        let governor = common::open_with(builder().durability(rulekeep::Durability::Buffered), &store);
        disk.fill();
        let mut decided = 0;
        // A query waits for the writer, so that its failure is known before the next decision.
        while governor.enforce(&rulekeep::Intent::new("a", "read_it", RiskLevel::Low, ["file:read"]).unwrap()).is_ok() {
            decided += 1;
            governor.query(&ProofQuery::entity("a").page_size(1)).unwrap();
            assert!(decided < 20_000, "the disk never became full");
        }
        assert_eq!(code(governor.enforce(&reading("a"))), "STORAGE_UNAVAILABLE");
        let status = governor.status();
        assert_eq!((status.components.gateway, status.components.database), (Health::Unhealthy, Health::Unhealthy));
        assert_eq!(code(governor.close()), "STORAGE_UNAVAILABLE");
        drop(governor);
        disk.relieve();
        let governor = in_folder(&store);
        assert!(governor.verify().unwrap().valid);
        drop(governor);
    }
}
