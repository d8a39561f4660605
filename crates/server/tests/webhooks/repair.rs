//! Endpoints of a broken log continue with the log that replaces it.

use std::collections::BTreeSet;
use std::fs;

use crate::common::receiver::Receiver;
use crate::common::{decide, frames, journal};
use rulekeep::maintenance::{RepairOptions, repair};
use rulekeep_server::webhooks::{EndpointDraft, EndpointState};

use super::opened;

#[test]
fn endpoints_follow_a_repaired_log_unless_removed_after_a_break() {
    let store = tempfile::tempdir().unwrap();
    let (kept, removed) = (Receiver::taking(), Receiver::taking());
    let governor = opened(store.path());
    let stays = governor.webhooks().add(&EndpointDraft::to(&kept.url)).unwrap();
    let goes = governor.webhooks().add(&EndpointDraft::to(&removed.url)).unwrap();
    let damaged = decide(&governor, "a");
    kept.take(2);
    removed.take(2);
    governor.webhooks().remove(goes.id).unwrap();
    let unbelieved = governor.webhooks().add(&EndpointDraft::to(&removed.url)).unwrap();
    governor.close().unwrap();
    let file = journal(store.path());
    let mut bytes = fs::read(&file).unwrap();
    let frame = frames(&bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
    bytes[frame.start + 80] ^= 1;
    fs::write(&file, bytes).unwrap();

    let report = repair(store.path(), &RepairOptions::default()).unwrap();
    assert!(report.notes.iter().any(|note| note.starts_with("1 webhook endpoints")), "{:?}", report.notes);
    let secrets = fs::read(store.path().join("SECRETS")).unwrap();
    assert_eq!(fs::read(store.path().join(&report.kept).join("SECRETS")).unwrap(), secrets, "both have them");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(store.path().join("SECRETS")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    removed.rest();
    let mut seen = BTreeSet::new();
    for round in ["repaired", "reopened"] {
        let governor = opened(store.path());
        let endpoints = governor.webhooks().list().unwrap();
        let states: Vec<_> = endpoints.iter().map(|endpoint| (endpoint.id, endpoint.state)).collect();
        assert_eq!(states, [(stays.id, EndpointState::Active)], "{round}, not {}", unbelieved.id);
        let id = decide(&governor, "a");
        let mut new = 0;
        while new < 2 {
            for request in kept.take(1) {
                let told = request.verified(&stays.secret).unwrap().to_owned();
                // Deliveries in flight when it closed arrive once more.
                if seen.insert(told) {
                    assert!(request.event().to_string().contains(&id.to_string()), "{round}: {}", request.event());
                    new += 1;
                }
            }
        }
        governor.close().unwrap();
    }
    assert!(removed.rest().is_empty());
}
