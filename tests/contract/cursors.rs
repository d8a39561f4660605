//! Named cursors: a program goes on behind what it acknowledged, also after `kill -9`, and misses nothing.

use crate::common;

use std::collections::BTreeSet;

use common::{ChildProcess, builder, child_folder, code, decide, in_folder, in_memory, say};
use rulekeep::event::{EventFilter, EventId, EventType, Subscription};
use rulekeep::{Agent, Error, Event, Governor, Tier};

fn cursor(governor: &Governor) -> Subscription {
    governor.log().cursor("billing", &EventFilter::all()).unwrap()
}

fn told(subscription: &mut Subscription) -> Vec<Event> {
    std::iter::from_fn(|| subscription.poll().unwrap()).collect()
}

#[test]
fn a_cursor_goes_on_after_its_acknowledgement_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let mut first = cursor(&governor);
    for _ in 0..3 {
        decide(&governor, "a");
    }
    let all = told(&mut first);
    assert_eq!(all.len(), 6);
    drop(first);
    assert_eq!(told(&mut cursor(&governor)), all, "nothing was acknowledged");
    let mut second = cursor(&governor);
    told(&mut second);
    second.acknowledge(&all[2].id).unwrap();
    second.acknowledge(&all[0].id).unwrap();
    drop(second);
    assert_eq!(told(&mut cursor(&governor)), all[3..], "it never goes back");
    let mut third = cursor(&governor);
    told(&mut third);
    third.acknowledge(&all[3].id).unwrap();
    // It is still there when the governor is closed.
    governor.close().unwrap();
    let governor = in_folder(folder.path());
    assert_eq!(told(&mut cursor(&governor)), all[4..]);
}

#[test]
fn a_new_cursor_keeps_its_beginning_before_any_acknowledgement() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    decide(&governor, "a");
    drop(cursor(&governor));
    let later = decide(&governor, "a");
    governor.close().unwrap();
    let governor = in_folder(folder.path());
    let sequences: Vec<_> = told(&mut cursor(&governor)).iter().map(|event| event.id.sequence()).collect();
    assert_eq!(sequences, [later.sequence(); 2]);
}

#[test]
fn a_cursor_that_is_dropped_with_its_governor_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let mut first = cursor(&governor);
    decide(&governor, "a");
    let all = told(&mut first);
    first.acknowledge(&all[1].id).unwrap();
    drop(governor);
    drop(first);
    assert_eq!(told(&mut cursor(&in_folder(folder.path()))), []);
}

#[test]
fn a_filter_is_the_subscriptions_and_the_place_is_the_cursors() {
    let governor = in_memory();
    let records = EventFilter::all().of_type(EventType::Recorded);
    let mut first = governor.log().cursor("billing", &records).unwrap();
    decide(&governor, "a");
    decide(&governor, "a");
    let all = told(&mut first);
    assert_eq!(all.len(), 2);
    first.acknowledge(&all[0].id).unwrap();
    drop(first);
    assert_eq!(told(&mut cursor(&governor)).len(), 2);
    assert_eq!(told(&mut governor.log().cursor("billing", &records).unwrap()), all[1..]);
}

#[test]
fn a_cursor_has_one_reader_at_a_time() {
    let governor = in_memory();
    let first = cursor(&governor);
    let refused = governor.log().cursor("billing", &EventFilter::all()).unwrap_err();
    assert_eq!(refused.code(), "CONFLICT");
    assert!(refused.to_string().contains("\"billing\" is in use"), "{refused}");
    governor.log().cursor("another", &EventFilter::all()).unwrap();
    drop(first);
    let mut second = cursor(&governor);
    decide(&governor, "a");
    let all = told(&mut second);
    // Who forgets it lets somebody else begin; what the one before acknowledges is not the new one's.
    governor.log().forget_cursor("billing").unwrap();
    let third = cursor(&governor);
    assert_eq!(code(second.acknowledge(&all[0].id)), "CONFLICT");
    drop(second);
    assert_eq!(code(governor.log().cursor("billing", &EventFilter::all())), "CONFLICT", "the third reads it still");
    drop(third);
    let unknown = EventFilter::all().after("evt_01kf7xqzzz0000000000000000".parse().unwrap());
    assert_eq!(code(governor.log().cursor("new", &unknown)), "INVALID_QUERY");
    governor.log().cursor("new", &EventFilter::all()).unwrap();
}

