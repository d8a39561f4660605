//! A power cut on a real file system: the process is stopped, the image of its disk is copied as it lies there, and
//! the copy is mounted and held against what had been acknowledged.
//!
//! `RULEKEEP_POWER_CUTS` sets how often (default 0: it needs root, `mkfs.ext4` and loop devices).

use crate::common;

use rulekeep::proof::ProofId;
use rulekeep::{Agent, Durability, Governor, Tier};

use common::{builder, child_folder, decide, say};

/// Who is acted for; each in a thread of its own.
const AGENTS: [&str; 3] = ["left", "middle", "right"];

fn decide_until_stopped(durability: Durability) {
    let Some(folder) = child_folder() else { return };
    let governor = builder().durability(durability).open(folder).expect("the folder opens");
    for agent in AGENTS {
        // The child of an earlier round may have registered it.
        let _ = governor.agents().register(Agent::new(agent).at_tier(Tier::T4));
    }
    say("open");
    std::thread::scope(|scope| {
        for agent in AGENTS {
            let governor = governor.clone();
            scope.spawn(move || {
                loop {
                    say(&format!("decided {}", decide(&governor, agent)));
                }
            });
        }
    });
}

#[test]
fn child_that_decides_in_sync() {
    decide_until_stopped(Durability::Sync);
}

#[test]
fn child_that_decides_in_memory() {
    decide_until_stopped(Durability::Buffered);
}

/// The agents' records in the order of the chain, after a check of all that is there.
fn chain_of(governor: &Governor, what: &str) -> Vec<ProofId> {
    let verification = governor.verify().unwrap();
    assert!(verification.valid, "{what}: {:?}", verification.first_broken);
    let records = common::chain(governor, &AGENTS);
    assert_eq!(records.len() as u64, verification.records, "{what}");
    assert!(records.windows(2).all(|pair| pair[1].previous_hash == pair[0].hash), "{what}");
    records.iter().map(|record| record.id).collect()
}

#[cfg(target_os = "linux")]
mod on_ext4 {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use common::ChildProcess;

    #[test]
    fn what_was_acknowledged_survives_a_power_cut() {
        let rounds = std::env::var("RULEKEEP_POWER_CUTS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(0);
        if rounds == 0 {
            eprintln!("skipped: RULEKEEP_POWER_CUTS is not set");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut image = folder.path().join("image-0");
        fs::File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        if !ran("mkfs.ext4", &["-q".as_ref(), image.as_ref()]) || Mount::of(&image).is_none() {
            eprintln!("skipped: no ext4 image can be made and mounted here");
            return;
        }
        let mut sync_acknowledged = Vec::new();
        let mut certain: usize = 0;
        for round in 1..=rounds {
            let is_sync = round % 2 == 1;
            let copy = folder.path().join(format!("image-{round}"));
            let told = {
                let mount = Mount::of(&image).expect("mounted before");
                run_and_cut(is_sync, &mount.folder.path().join("store"), &image, &copy, 300 + 77 * round)
            };
            fs::remove_file(&image).unwrap();
            image = copy;

            let mount = Mount::of(&image).expect("the copy mounts: ext4 replays its own journal");
            let what = format!("round {round}");
            let governor = builder().open(mount.folder.path().join("store")).unwrap();
            let ids = chain_of(&governor, &what);
            let there: BTreeSet<&ProofId> = ids.iter().collect();
            let found = told.iter().filter(|id| there.contains(id)).count();
            if is_sync {
                assert_eq!(found, told.len(), "{what}: acknowledged in Sync and gone");
                sync_acknowledged.extend(told.iter().copied());
            } else {
                // What is left is a prefix: behind the first that is gone there is nothing.
                let last = told.iter().filter(|id| there.contains(id)).map(ProofId::sequence).max();
                let gone = told.iter().find(|id| !there.contains(id) && last.is_some_and(|last| id.sequence() < last));
                assert_eq!(gone, None, "{what}: gone, and one behind it is there");
            }
            assert!(sync_acknowledged.iter().all(|id| there.contains(id)), "{what}: an earlier round's are gone");
            assert!(ids.len() >= certain, "{what}: {certain} were there before");
            let torn = governor.log().opening().recovered.as_ref().map(|recovered| recovered.bytes);
            eprintln!(
                "round {round}, {}: {} acknowledged, {found} of them there, {} records in all, torn tail {torn:?}",
                if is_sync { "Sync" } else { "Buffered" },
                told.len(),
                ids.len(),
            );
            // And it goes on: this one must be there in the next round.
            let _ = governor.agents().register(Agent::new(AGENTS[0]).at_tier(Tier::T4));
            sync_acknowledged.push(decide(&governor, AGENTS[0]));
            certain = ids.len() + 1;
            governor.close().unwrap();
        }
    }

    /// Lets a child decide until it has told so much, stops it, copies the image while it stands still, and returns
    /// what it had told before the copy was begun.
    fn run_and_cut(is_sync: bool, store: &Path, image: &Path, copy: &Path, patience: usize) -> Vec<ProofId> {
        let name =
            if is_sync { "power_cut::child_that_decides_in_sync" } else { "power_cut::child_that_decides_in_memory" };
        let mut child = ChildProcess::start(name, store);
        assert_eq!(child.heard().as_deref(), Some("open"), "the child opens the folder");
        let process = child.child.id().to_string();
        let (sender, receiver) = mpsc::channel();
        let mut told: Vec<ProofId> = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                let sender = sender;
                // Until the child has ended: a full pipe would stop it elsewhere than a power cut does.
                while let Some(said) = child.heard() {
                    let _ = sender.send(said.split(' ').nth(1).unwrap().parse().unwrap());
                }
            });
            for _ in 0..patience {
                told.push(receiver.recv().expect("the child goes on until it is stopped"));
            }
            assert!(ran("kill", &["-STOP".as_ref(), process.as_ref()]));
            // What was in the pipe before the copy begins counts as well.
            told.extend(receiver.try_iter());
            fs::copy(image, copy).unwrap();
            assert!(ran("kill", &["-KILL".as_ref(), process.as_ref()]));
        });
        child.kill();
        told
    }

    /// An image that is mounted; unmounted when dropped.
    struct Mount {
        folder: tempfile::TempDir,
    }

    impl Mount {
        fn of(image: &Path) -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            // Without a commit now and then nothing but what is synced reaches the image by itself.
            let mounted =
                ran("mount", &["-o".as_ref(), "loop,commit=1".as_ref(), image.as_os_str(), folder.path().as_os_str()]);
            mounted.then_some(Self { folder })
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            ran("umount", &[self.folder.path().as_os_str()]);
        }
    }

    fn ran(program: &str, arguments: &[&std::ffi::OsStr]) -> bool {
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    }

    const IMAGE_BYTES: u64 = 96 << 20;
}
