//! A broken log is put aside as it is, and another one goes on in its place.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{NOON, Sample, Still, code, error, files_below, frames, intent, journal, reading};
use rulekeep::agent::AgentState;
use rulekeep::escalation::{EscalationId, EscalationQuery, EscalationState, Review};
use rulekeep::event::EventFilter;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::maintenance::{RepairOptions, RepairReport, repair};
use rulekeep::proof::BrokenKind;
use rulekeep::task::TaskRequest;
use rulekeep::trust::TrustModel;
use rulekeep::{Agent, Decision, Durability, Governor, GovernorBuilder, Outcome, PolicySet, ProofQuery, Tier};

const DECISIONS: usize = 24;

/// What is damaged, and how.
type Damage = (&'static str, BrokenKind, fn(&Path));

const DAMAGES: [Damage; 9] = [
    ("a flipped bit in an entry", BrokenKind::Damage, |store| {
        change(&journal(store), |bytes| {
            let frame = frames(bytes)[12].clone();
            bytes[frame.start + 70] ^= 4;
        });
    }),
    ("evidence of other bytes", BrokenKind::Tampering, |store| {
        change(&journal(store), |bytes| {
            let decision = frames(bytes).into_iter().find(|range| bytes[range.start + 4] == 2).unwrap();
            bytes[decision.end - 3] ^= 4;
        });
    }),
    ("an entry taken out", BrokenKind::Missing, |store| {
        change(&journal(store), |bytes| {
            let frame = frames(bytes)[10].clone();
            bytes.drain(frame);
        });
    }),
    ("the last entries cut off", BrokenKind::Missing, |store| {
        change(&journal(store), |bytes| {
            let all = frames(bytes);
            bytes.truncate(all[all.len() - 4].start);
        });
    }),
    ("the end cut off, and HEAD of before", BrokenKind::Missing, |store| {
        // Only the view knows of what is gone.
        change(&journal(store), |bytes| {
            let all = frames(bytes);
            bytes.truncate(all[all.len() - 4].start);
        });
        make_head(store);
    }),
    ("two entries swapped", BrokenKind::Missing, |store| {
        change(&journal(store), |bytes| {
            let frames = frames(bytes);
            let (a, b) = (frames[8].clone(), frames[9].clone());
            let swapped = [&bytes[b.clone()], &bytes[a.clone()]].concat();
            bytes.splice(a.start..b.end, swapped);
        });
    }),
    ("a HEAD that is none", BrokenKind::Damage, |store| fs::write(store.join("HEAD"), "gone").unwrap()),
    ("a segment's header", BrokenKind::Damage, |store| change(&journal(store), |bytes| bytes[9] ^= 1)),
    ("no segment at all", BrokenKind::Missing, |store| fs::remove_file(journal(store)).unwrap()),
];

/// Makes `HEAD` name what the journal has now.
pub(crate) fn make_head(store: &Path) {
    let text = fs::read(journal(store)).unwrap();
    let last = frames(&text).last().unwrap().clone();
    let link = format!("sha256:{}", hex::encode(&text[last.start + 32..last.start + 64]));
    let store_id = hex::encode(&text[20..36]);
    let root = root_of(&text);
    let entries = frames(&text).len();
    let json = format!(
        "{{\"format\":2,\"store\":\"{store_id}\",\"entries\":{entries},\"link\":\"{link}\",\"root\":\"{root}\"}}"
    );
    let crc = crc32fast::hash(json.as_bytes());
    fs::write(store.join("HEAD"), format!("{json}\ncrc32:{crc:08x}\n")).unwrap();
}

pub(crate) fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// The root of the tree over the entries of a segment, by another hand.
fn root_of(segment: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let mut tree: ct_merkle::mem_backed_tree::MemoryBackedTree<Sha256, Vec<u8>> =
        ct_merkle::mem_backed_tree::MemoryBackedTree::default();
    for frame in frames(segment) {
        let length = u32::from_le_bytes(segment[frame.start + 20..frame.start + 24].try_into().unwrap()) as usize;
        let body = &segment[frame.start + 64..frame.start + 64 + length];
        tree.push(Sha256::digest(body).to_vec());
    }
    format!("sha256:{}", hex::encode(tree.root().as_bytes()))
}

/// Every file of a store, with its content.
fn content(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let of = |file: PathBuf| (file.strip_prefix(store).unwrap().to_owned(), fs::read(&file).unwrap());
    files_below(store).into_iter().map(of).collect()
}

fn reopened(store: &Path) -> Governor {
    GovernorBuilder::clock(Governor::builder(), Still::at(NOON + 1000)).open(store).unwrap()
}

fn repaired(store: &Path) -> RepairReport {
    repair(store, &RepairOptions::default()).unwrap()
}

#[test]
fn all_damage_is_repaired_and_the_whole_broken_log_is_kept() {
    let sample = Sample::new(DECISIONS);
    for (what, kind, damage) in DAMAGES {
        let store = sample.copy();
        damage(store.path());
        let before = content(store.path());
        let report = repaired(store.path());
        assert_eq!(report.broken.kind, kind, "{what}: {}", report.broken);

        // Kept byte for byte, and nothing else is there but the new store.
        let kept = store.path().join(&report.kept);
        assert_eq!(content(&kept), before, "{what}");
        let names: Vec<String> = fs::read_dir(store.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected = ["HEAD", "journal", "recovered", &report.kept];
        assert!(names.iter().all(|name| expected.contains(&name.as_str())), "{what}: {names:?}");

        let governor = reopened(store.path());
        assert!(governor.verify().unwrap().valid, "{what}");
        assert_eq!(governor.verify().unwrap().records, 0, "{what}");
        if report.entries > 8 {
            assert_eq!(report.agents, 3, "{what}");
            // Of entries that nobody confirms nothing is believed that grants anything.
            let is_confirmed = ["an entry taken out", "the last entries cut off"].iter().all(|other| *other != what);
            assert_eq!(report.first_unconfirmed.is_none(), is_confirmed, "{what}");
            let is_set_in_force = governor.policies().current().digest() == common::policies().digest();
            assert_eq!(is_set_in_force, is_confirmed, "{what}");
            let is_any_active = governor.agents().list().iter().any(|agent| agent.state == AgentState::Active);
            assert_eq!(is_any_active, is_confirmed, "{what}");
            governor.enforce(&reading("b")).unwrap();
        } else {
            governor.agents().register(Agent::new("new").at_tier(Tier::T3)).unwrap();
            governor.enforce(&reading("new")).unwrap();
        }
        governor.close().unwrap();
        let governor = reopened(store.path());
        assert_eq!(governor.verify().unwrap().records, 1, "{what}");
        assert!(governor.verify().unwrap().valid, "{what}");
        governor.close().unwrap();

        // The broken one answers by itself what it answered before, or as little.
        match Sample::builder().open(&kept) {
            Ok(broken) => {
                assert!(!broken.verify().unwrap().valid, "{what}");
                assert_eq!(code(broken.enforce(&reading("a"))), "CHAIN_BROKEN", "{what}");
                let left = broken.query(&ProofQuery::all()).unwrap().total;
                assert!(left >= report.records, "{what}: {left} of {}", report.records);
            }
            Err(error) => assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}: {error}"),
        }
    }
}

#[test]
fn the_new_log_names_the_last_good_entry() {
    let sample = Sample::new(DECISIONS);
    let store = sample.copy();
    let intact = fs::read(journal(store.path())).unwrap();
    let broken_at = frames(&intact)[12].clone();
    DAMAGES[0].2(store.path());
    let report = repaired(store.path());
    assert_eq!((report.entries, report.broken.offset), (12, broken_at.start as u64));
    let before = frames(&intact)[11].start;
    assert_eq!(report.link.to_string(), format!("sha256:{}", hex::encode(&intact[before + 32..before + 64])));
    assert_eq!(report.root.to_string(), root_of(&intact[..broken_at.start]));

    // Its second entry says the same.
    let bytes = fs::read(journal(store.path())).unwrap();
    let entry = &bytes[frames(&bytes)[1].clone()];
    assert_eq!(entry[4], 10);
    let length = u32::from_le_bytes(entry[20..24].try_into().unwrap()) as usize;
    let body: serde_json::Value = serde_json::from_slice(&entry[64..64 + length]).unwrap();
    assert_eq!(body["of"], hex::encode(&intact[20..36]));
    for (field, value) in [("link", report.link), ("root", report.root), ("headHash", report.head_hash)] {
        assert_eq!(body[field], value.to_string(), "{field}");
    }
    assert_eq!((&body["entries"], &body["kept"]), (&serde_json::json!(12), &serde_json::json!(report.kept)));
    let last = sample.ids.iter().rfind(|id| id.sequence().get() < 12).unwrap();
    let kept = Sample::builder().open(store.path().join(&report.kept)).unwrap();
    assert_eq!(report.head_hash, kept.log().record(last).unwrap().hash);
}

#[test]
fn a_log_that_is_whole_is_not_repaired() {
    let sample = Sample::new(3);
    let store = sample.copy();
    let before = content(store.path());
    assert_eq!(code(repair(store.path(), &RepairOptions::default())), "CONFLICT");
    assert_eq!(content(store.path()), before);
    let nothing = tempfile::tempdir().unwrap();
    assert_eq!(code(repair(nothing.path(), &RepairOptions::default())), "CONFLICT");
    fs::write(nothing.path().join("letter.txt"), "dear").unwrap();
    assert_eq!(code(repair(nothing.path(), &RepairOptions::default())), "STORAGE_UNAVAILABLE");
    let governor = Sample::builder().open(store.path()).unwrap();
    assert_eq!(code(repair(store.path(), &RepairOptions::default())), "STORAGE_UNAVAILABLE");
    assert!(governor.enforce(&reading("a")).is_ok());
}

/// A store of three agents, the folder of which is returned; `end` does what stands behind the entry that is damaged.
fn damaged_before(end: impl FnOnce(&Governor)) -> tempfile::TempDir {
    let store = tempfile::tempdir().unwrap();
    let governor = Sample::builder().open(store.path()).unwrap();
    for agent in ["a", "b", "c"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor.agents().suspend("b", "for good reasons").unwrap();
    let damaged = governor.enforce(&reading("a")).unwrap().proof_id;
    end(&governor);
    governor.close().unwrap();
    change(&journal(store.path()), |bytes| {
        let frame = frames(bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
        bytes[frame.start + 80] ^= 1;
    });
    store
}

#[test]
fn what_stands_behind_the_break_tightens_and_never_loosens() {
    let store = damaged_before(|governor| {
        governor.agents().suspend("a", "found out").unwrap();
        governor.agents().resume("b", "an intruder says").unwrap();
        governor.agents().register(Agent::new("d").at_tier(Tier::T5)).unwrap();
        let id = governor.enforce(&reading("c")).unwrap().proof_id;
        governor.report(&id, Outcome::Failure).unwrap();
        let loose = "name = \"loose\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nmatch.capabilities = [\"*:*\"]\n";
        governor.policies().load(PolicySet::from_toml(loose).unwrap()).unwrap();
    });
    let report = repaired(store.path());
    assert_eq!(report.tightened, ["a", "c", "d"]);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    let governor = reopened(store.path());
    for agent in ["a", "b", "d"] {
        assert_eq!(governor.agents().get(agent).unwrap().state, AgentState::Suspended, "{agent}");
    }
    let is = governor.agents().get("c").unwrap();
    // The set that was loaded behind the break may have been a stricter one.
    assert_eq!(is.state, AgentState::Suspended);
    let fresh = common::in_memory().agents().get("a").unwrap().trust;
    assert!(is.trust.score < fresh.score, "{:?}, {fresh:?}", is.trust);
    assert_eq!(governor.policies().current().digest(), common::policies().digest());
}

#[test]
fn without_an_entry_to_blame_every_agent_is_suspended() {
    let store = damaged_before(|_| {});
    let report = repair(store.path(), &RepairOptions::default().suspend_all()).unwrap();
    assert_eq!((report.agents, report.tightened.len()), (3, 2), "{report:?}");
    assert!(reopened(store.path()).agents().list().iter().all(|agent| agent.state == AgentState::Suspended));

    // A journal that holds by itself, of which HEAD names another root.
    let sample = Sample::new(3);
    let store = sample.copy();
    let head = fs::read_to_string(store.path().join("HEAD")).unwrap();
    let json = head.lines().next().unwrap();
    let root = json.split("\"root\":\"sha256:").nth(1).unwrap();
    let other = json.replace(&root[..20], &root[..20].chars().rev().collect::<String>());
    let crc = crc32fast::hash(other.as_bytes());
    fs::write(store.path().join("HEAD"), format!("{other}\ncrc32:{crc:08x}\n")).unwrap();
    let report = repaired(store.path());
    assert_eq!(report.broken.kind, BrokenKind::Tampering);
    assert_eq!(report.records, 3);
    assert!(reopened(store.path()).agents().list().iter().all(|agent| agent.state == AgentState::Suspended));
}

#[test]
fn an_outcome_of_an_old_record_is_refused_with_its_place() {
    let sample = Sample::new(DECISIONS);
    let store = sample.copy();
    DAMAGES[0].2(store.path());
    let report = repaired(store.path());
    let governor = reopened(store.path());
    // Ids of before, whether another entry stands in their place now or none.
    for id in &sample.ids {
        for refused in [
            error(governor.report(id, Outcome::Success)),
            error(governor.log().record(id)),
            error(governor.log().evidence(id)),
        ] {
            assert_eq!((refused.code(), refused.http_status()), ("PROOF_NOT_FOUND", 404));
            assert!(refused.to_string().contains(&report.kept), "{refused}");
        }
    }
    let later = rulekeep::proof::ProofId::new(
        rulekeep::system::Timestamp::from_millis(NOON + 5000),
        1,
        rulekeep::proof::Sequence::new(1),
    );
    assert!(matches!(governor.log().record(&later), Err(rulekeep::Error::ProofNotFound { .. })));
}

#[test]
fn a_repaired_log_can_break_and_be_repaired_again() {
    let sample = Sample::new(DECISIONS);
    let store = sample.copy();
    DAMAGES[0].2(store.path());
    let first = repaired(store.path());
    let governor = Sample::builder().durability(Durability::Sync).open(store.path()).unwrap();
    governor.enforce(&intent("a", &["document:read"])).unwrap();
    governor.close().unwrap();
    change(&journal(store.path()), |bytes| {
        let last = frames(bytes).last().unwrap().clone();
        bytes[last.start + 70] ^= 1;
    });
    let second = repaired(store.path());
    assert_ne!(first.kept, second.kept);
    assert!(
        store.path().join(&first.kept).join("HEAD").exists() && store.path().join(&second.kept).join("HEAD").exists()
    );
    assert!(reopened(store.path()).enforce(&reading("a")).is_ok());
}

#[test]
fn a_half_repaired_store_opens_for_nobody_until_finished() {
    let sample = Sample::new(DECISIONS);
    let store = sample.copy();
    DAMAGES[0].2(store.path());
    let report = repaired(store.path());
    // As after a crash behind the last move, before the mark was taken away.
    let text = serde_json::to_string(&report).unwrap();
    let lines = format!("place\n{}\n{text}", report.kept);
    fs::write(store.path().join("REPAIR"), format!("{lines}\ncrc32:{:08x}\n", crc32fast::hash(lines.as_bytes())))
        .unwrap();
    let refused = error(Sample::builder().open(store.path()));
    assert!(refused.message().contains("repair"), "{refused}");
    assert_eq!(repaired(store.path()), report);
    assert!(reopened(store.path()).verify().unwrap().valid);
    fs::write(store.path().join("REPAIR"), "nonsense").unwrap();
    assert_eq!(code(repair(store.path(), &RepairOptions::default())), "STORAGE_UNAVAILABLE");
}

/// The recommended set must not come into force because the one that was is lost.
#[test]
fn without_a_known_policy_set_everything_is_denied() {
    let store = tempfile::tempdir().unwrap();
    let governor = common::open_with(common::builder(), store.path());
    let id = governor.enforce(&reading("a")).unwrap().proof_id;
    governor.close().unwrap();
    drop(governor);
    // Right behind the store's own entry.
    change(&journal(store.path()), |bytes| {
        let frame = frames(bytes)[1].clone();
        bytes[frame.start + 80] ^= 1;
    });
    let report = repaired(store.path());
    assert!(report.notes.iter().any(|note| note.contains("everything is denied")), "{:?}", report.notes);
    let governor = Governor::builder().auto_register().open(store.path()).unwrap();
    assert!(governor.log().record(&id).is_err());
    for agent in ["a", "never-seen"] {
        assert_eq!(governor.enforce(&reading(agent)).unwrap().decision, Decision::Deny, "{agent}");
    }
    governor.policies().load(common::policies()).unwrap();
    assert_eq!(governor.enforce(&reading("never-seen")).unwrap().decision, Decision::Allow);
}

#[test]
fn a_repaired_governors_states_are_found_or_reported_ended() {
    let store = tempfile::tempdir().unwrap();
    let model = TrustModel { daily_gain_cap: 18, promotion_margin: 20, ..TrustModel::default() };
    let open = |at| GovernorBuilder::clock(common::builder().trust_model(model.clone()), Still::at(at));
    let governor = open(NOON).open(store.path()).unwrap();
    for agent in ["a", "b"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    let stop = governor.kill_switch().set(KillSwitchScope::agent("c").unwrap(), "ann", "seen to").unwrap().id;
    let mut billing = governor.log().cursor("billing", &EventFilter::all()).unwrap();
    let forgotten = governor.log().cursor("forgotten", &EventFilter::all()).unwrap();
    drop(forgotten);
    governor.log().forget_cursor("forgotten").unwrap();
    let mail = intent("b", &["email:send"]);
    let mut asked = Vec::new();
    for answered in ["waiting", "approved", "rejected"] {
        assert_eq!(governor.enforce(&mail).unwrap().decision, Decision::Escalate, "{answered}");
        let escalation = governor.escalations().pending().unwrap().pop().unwrap().id;
        match answered {
            "approved" => _ = governor.escalations().approve(escalation, Review::by("mail-lead")).unwrap(),
            "rejected" => _ = governor.escalations().reject(escalation, Review::by("mail-lead")).unwrap(),
            _ => {}
        }
        asked.push(escalation);
    }
    let event = billing.wait().unwrap().unwrap();
    billing.acknowledge(&event.id).unwrap();
    drop(billing);
    let damaged = governor.enforce(&reading("a")).unwrap().proof_id;
    governor.close().unwrap();
    change(&journal(store.path()), |bytes| {
        let frame = frames(bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
        bytes[frame.start + 80] ^= 1;
    });

    let report = repaired(store.path());
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    let bytes = fs::read(journal(store.path())).unwrap();
    let first = String::from_utf8_lossy(&bytes[frames(&bytes)[2].clone()]).into_owned();
    assert!(first.contains("\"trust-model\"") && first.contains("\"dailyGainCap\":18"), "{first}");
    let mut decided = None;
    for round in ["repaired", "reopened"] {
        let governor = open(NOON + 1000).open(store.path()).unwrap();
        assert_eq!(governor.kill_switch().list().iter().map(|stop| stop.id).collect::<Vec<_>>(), [stop], "{round}");
        assert_eq!(governor.escalations().pending().unwrap(), [], "{round}");
        for id in &asked[..2] {
            let ended = governor.escalations().get(*id).unwrap();
            assert_eq!(ended.state, EscalationState::Expired, "{round}");
            assert!(ended.why.unwrap().contains("ask again"), "{round}");
            assert_eq!(code(governor.escalations().approve(*id, Review::by("mail-lead"))), "CONFLICT", "{round}");
            assert_eq!(code(governor.escalations().claim(*id, &mail)), "CONFLICT", "{round}");
        }
        assert_eq!(code(governor.escalations().get(asked[2])), "PROOF_NOT_FOUND", "it had ended before");

        // What is decided now has a cursor that begins with the new log, and trust that the log accounts for.
        let id = governor.enforce(&reading("b")).unwrap().proof_id;
        let first = *decided.get_or_insert(id);
        let mut events = governor.log().cursor("billing", &EventFilter::all()).unwrap();
        let event = serde_json::to_value(events.wait().unwrap().unwrap()).unwrap();
        assert_eq!(event["data"]["proofId"], first.to_string(), "{round}");
        governor.report(&id, Outcome::Success).unwrap();
        governor.trust().correct(&id, "not so").unwrap();
        assert_eq!(code(governor.trust().correct(&id, "otherwise")), "CONFLICT", "{round}");
        assert_eq!(governor.trust().verify().unwrap().differing, [], "{round}");
        assert_eq!(governor.enforce(&mail).unwrap().decision, Decision::Escalate, "{round}");
        let again = governor.escalations().pending().unwrap().pop().unwrap().id;
        governor.escalations().approve(again, Review::by("mail-lead")).unwrap();
        governor.escalations().claim(again, &mail).unwrap();
        assert!(governor.verify().unwrap().valid, "{round}");
        governor.close().unwrap();
    }
}

#[test]
fn places_of_the_old_log_are_not_taken_for_those_of_the_new_one() {
    let store = tempfile::tempdir().unwrap();
    let open = |at| GovernorBuilder::clock(common::builder(), Still::at(at));
    let governor = open(NOON).open(store.path()).unwrap();
    for agent in ["a", "b"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    for _ in 0..30 {
        governor.enforce(&reading("a")).unwrap();
    }
    let mail = intent("b", &["email:send"]);
    let waits = governor.enforce(&mail).unwrap().proof_id;
    let approved = EscalationId::of(governor.enforce(&mail).unwrap().proof_id);
    let approval = governor.escalations().approve(approved, Review::by("mail-lead")).unwrap().proof_id.unwrap();
    for _ in 0..3 {
        governor.enforce(&reading("a")).unwrap();
    }
    let damaged = governor.enforce(&reading("a")).unwrap().proof_id;
    governor.close().unwrap();
    change(&journal(store.path()), |bytes| {
        let frame = frames(bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
        bytes[frame.start + 80] ^= 1;
    });
    repaired(store.path());

    let governor = open(NOON + 1000).open(store.path()).unwrap();
    let carried = || governor.escalations().list(&EscalationQuery::all().agent("b")).unwrap();
    assert_eq!(carried().total, 2);
    assert_eq!(governor.escalations().get(approved).unwrap().resolution, None, "no record of this log");
    let mut asked = None;
    let again = loop {
        let id = governor.enforce(&reading("a")).unwrap().proof_id;
        // The state that opens it stands before the record that asks.
        if asked.is_none() && id.sequence().get() + 2 == waits.sequence().get() {
            asked = Some(governor.enforce(&intent("a", &["email:send"])).unwrap().proof_id);
        }
        if id.sequence() >= approval.sequence() {
            break id;
        }
    };
    let asked = asked.unwrap();
    assert_eq!((asked.sequence(), again.sequence()), (waits.sequence(), approval.sequence()));
    governor.report(&again, Outcome::Success).unwrap();
    for (id, state) in [(asked, EscalationState::Pending), (waits, EscalationState::Expired)] {
        assert_eq!(governor.escalations().get(EscalationId::of(id)).unwrap().state, state);
    }
    assert_eq!(carried().items.iter().filter(|item| item.agent_id.as_str() == "b").count(), 2);
    assert_eq!(governor.escalations().list(&EscalationQuery::all()).unwrap().total, 3);
}

#[test]
fn open_tasks_that_a_repair_ends_are_named_in_its_notes() {
    let store = tempfile::tempdir().unwrap();
    let governor = Sample::builder().open(store.path()).unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let task = governor.tasks().open(TaskRequest::new("a", "Read the minutes")).unwrap().id();
    governor.tasks().open(TaskRequest::new("a", "Read the agenda")).unwrap().close(None).unwrap();
    let damaged = governor.enforce(&reading("a")).unwrap().proof_id;
    governor.close().unwrap();
    change(&journal(store.path()), |bytes| {
        let frame = frames(bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
        bytes[frame.start + 80] ^= 1;
    });
    let report = repaired(store.path());
    assert!(report.notes.iter().any(|note| note.starts_with("1 open tasks")), "{:?}", report.notes);
    assert_eq!(code(reopened(store.path()).tasks().get(task)), "TASK_NOT_FOUND");
}