#[test]
fn a_cursor_is_free_when_its_subscription_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let mut first = cursor(&governor);
    governor.close().unwrap();
    assert_eq!(code(governor.log().cursor("billing", &EventFilter::all())), "CONFLICT");
    while first.wait().unwrap().is_some() {}
    let again = governor.log().cursor("billing", &EventFilter::all());
    assert!(!matches!(again, Err(Error::Conflict { .. })), "{again:?}");
}

#[test]
fn what_no_cursor_told_is_not_acknowledged() {
    let governor = in_memory();
    let mut plain = governor.subscribe(&EventFilter::all()).unwrap();
    let mut named = cursor(&governor);
    decide(&governor, "a");
    let event = plain.wait().unwrap().unwrap();
    assert_eq!(code(plain.acknowledge(&event.id)), "CONFLICT");
    assert_eq!(code(named.acknowledge(&event.id)), "INVALID_QUERY", "it was not told yet");
    let first = named.wait().unwrap().unwrap();
    named.wait().unwrap().unwrap();
    named.acknowledge(&first.id).unwrap();
    for name in ["", " ", "a\nb", "alerts"] {
        assert_eq!(code(governor.log().cursor(name, &EventFilter::all())), "INVALID_INPUT", "{name:?}");
    }
}

#[test]
fn a_cursor_that_was_forgotten_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let mut first = cursor(&governor);
    decide(&governor, "a");
    let all = told(&mut first);
    governor.log().forget_cursor("billing").unwrap();
    assert_eq!(code(governor.log().forget_cursor("billing")), "INVALID_INPUT");
    assert_eq!(code(first.acknowledge(&all[0].id)), "CONFLICT");
    governor.close().unwrap();
    assert_eq!(told(&mut cursor(&in_folder(folder.path()))), []);
}

#[test]
fn child_that_acknowledges_events() {
    let Some(folder) = child_folder() else { return };
    let governor = builder().open(folder).expect("the folder opens");
    let _ = governor.agents().register(Agent::new("a").at_tier(Tier::T4));
    let mut events = cursor(&governor);
    say("open");
    loop {
        decide(&governor, "a");
        while let Some(event) = events.poll().unwrap() {
            say(&event.id.to_string());
            events.acknowledge(&event.id).unwrap();
        }
    }
}

#[test]
fn over_kill_9_every_event_is_told_at_least_once_and_in_order() {
    const ROUNDS: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let first = {
        let governor = in_folder(folder.path());
        let mut events = governor.subscribe(&EventFilter::all()).unwrap();
        decide(&governor, "a");
        let before = told(&mut events);
        drop(cursor(&governor));
        governor.close().unwrap();
        before.last().unwrap().id
    };
    let mut runs: Vec<Vec<EventId>> = Vec::new();
    for round in 0..ROUNDS {
        let mut child = ChildProcess::start("cursors::child_that_acknowledges_events", folder.path());
        assert_eq!(child.heard().as_deref(), Some("open"), "round {round}");
        let mut run = Vec::new();
        for _ in 0..[400, 1, 30, 0, 7][round % 5] {
            run.push(child.heard().expect("the child goes on until it is killed").parse().unwrap());
        }
        child.kill();
        while let Some(said) = child.heard() {
            run.push(said.parse().unwrap());
        }
        runs.push(run);
    }

    let governor = in_folder(folder.path());
    let rest: Vec<EventId> = told(&mut cursor(&governor)).iter().map(|event| event.id).collect();
    let all: Vec<EventId> =
        told(&mut governor.subscribe(&EventFilter::all().after(first)).unwrap()).iter().map(|event| event.id).collect();
    assert!(rest.len() + 256 < all.len(), "what was acknowledged is not told all over again");
    runs.push(rest);
    let mut seen = BTreeSet::new();
    for (round, run) in runs.iter().enumerate() {
        let Some(begin) = run.first() else { continue };
        let begin = all.iter().position(|event| event == begin).expect("it stands in the log");
        assert_eq!(run[..], all[begin..begin + run.len()], "round {round}: in order, with no gap");
        seen.extend(run.iter().copied());
    }
    assert!(all.iter().all(|event| seen.contains(event)), "every event was told");
}
