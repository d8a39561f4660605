//! The witness: each answer of the specification, and what remains after a restart.

use std::fs;
use std::path::Path;

use rulekeep::checkpoint::{Checkpoint, CheckpointKey};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use rulekeep_fleet::cosignature::cosigned_by;
use rulekeep_fleet::log::{self, Head};
use rulekeep_fleet::witness::{Witness, WitnessError, request};

use crate::Organisation;

const NAME: &str = "example.com/org";

fn now() -> Timestamp {
    "2026-01-31T09:30:00.000Z".parse().unwrap()
}

fn open(folder: &Path) -> Witness {
    let key = CheckpointKey::from_seed(NAME, &[7; 32]).unwrap().verifier();
    Witness::open(folder, "witness.example/w1", &[9; 32], &[key]).unwrap()
}

fn request_from(organisation: &Organisation, old: u64) -> String {
    let path = log::consistency(old, &organisation.head, &organisation.tiles).unwrap();
    request(old, &path, &organisation.note())
}

fn status(witness: &mut Witness, body: &str) -> u16 {
    let kept = witness.kept(NAME);
    let status = witness.add_checkpoint(body, now()).expect_err("the request is refused").status();
    assert_eq!(witness.kept(NAME), kept);
    status
}

#[test]
fn a_growing_log_is_cosigned_and_remembered_across_restarts() {
    let (folder, mut organisation) = (tempfile::tempdir().unwrap(), Organisation::new(NAME));
    let mut old = 0;
    for count in [0, 1, 0, 300, 70_000] {
        organisation.grow(count);
        let mut witness = open(folder.path());
        let line = witness.add_checkpoint(&request_from(&organisation, old), now()).unwrap();
        assert_eq!(witness.kept(NAME), Some(organisation.head));
        let cosigned = cosigned_by(&(organisation.note() + &line), std::slice::from_ref(witness.key()), 1).unwrap();
        assert_eq!((cosigned[0].witness.as_str(), cosigned[0].at), ("witness.example/w1", now()));
        old = organisation.head.size;
    }
    assert_eq!(open(folder.path()).kept(NAME), Some(organisation.head));
    assert_eq!(open(folder.path()).kept("example.com/other"), None);
}

#[test]
fn each_refusal_has_the_status_of_the_specification() {
    let (folder, mut organisation) = (tempfile::tempdir().unwrap(), Organisation::new(NAME));
    let mut witness = open(folder.path());
    organisation.grow(300);
    witness.add_checkpoint(&request_from(&organisation, 0), now()).unwrap();
    organisation.grow(300);
    let good = request_from(&organisation, 300);
    let (old_line, rest) = good.split_once('\n').unwrap();

    let malformed = [
        String::new(),
        good.replace("\n\n", "\n"),
        format!("old 0300\n{rest}"),
        format!("old +300\n{rest}"),
        format!("Old 300\n{rest}"),
        format!("{old_line}\nAAAA\n{rest}"),
        format!("{old_line}\n{}{rest}", (Digest::ZERO.to_string() + "\n").repeat(2)),
        format!("{old_line}\n{}{rest}", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n".repeat(64)),
        good.strip_suffix('\n').unwrap().to_owned(),
        format!("old 601\n{rest}"),
    ];
    for body in malformed {
        assert_eq!(status(&mut witness, &body), 400, "{body:?}");
    }
    let other = Organisation::new("example.com/other");
    assert_eq!(status(&mut witness, &request(0, &[], &other.note())), 404);
    let forger = CheckpointKey::from_seed(NAME, &[8; 32]).unwrap();
    let forged = Checkpoint::new(NAME, 600, organisation.head.root).unwrap().sign(&forger).unwrap();
    assert_eq!(status(&mut witness, &request(300, &[], &forged)), 403);
    assert_eq!(status(&mut witness, &good.replace("\n600\n", "\n601\n")), 403);

    let stale = witness.add_checkpoint(&request_from(&organisation, 200), now()).unwrap_err();
    assert_eq!((stale.status(), stale.kept_size()), (409, Some(300)));
    let stale = witness.add_checkpoint(&request_from(&organisation, 0), now()).unwrap_err();
    assert_eq!((stale.status(), stale.kept_size()), (409, Some(300)));
    let mut two_faced = Organisation::new(NAME);
    two_faced.append(&vec![b"another".to_vec(); 300]);
    let error = witness.add_checkpoint(&request(300, &[], &two_faced.note()), now()).unwrap_err();
    assert!(matches!(error, WitnessError::OtherRoot(_)) && error.status() == 409 && error.kept_size() == Some(300));

    two_faced.grow(300);
    assert_eq!(status(&mut witness, &request_from(&two_faced, 300)), 422);
    assert_eq!(status(&mut witness, &request(300, &[], &organisation.note())), 422);
    let mut path = log::consistency(300, &organisation.head, &organisation.tiles).unwrap();
    path.push(Digest::ZERO);
    assert_eq!(status(&mut witness, &request(300, &path, &organisation.note())), 422);

    witness.add_checkpoint(&good, now()).unwrap();
    assert_eq!(status(&mut witness, &request(600, &[Digest::ZERO], &organisation.note())), 422);
    witness.add_checkpoint(&request(600, &[], &organisation.note()), now()).unwrap();
}

#[test]
fn a_damaged_file_is_never_taken_for_a_new_log() {
    let (folder, mut organisation) = (tempfile::tempdir().unwrap(), Organisation::new(NAME));
    organisation.grow(5);
    open(folder.path()).add_checkpoint(&request_from(&organisation, 0), now()).unwrap();
    let mut names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = names.find(|path| path.extension().is_some_and(|kind| kind == "checkpoint")).unwrap();
    let whole = fs::read(&file).unwrap();
    let key = CheckpointKey::from_seed(NAME, &[7; 32]).unwrap().verifier();
    let reopen = || Witness::open(folder.path(), "w", &[9; 32], std::slice::from_ref(&key)).map(|open| open.kept(NAME));
    let mut changed = whole.clone();
    changed[20] ^= 1;
    for damaged in [&whole[..0], &whole[..50], &changed] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(reopen().unwrap_err().status(), 500);
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(reopen().unwrap(), Some(organisation.head));
}

#[test]
fn one_process_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let witness = open(folder.path());
    let second = Witness::open(folder.path(), "w", &[9; 32], &[]);
    assert!(matches!(second, Err(WitnessError::Folder(..))));
    drop(witness);
    Witness::open(folder.path(), "w", &[9; 32], &[]).unwrap();
}

#[test]
fn nothing_is_cosigned_that_is_not_on_disk() {
    let (folder, mut organisation) = (tempfile::tempdir().unwrap(), Organisation::new(NAME));
    let mut witness = open(folder.path());
    organisation.grow(5);
    // A folder of the file's name makes its replacement fail, also for root, whom permissions do not stop.
    let mut names = Vec::new();
    witness.add_checkpoint(&request_from(&organisation, 0), now()).unwrap();
    names.extend(fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()));
    let file = names.iter().find(|path| path.extension().is_some_and(|kind| kind == "checkpoint")).unwrap();
    fs::remove_file(file).unwrap();
    fs::create_dir(file).unwrap();
    let kept: Head = organisation.head;
    organisation.grow(5);
    assert_eq!(status(&mut witness, &request_from(&organisation, 5)), 500);
    assert_eq!(witness.kept(NAME), Some(kept));
    fs::remove_dir(file).unwrap();
    witness.add_checkpoint(&request_from(&organisation, 5), now()).unwrap();
}
