//! A repair believes nothing before a break that no witness confirms: the journal may have been rewritten there.

use crate::common;
use crate::repair::change;

use std::fs;
use std::ops::Range;
use std::path::Path;

use common::{NOON, Sample, Still, frames, journal, reading};
use rulekeep::agent::AgentState;
use rulekeep::maintenance::{RepairOptions, RepairReport, repair};
use rulekeep::proof::{BrokenKind, Sequence};
use rulekeep::{Agent, Governor, GovernorBuilder, PolicySet, Tier};
use sha2::{Digest, Sha256};

/// A store of three agents, "a" of them suspended, and the place of the last of some decisions behind that.
struct Store {
    dir: tempfile::TempDir,
    suspension: usize,
    damaged: usize,
}

impl Store {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let governor = Sample::builder().open(dir.path()).unwrap();
        for agent in ["a", "b", "c"] {
            governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
        }
        let suspension = place(&governor, "b") + 1;
        governor.agents().suspend("a", "for good reasons").unwrap();
        let damaged = [(); 5].map(|()| place(&governor, "b"))[4];
        place(&governor, "c");
        governor.close().unwrap();
        Self { dir, suspension, damaged }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Rewrites the entries of a range with valid frames and links, the suspension taken back.
    fn rewrite(&self, entries: Range<usize>) {
        change(&journal(self.path()), |bytes| {
            let all = frames(bytes);
            let mut rewritten = bytes[..128].to_vec();
            let mut link = [0; 32];
            for (place, range) in all.into_iter().enumerate() {
                let frame = &bytes[range];
                if entries.contains(&place) {
                    rewritten.extend(relinked(frame, link, place == self.suspension));
                } else {
                    rewritten.extend_from_slice(frame);
                }
                let at = frames(&rewritten).last().unwrap().start;
                link.copy_from_slice(&rewritten[at + 32..at + 64]);
            }
            *bytes = rewritten;
        });
    }

    /// Overwrites some bytes in an entry.
    fn damage(&self, place: usize, bytes_changed: usize) {
        change(&journal(self.path()), |bytes| {
            let frame = frames(bytes)[place].clone();
            bytes[frame.start + 80..frame.start + 80 + bytes_changed].iter_mut().for_each(|byte| *byte ^= 1);
        });
    }

    fn remove_head(&self) {
        fs::remove_file(self.path().join("HEAD")).unwrap();
    }

    fn remove_view(&self) {
        fs::remove_dir_all(self.path().join("view")).unwrap();
    }

    fn repaired(&self) -> RepairReport {
        repair(self.path(), &RepairOptions::default()).unwrap()
    }
}

/// The place of a new decision.
fn place(governor: &Governor, agent: &str) -> usize {
    usize::try_from(governor.enforce(&reading(agent)).unwrap().proof_id.sequence().get()).unwrap()
}

/// A frame behind one of another link; an agent that its body suspends is active where that is wanted.
fn relinked(frame: &[u8], previous: [u8; 32], resumes: bool) -> Vec<u8> {
    let length = u32::from_le_bytes(frame[20..24].try_into().unwrap()) as usize;
    let (mut body, evidence) = (frame[64..64 + length].to_vec(), &frame[64 + length..]);
    if resumes {
        let text = String::from_utf8(body).unwrap();
        assert!(text.contains("\"suspended\""), "{text}");
        body = text.replace("\"suspended\"", "\"active\"").into_bytes();
    }
    let mut header = frame[..28].to_vec();
    header[20..24].copy_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    let digest = Sha256::digest(&body);
    let link = Sha256::new().chain_update(previous).chain_update(&header).chain_update(digest).finalize();
    let crc = crc32fast::hash(&[&header[..], &link, &body].concat()).to_le_bytes();
    [&header[..], &crc, &link, &body, evidence].concat()
}

fn first_unconfirmed(report: &RepairReport) -> Option<u64> {
    report.first_unconfirmed.map(Sequence::get)
}

fn reopened(store: &Path) -> Governor {
    GovernorBuilder::clock(Governor::builder(), Still::at(NOON + 1000)).open(store).unwrap()
}

