//! The log as a Merkle tree, over sealed segments and restarts. An independent implementation verifies the proofs.

use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
use sha2::Sha256;

use super::*;
use crate::checkpoint::{Checkpoint, CheckpointKey};
use crate::store::RealFiles;
use rulekeep_types::Digest;

/// Segments of some thirty entries.
fn open_in(folder: &Path) -> ProofLog {
    let journal = JournalOptions { segment_bytes: 24 << 10, sealing: Sealing::AtOnce, nonce: [0; 16] };
    let options = LogOptions { durability: Durability::Buffered, journal, ..LogOptions::default() };
    let (files, view) = (RealFiles::open(folder).unwrap(), folder.join("view"));
    ProofLog::open_files(Arc::new(files), None, Some(view), &options, Timestamp::from_millis(0), STORE).unwrap().0
}

/// A checkpoint of the log as it is.
fn note(log: &ProofLog) -> String {
    let (size, root) = log.tree_head().unwrap();
    let key = CheckpointKey::from_seed("log", &[1; 32]).unwrap();
    Checkpoint::new("log", size, root).unwrap().sign(&key).unwrap()
}

fn root(size: u64, root: Digest) -> RootHash<Sha256> {
    RootHash::new((*root.as_bytes()).into(), size)
}

fn bytes(path: &[Digest]) -> Vec<u8> {
    path.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

#[test]
fn the_tree_is_the_same_over_sealed_segments_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut heads: Vec<(u64, Digest)> = Vec::new();
    let mut ids = Vec::new();
    for round in 0..4_i64 {
        // In the first rounds the segments are verified in parallel, in the last one by one, because the index is
        // gone.
        if round == 3 {
            std::fs::remove_dir_all(folder.path().join("view")).unwrap();
        }
        let log = open_in(folder.path());
        if let Some(last) = heads.last() {
            assert_eq!(log.tree_head().unwrap(), *last, "round {round}");
        }
        for at in 0..150 + 67 * round {
            // Flushed in between, because a single write goes to one segment.
            if at % 20 == 0 {
                log.flush().unwrap();
            }
            ids.push(decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap());
        }
        report(&log, ids[0], Outcome::Success).unwrap_or_default();
        let (size, head) = log.tree_head().unwrap();
        heads.push((size, head));
        for (old, old_root) in &heads {
            assert_eq!(log.root_at(*old).unwrap(), *old_root, "{old} of {size}");
            let path = ConsistencyProof::try_from_bytes(bytes(&log.consistency(*old, size).unwrap())).unwrap();
            assert!(root(size, head).verify_consistency(&root(*old, *old_root), &path).is_ok(), "{old} of {size}");
        }
        for id in ids.iter().step_by(41) {
            let index = id.sequence().get();
            let path = InclusionProof::try_from_bytes(bytes(&log.inclusion(index, size).unwrap())).unwrap();
            let hash = log.record(id).unwrap().hash;
            assert!(root(size, head).verify_inclusion(hash.as_bytes(), index, &path).is_ok(), "{index} of {size}");
        }
        log.close().unwrap();
    }
    assert!(heads.last().unwrap().0 > 3 * 256);
    let sealed = std::fs::read_dir(folder.path().join("journal")).unwrap();
    assert!(sealed.filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "rks").count() > 10);
}

#[test]
fn a_head_of_another_root_is_found() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    for at in 0..3 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
    let (size, head) = log.tree_head().unwrap();
    log.close().unwrap();
    let file = disk.open(Path::new("HEAD"), crate::store::OpenMode::Write).unwrap();
    let text = String::from_utf8(file.read_all().unwrap()).unwrap();
    assert!(text.contains(&format!("\"entries\":{size},")) && text.contains(&head.to_string()), "{text}");
    let json = text.lines().next().unwrap().replace(&head.to_string(), &Digest::ZERO.to_string());
    let changed = format!("{json}\ncrc32:{:08x}\n", crc32fast::hash(json.as_bytes()));
    file.write_at(changed.as_bytes(), 0).unwrap();
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    let broken = log.verify().unwrap().first_broken.unwrap();
    assert_eq!((broken.kind, broken.file.as_str()), (rulekeep_types::BrokenKind::Tampering, "HEAD"));
}

/// A `CHECKPOINT` that covers more entries than survive would break the log at the next open.
#[test]
fn a_checkpoint_covers_nothing_that_a_power_cut_takes() {
    for seed in 0..24 {
        let disk = CrashFiles::new();
        let (log, _) = open_small(disk.clone(), Durability::Buffered).unwrap();
        let decide_some = |count| {
            for at in 0..count {
                decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
            }
        };
        decide_some(1 + seed % 7);
        let note = note(&log);
        log.keep_checkpoint(&note).unwrap();
        decide_some(seed % 5);
        let (log, _) = open_small(disk.crash(&mut Dice::new(seed.unsigned_abs())), Durability::Sync).unwrap();
        let verification = log.verify().unwrap();
        assert!(verification.valid, "{seed}: {:?}", verification.first_broken);
        assert_eq!(log.kept_checkpoint().unwrap().unwrap(), note, "{seed}");
    }
}

#[test]
fn a_checkpoint_that_cannot_be_kept_leaves_the_one_before() {
    let disk = CrashFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let id = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let first = note(&log);
    log.keep_checkpoint(&first).unwrap();
    decide(&log, 1, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let second = note(&log);
    for calls in 0..12_u64 {
        let disk = disk.kill();
        let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
        disk.power_off_after(calls);
        let kept = log.keep_checkpoint(&second);
        let (log, _) = open_small(disk.crash(&mut Dice::new(calls)), Durability::Sync).unwrap();
        let found = log.kept_checkpoint().unwrap().unwrap();
        assert!(if kept.is_ok() { found == second } else { found == first || found == second }, "{calls}: {found}");
        assert!(log.verify().unwrap().valid && log.record(&id).is_ok());
    }
}
