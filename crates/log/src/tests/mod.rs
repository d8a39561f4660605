//! The log on simulated files, and the index compared with a plain list.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)] // small numbers

mod behind;
mod crash;
mod damage;
mod erasing;
mod faults;
mod held;
mod meeting;
mod model;
mod pairs;
mod repair;
mod retention;
mod sealing;
#[cfg(feature = "checkpoints")]
mod tree;
mod twin;
mod verify;
mod waiting;

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::queue::Room;
use super::*;
use crate::store::crash::{CrashFiles, Dice};
use crate::store::faulty::{Counted, Fault, FaultyFiles};
use crate::store::{BlockBatch, Blocks, Files, JournalOptions, MemoryFiles, Sealing, StoreId};
use rulekeep_types::{
    AgentId, Decision, Error, IntentId, Outcome, Period, ProofId, RiskLevel, Score, Sequence, Tier, Timestamp,
    TrustSnapshot,
};

const STORE: StoreId = StoreId([7; 16]);

fn open(files: impl Files + 'static, durability: Durability) -> Result<(ProofLog, Startup), OpenLogError> {
    let options = LogOptions { durability, room: HURRIED, ..LogOptions::default() };
    ProofLog::open_files(Arc::new(files), None, None, &options, Timestamp::from_millis(0), STORE)
}

/// Opens a log with segments that a few entries fill.
fn open_small(files: impl Files + 'static, durability: Durability) -> Result<(ProofLog, Startup), OpenLogError> {
    let options = LogOptions { durability, room: HURRIED, journal: SMALL, ..LogOptions::default() };
    ProofLog::open_files(Arc::new(files), None, None, &options, Timestamp::from_millis(0), STORE)
}

/// Queue options with a short wait for room.
const HURRIED: Room = Room { patience: std::time::Duration::from_millis(200), ..Room::DEFAULT };
/// Segments with room for about three decisions.
const SMALL: JournalOptions = JournalOptions { segment_bytes: 2048, sealing: Sealing::AtOnce, nonce: [0; 16] };

fn open_folder(folder: &Path) -> ProofLog {
    let options = LogOptions { durability: Durability::Buffered, ..LogOptions::default() };
    ProofLog::open(&Place::Folder(folder.to_owned()), &options, Timestamp::from_millis(0), STORE).unwrap().0
}

fn draft(entity: &str, decision: Decision, risk: RiskLevel, score: i64) -> DecisionDraft {
    let entity: AgentId = entity.parse().unwrap();
    let trust = TrustSnapshot::new(Score::saturating(score), Tier::T4);
    DecisionDraft {
        entity,
        intent: IntentId::new(Timestamp::from_millis(0), 1),
        decision,
        reasoning: "because".to_owned(),
        resolves: None,
        retry_of: None,
        earns: RiskLevel::Low,
        trust,
        risk,
        evidence: encode_evidence(9, &"intent", &"detail", &[], None).unwrap(),
        // Looked for in each, for tests that change the evidence.
        uses_limits: true,
        random: 5,
    }
}

fn encode_evidence(
    salt: u128,
    intent: &impl serde::Serialize,
    detail: &impl serde::Serialize,
    charges: &[(Box<str>, i64)],
    input: Option<&crate::journal::evidence::KeptInput>,
) -> serde_json::Result<Vec<u8>> {
    let write_intent = |out: &mut Vec<u8>| serde_json::to_writer(out, intent);
    let write_detail = |out: &mut Vec<u8>| serde_json::to_writer(out, detail);
    super::encode_evidence(Vec::new(), salt, write_intent, write_detail, charges, input)
}

fn decide(log: &ProofLog, at: i64, draft: DecisionDraft) -> Result<ProofId, Error> {
    let committed = log.queue().decide(Timestamp::from_millis(at), draft, 0)?.unwrap();
    log.settle(committed.sequence)?;
    Ok(committed.proof_id)
}

fn report(log: &ProofLog, proof_id: ProofId, outcome: Outcome) -> Result<(), Error> {
    let entity = log.facts(&proof_id)?.entity;
    let Some(reserved) = log.reserve_for(&entity, &proof_id, outcome)? else { return Ok(()) };
    let draft =
        OutcomeDraft { proof_id, entity, outcome, note: None, state: None, asked: None, trust: None, basis: None };
    log.settle(reserved.report(Timestamp::from_millis(0), draft)?)
}

/// Changes the first block that a folder's index has under a prefix, with a valid checksum.
fn forge_view(folder: &Path, prefix: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
    let blocks = Blocks::open(Some(&folder.join("view")), 1 << 20).unwrap();
    let (key, mut value) = blocks.scan(prefix).unwrap().swap_remove(0);
    change(&mut value);
    let mut batch = BlockBatch::default();
    batch.put(&key, &value);
    blocks.apply_and_flush(batch).unwrap();
}