fn assert_all_suspended(store: &Store, what: &str) {
    let governor = reopened(store.path());
    assert!(governor.verify().unwrap().valid, "{what}");
    let agents = governor.agents().list();
    assert_eq!(agents.len(), 3, "{what}");
    assert!(agents.iter().all(|agent| agent.state == AgentState::Suspended), "{what}: {agents:?}");
}

#[test]
fn a_flipped_bit_leaves_what_stands_before_it_confirmed() {
    let store = Store::new();
    store.damage(store.damaged, 1);
    for witness in ["HEAD", "the index"] {
        let copy = tempfile::tempdir().unwrap();
        common::copy_folder(store.path(), copy.path());
        let removed = if witness == "HEAD" { copy.path().join("view") } else { copy.path().join("HEAD") };
        if removed.is_dir() {
            fs::remove_dir_all(removed).unwrap();
        } else {
            fs::remove_file(removed).unwrap();
        }
        let report = repair(copy.path(), &RepairOptions::default()).unwrap();
        assert_eq!((report.entries, report.first_unconfirmed), (store.damaged as u64, None), "{witness}");
        let governor = reopened(copy.path());
        let states = ["a", "b", "c"].map(|agent| governor.agents().get(agent).unwrap().state);
        assert_eq!(states, [AgentState::Suspended, AgentState::Active, AgentState::Active], "{witness}");
    }
}

#[test]
fn entries_that_were_rewritten_before_a_break_are_not_believed() {
    // Before an entry that was damaged so that no link shows it.
    let store = Store::new();
    store.rewrite(store.suspension..store.damaged);
    store.damage(store.damaged, 1);
    let report = store.repaired();
    assert_eq!((report.entries, first_unconfirmed(&report)), (store.damaged as u64, Some(0)));
    assert!(report.notes.iter().any(|note| note.contains("from 0 on")), "{:?}", report.notes);
    assert_all_suspended(&store, "a damaged entry");
    let written = fs::read(journal(store.path())).unwrap();
    let entry = String::from_utf8_lossy(&written[frames(&written)[1].clone()]).into_owned();
    assert!(entry.contains("\"firstUnconfirmed\":0"), "{entry}");

    // All to the end, and the one file that says otherwise taken away.
    let store = Store::new();
    store.rewrite(store.suspension..usize::MAX);
    store.remove_head();
    store.remove_view();
    let report = store.repaired();
    assert_eq!((report.broken.kind, first_unconfirmed(&report)), (BrokenKind::Missing, Some(0)));
    assert_all_suspended(&store, "HEAD removed");

    // Whoever forgot the index is found out by it.
    let store = Store::new();
    store.rewrite(store.suspension..usize::MAX);
    store.remove_head();
    let report = store.repaired();
    assert_eq!(first_unconfirmed(&report), Some(0));
    assert!(report.notes.iter().any(|note| note.contains("were rewritten")), "{:?}", report.notes);
    assert_all_suspended(&store, "HEAD removed, the index not");
}

