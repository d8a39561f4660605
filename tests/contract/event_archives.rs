//! What follows the log goes on where it was when entries move to an archive: named cursors, and alerts by rules.

use crate::common;

use std::path::Path;
use std::time::Duration;

use common::{Hand, NOON, error, heavy, intent, wait_until_sealed};
use rulekeep::event::{EventData, EventFilter, EventType, Subscription};
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Decision, Durability, Governor, PolicySet, Tier};

const DAY: i64 = 86_400_000;
/// Longer than anything takes that comes at all.
const FOREVER: Duration = Duration::from_secs(60);
const RULES: &str = "[[alert]]\nid = \"many\"\non = \"denials\"\ncount = 3\nper = \"10m\"\ncooldown = \"30m\"";

fn opened(folder: &Path, clock: &Hand) -> Governor {
    let policies = PolicySet::from_toml(&format!("{}\n{RULES}", common::POLICIES)).unwrap();
    let builder = Governor::builder().policies(policies).clock(clock.clone()).durability(Durability::Buffered);
    let governor = builder.open(folder.join("store")).unwrap();
    let _ = governor.agents().register(Agent::new("a").at_tier(Tier::T4));
    governor
}

/// Moves what is from the first day to an archive.
fn archive(governor: &Governor, folder: &Path) -> u64 {
    wait_until_sealed(governor);
    let before = Timestamp::from_millis(NOON + DAY);
    governor.log().archive(before, folder.join("old.rka")).unwrap().expect("whole segments are that old").entries
}

fn deny(governor: &Governor) {
    assert_eq!(governor.enforce(&intent("a", &["file:delete"])).unwrap().decision, Decision::Deny);
}

#[test]
fn a_named_cursor_passes_an_archive_and_one_within_it_says_so() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let records = EventFilter::all().of_type(EventType::Recorded);
    let of = |governor: &Governor, name: &str| governor.log().cursor(name, &records).unwrap();
    let next = |cursor: &mut Subscription| cursor.wait_for(FOREVER).unwrap().expect("an event is told");
    let governor = opened(folder.path(), &clock);
    let (mut read, lags) = (of(&governor, "read"), of(&governor, "lags"));
    heavy(&governor, 400, 1);
    let told: Vec<_> = (0..400).map(|_| next(&mut read).id).collect();
    read.acknowledge(&told[399]).unwrap();
    drop((read, lags));
    clock.set(NOON + 40 * DAY);
    let new = heavy(&governor, 380, 2);
    archive(&governor, folder.path());

    // Its own state, from before, is in the archive.
    assert_eq!(next(&mut of(&governor, "read")).id.sequence(), new[0].sequence());
    governor.close().unwrap();
    let governor = opened(folder.path(), &clock);
    let mut read = of(&governor, "read");
    for proof_id in &new {
        assert_eq!(next(&mut read).id.sequence(), proof_id.sequence());
    }
    assert_eq!(read.poll().unwrap(), None);

    let refused = governor.log().cursor("lags", &records).and_then(|mut cursor| cursor.wait_for(FOREVER));
    let refused = error(refused);
    assert!(refused.code() == "CONFLICT" && refused.to_string().contains("old.rka"), "{refused}");
    governor.log().forget_cursor("lags").unwrap();
    let mut lags = of(&governor, "lags");
    let later = heavy(&governor, 1, 3);
    assert_eq!(next(&mut lags).id.sequence(), later[0].sequence());
}

#[test]
fn alerts_pass_an_archive_and_a_restart_without_loss_or_double() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let governor = opened(folder.path(), &clock);
    // The first is told, the rest of the burst is within its cooldown.
    let mut alerts = governor.subscribe(&EventFilter::all().of_type(EventType::Alert)).unwrap();
    let occurrences =
        |alerts: &mut Subscription| match alerts.wait_for(FOREVER).unwrap().expect("an alert is told").data {
            EventData::Alert(alert) => alert.occurrences,
            other => panic!("{other:?}"),
        };
    for _ in 0..4 {
        deny(&governor);
    }
    assert_eq!(occurrences(&mut alerts), 3);
    heavy(&governor, 400, 1);
    clock.set(NOON + 40 * DAY);
    heavy(&governor, 380, 2);
    // Amid a burst.
    deny(&governor);
    deny(&governor);
    let left = archive(&governor, folder.path());
    governor.close().unwrap();

    let governor = opened(folder.path(), &clock);
    let mut alerts = governor.subscribe(&EventFilter::all().of_type(EventType::Alert)).unwrap();
    deny(&governor);
    // Whether the one from before the archive is counted too hangs on whether it was looked at before that.
    assert!((3..=4).contains(&occurrences(&mut alerts)));
    clock.set(NOON + 41 * DAY);
    for _ in 0..3 {
        deny(&governor);
    }
    assert_eq!(occurrences(&mut alerts), 3, "nothing was told between");
    governor.close().unwrap();
    assert!(left > 300);
    let status = opened(folder.path(), &clock).status();
    assert!(status.warnings.is_empty(), "{:?}", status.warnings);
}