#[test]
fn after_the_last_confirmed_block_entries_only_tighten() {
    let dir = tempfile::tempdir().unwrap();
    let governor = Sample::builder().open(dir.path()).unwrap();
    for agent in ["a", "b", "c", "d"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor.agents().suspend("a", "for good reasons").unwrap();
    while place(&governor, "b") < 520 {}
    governor.agents().resume("a", "an intruder says").unwrap();
    governor.agents().suspend("c", "found out").unwrap();
    let damaged = place(&governor, "b");
    while place(&governor, "b") < 600 {}
    governor.close().unwrap();
    change(&journal(dir.path()), |bytes| {
        let frame = frames(bytes)[damaged].clone();
        bytes[frame.start + 80..frame.start + 90].fill(b'x');
    });
    let report = repair(dir.path(), &RepairOptions::default()).unwrap();
    assert_eq!((report.entries, first_unconfirmed(&report)), (damaged as u64, Some(512)));
    assert_eq!(report.tightened, ["c"]);
    let governor = reopened(dir.path());
    let states = ["a", "b", "c", "d"].map(|agent| governor.agents().get(agent).unwrap().state);
    let expected = [AgentState::Suspended, AgentState::Active, AgentState::Suspended, AgentState::Active];
    assert_eq!(states, expected);
    assert_eq!(governor.policies().current().digest(), common::policies().digest());
}

#[test]
fn a_policy_set_that_nobody_confirms_grants_nothing() {
    let store = Store::new();
    let governor = Sample::builder().open(store.path()).unwrap();
    let loose = "name = \"loose\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nmatch.capabilities = [\"*:*\"]\n";
    governor.policies().load(PolicySet::from_toml(loose).unwrap()).unwrap();
    governor.close().unwrap();
    store.remove_head();
    store.remove_view();
    store.repaired();
    let governor = reopened(store.path());
    governor.agents().resume("b", "looked at").unwrap();
    assert_eq!(governor.enforce(&reading("b")).unwrap().decision, rulekeep::Decision::Deny);
}

#[cfg(feature = "checkpoints")]
mod kept {
    use super::*;
    use crate::common::code;
    use crate::repair::make_head;
    use rulekeep::checkpoint::{Checkpoint, CheckpointKey};

    fn key() -> CheckpointKey {
        CheckpointKey::from_seed("example.com/agents", &[3; 32]).unwrap()
    }

    /// A checkpoint of the log as it is, of which nothing is left in the folder.
    fn checkpoint(store: &Store) -> String {
        let governor = Sample::builder().checkpoints(key()).open(store.path()).unwrap();
        let note = governor.log().checkpoint().unwrap();
        place(&governor, "c");
        governor.close().unwrap();
        fs::remove_file(store.path().join("CHECKPOINT")).unwrap();
        note
    }

    fn options(note: &str) -> RepairOptions {
        RepairOptions::default().checkpoint(note, &key().verifier()).unwrap()
    }

    #[test]
    fn a_wholly_rewritten_log_is_broken_by_a_kept_checkpoint() {
        let store = Store::new();
        let note = checkpoint(&store);
        store.rewrite(store.suspension..usize::MAX);
        make_head(store.path());
        store.remove_view();
        assert_eq!(code(repair(store.path(), &RepairOptions::default())), "CONFLICT");
        let report = repair(store.path(), &options(&note)).unwrap();
        assert_eq!((report.broken.kind, report.broken.file.as_str()), (BrokenKind::Tampering, "the checkpoint"));
        assert_eq!(first_unconfirmed(&report), Some(0));
        assert_all_suspended(&store, "rewritten with HEAD");
    }

    #[test]
    fn a_kept_checkpoint_beyond_the_entries_breaks_a_log() {
        let store = Store::new();
        let note = checkpoint(&store);
        change(&journal(store.path()), |bytes| {
            let end = frames(bytes)[store.damaged].end;
            bytes.truncate(end);
        });
        make_head(store.path());
        store.remove_view();
        let report = repair(store.path(), &options(&note)).unwrap();
        assert_eq!(report.broken.kind, BrokenKind::Missing);
        assert!(report.broken.expected.contains("the checkpoint names"), "{}", report.broken);
    }

    #[test]
    fn a_kept_checkpoint_confirms_the_entries_that_it_covers() {
        let store = Store::new();
        let note = checkpoint(&store);
        let covered = Checkpoint::open(&note, &key().verifier()).unwrap().size();
        let governor = Sample::builder().open(store.path()).unwrap();
        let damaged = [(); 3].map(|()| place(&governor, "b"))[2];
        governor.close().unwrap();
        store.damage(damaged, 9);
        store.remove_view();
        let report = repair(store.path(), &options(&note)).unwrap();
        assert_eq!((report.entries, first_unconfirmed(&report)), (damaged as u64, Some(covered)));
        let governor = reopened(store.path());
        let states = ["a", "b", "c"].map(|agent| governor.agents().get(agent).unwrap().state);
        assert_eq!(states, [AgentState::Suspended, AgentState::Active, AgentState::Active]);
    }

    #[test]
    fn a_checkpoint_that_the_key_did_not_sign_is_refused() {
        let store = Store::new();
        let note = checkpoint(&store);
        let other = CheckpointKey::from_seed("example.com/agents", &[4; 32]).unwrap().verifier();
        assert_eq!(code(RepairOptions::default().checkpoint(&note, &other)), "INVALID_INPUT");
    }
}
