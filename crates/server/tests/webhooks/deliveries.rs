//! Deliveries to receivers on loopback, over restarts, failures, rotations and removals.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::receiver::{self, OK, Receiver, Reply};
use crate::common::{
    self, ChildProcess, Hand, NOON, Served, builder, child_folder, code, decide, error, files_below, intent, refusal,
    result, say,
};
use rulekeep::event::{EventFilter, EventId, EventType, Subscription};
use rulekeep::extension::WebhookId;
use rulekeep::signature::SignatureError;
use rulekeep::status::Health;
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Durability, Error, Event, Outcome, Tier};
use rulekeep_server::webhooks::{DeliveryResult, Endpoint, EndpointDraft, EndpointState, Settings};
use serde_json::json;

use super::{in_memory, opened, opened_with, soon};

fn shown(governor: &Served, id: WebhookId) -> Endpoint {
    governor.webhooks().list().unwrap().into_iter().find(|endpoint| endpoint.id == id).unwrap()
}

/// Asserts that the status reports an endpoint's problem.
fn assert_degraded(governor: &Served, id: WebhookId, why: &str) {
    let status = governor.status();
    assert_eq!(status.components.gateway, Health::Degraded);
    let says = |warning: &String| warning.contains(&id.to_string()) && warning.contains(why);
    assert!(status.warnings.iter().any(says), "{:?}", status.warnings);
}

/// Waits until a condition holds.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// The next events of the log.
fn told(subscription: &mut Subscription, count: usize) -> Vec<Event> {
    (0..count).map(|_| subscription.wait().unwrap().unwrap()).collect()
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.id.to_string()).collect()
}

#[test]
fn what_the_log_tells_arrives_word_for_word_in_order_and_signed() {
    let (governor, receiver) = (in_memory(), Receiver::taking());
    let mut log = governor.subscribe(&EventFilter::all()).unwrap();
    let endpoint = governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    for number in 0..20 {
        let proof_id = decide(&governor, "a");
        if number % 3 == 0 {
            governor.report(&proof_id, Outcome::Failure).unwrap();
        }
    }
    governor.log().flush().unwrap();
    let mut expected = Vec::new();
    while let Some(event) = log.poll().unwrap() {
        expected.push(event);
    }
    assert!(expected.len() > 45);
    let requests = receiver.take(expected.len());
    for (request, event) in requests.iter().zip(&expected) {
        assert_eq!(request.body, serde_json::to_vec(event).unwrap());
        assert_eq!(request.verified(&endpoint.secret), Ok(event.id.to_string().as_str()));
        assert!(request.header("x-service-signature").is_some() && request.header("webhook-signature").is_some());
        assert_eq!(request.verified("another secret of 24 bytes"), Err(SignatureError::Mismatch));
    }
}

#[test]
fn only_what_was_asked_for_arrives() {
    let (governor, of_b, of_records) = (in_memory(), Receiver::taking(), Receiver::taking());
    governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
    governor.webhooks().add(&EndpointDraft::to(&of_b.url).agent("b").of_type(EventType::Decision)).unwrap();
    governor.webhooks().add(&EndpointDraft::to(&of_records.url).of_type(EventType::Recorded)).unwrap();
    for agent in ["a", "b", "a", "b"] {
        decide(&governor, agent);
    }
    for request in of_b.take(2) {
        let event = request.event();
        assert_eq!(
            (event["type"].as_str(), event["data"]["agentId"].as_str()),
            (Some("governance.decision"), Some("b"))
        );
    }
    for request in of_records.take(4) {
        assert_eq!(request.event()["type"], "proof.recorded");
    }
    governor.close().unwrap();
    assert!(of_b.rest().is_empty() && of_records.rest().is_empty());
}

#[test]
fn a_receiver_failing_every_other_time_gets_all_in_order() {
    let governor = in_memory();
    let receiver = Receiver::replying(|number, _| if number % 2 == 0 { Reply::Status(500) } else { OK });
    let mut log = governor.subscribe(&EventFilter::all()).unwrap();
    governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    for _ in 0..10 {
        decide(&governor, "a");
    }
    let expected = ids(&told(&mut log, 20));
    let requests: Vec<_> = receiver.take(40).iter().map(receiver::Request::event_id).collect();
    assert_eq!(requests, expected.iter().flat_map(|id| [id.clone(), id.clone()]).collect::<Vec<_>>());
}

#[test]
fn a_given_up_event_is_shown_kept_and_can_be_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    // The first event fails to the end; later ones are accepted.
    let receiver = Receiver::replying(|number, _| if number < 3 { Reply::Status(503) } else { OK });
    let governor = opened(folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let id = governor.webhooks().add(&draft).unwrap().id;
    decide(&governor, "a");
    let given_up = receiver.take(3).remove(0).event_id();
    until(|| shown(&governor, id).parked == 1);
    assert_eq!(shown(&governor, id).state, EndpointState::Failing);
    assert_degraded(&governor, id, "failing");
    let page = governor.webhooks().deliveries(id, 1).unwrap();
    let results: Vec<_> = page.items.iter().map(|item| (item.result, item.attempt, item.status)).collect();
    let failed = |attempt| (DeliveryResult::Failed, Some(attempt), Some(503));
    assert_eq!(results, [(DeliveryResult::Parked, Some(3), Some(503)), failed(2), failed(1)]);
    decide(&governor, "a");
    assert_ne!(receiver.next().event_id(), given_up);
    until(|| shown(&governor, id).state == EndpointState::Active);
    governor.close().unwrap();

    let governor = opened(folder.path());
    let page = governor.webhooks().deliveries(id, 1).unwrap();
    assert_eq!(page.total, 1, "what was given up is kept");
    assert_eq!((page.items[0].result, page.items[0].event_id.to_string()), (DeliveryResult::Parked, given_up.clone()));
    let parked = governor.webhooks().parked(id, 1).unwrap();
    assert_eq!((parked.total, parked.items[0].event_id.to_string()), (1, given_up.clone()));
    assert_eq!(governor.webhooks().redeliver(given_up.parse().unwrap()).unwrap().endpoints, 1);
    assert_eq!(receiver.next().event_id(), given_up);
    until(|| shown(&governor, id).parked == 0);
    assert_eq!(governor.webhooks().parked(id, 1).unwrap().total, 0);
    let newest = governor.webhooks().deliveries(id, 1).unwrap().items.remove(0);
    assert_eq!((newest.result, newest.attempt), (DeliveryResult::Delivered, None));
    governor.close().unwrap();
    assert_eq!(shown(&opened(folder.path()), id).parked, 0, "that it arrived is kept too");
}

#[test]
fn a_receiver_that_is_gone_is_left_alone_until_somebody_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::replying(|number, _| if number == 1 { Reply::Status(410) } else { OK });
    let governor = opened(folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let id = governor.webhooks().add(&draft).unwrap().id;
    for _ in 0..3 {
        decide(&governor, "a");
    }
    let first = receiver.take(2);
    until(|| shown(&governor, id).state == EndpointState::Off);
    assert_degraded(&governor, id, "410");
    let again = first[0].event_id().parse().unwrap();
    for refused in
        [governor.webhooks().redeliver(again).unwrap_err(), governor.webhooks().redeliver_to(again, id).unwrap_err()]
    {
        assert_eq!(refused.code(), "CONFLICT");
        assert!(refused.to_string().contains("resume"), "{refused}");
    }
    let (beside, other) = (Receiver::taking(), Receiver::taking());
    let added = governor.webhooks().add(&EndpointDraft::to(&beside.url)).unwrap().id;
    let of_others = governor.webhooks().add(&EndpointDraft::to(&other.url).of_type(EventType::Recorded)).unwrap().id;
    let redelivery = governor.webhooks().redeliver(again).unwrap();
    assert_eq!((redelivery.endpoints, redelivery.not_taken.len(), redelivery.not_taken[0].id), (1, 1, id));
    governor.webhooks().redeliver_to(again, added).unwrap();
    assert!(beside.take(2).iter().all(|request| request.event_id() == again.to_string()));
    assert_eq!(code(governor.webhooks().redeliver_to(again, of_others)), "INVALID_INPUT");
    assert!(other.rest().is_empty());
    for id in [added, of_others] {
        governor.webhooks().remove(id).unwrap();
    }
    governor.close().unwrap();
    let governor = opened(folder.path());
    let endpoint = shown(&governor, id);
    assert_eq!(endpoint.state, EndpointState::Off);
    assert!(endpoint.reason.unwrap().contains("410"));
    assert!(receiver.rest().is_empty());
    governor.webhooks().resume(id).unwrap();
    let rest = receiver.take(2);
    assert_eq!(rest[0].event_id(), first[1].event_id(), "from where it was left");
    assert_eq!(code(governor.webhooks().resume(id)), "CONFLICT");
}

#[test]
fn a_restart_goes_on_with_the_next_event_and_the_same_secret() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
    let mut secret = String::new();
    let mut seen = Vec::new();
    for run in 0..3 {
        let governor = opened(folder.path());
        if run == 0 {
            secret = governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap().secret;
        }
        assert_eq!(governor.webhooks().list().unwrap().len(), 1);
        for _ in 0..5 {
            decide(&governor, "a");
        }
        let requests = receiver.take(10);
        assert!(requests.iter().all(|request| request.verified(&secret).is_ok()));
        seen.extend(requests.iter().map(|request| request.event_id().parse::<EventId>().unwrap()));
        until(|| governor.webhooks().list().unwrap()[0].next_entry > seen.last().unwrap().sequence().get() - 1);
        until(|| governor.webhooks().deliveries(governor.webhooks().list().unwrap()[0].id, 1).unwrap().total == 10);
        governor.close().unwrap();
    }
    assert!(receiver.rest().is_empty(), "nothing is told twice after a clean end");
    let mut sorted = seen.clone();
    sorted.sort_by_key(|id| (id.sequence(), id.to_string()));
    sorted.dedup();
    assert_eq!(seen.len(), sorted.len());
    assert!(seen.is_sorted_by_key(EventId::sequence));
}

#[test]
fn secrets_stand_in_one_file_alone_that_only_its_owner_reads() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
    let governor = opened(folder.path());
    let added = governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    let rotated = governor.webhooks().rotate(added.id, Duration::from_secs(3600)).unwrap();
    assert!(!format!("{added:?}").contains(&added.secret));
    governor.close().unwrap();
    for file in files_below(folder.path()) {
        let content = fs::read(&file).unwrap();
        let holds = |secret: &str| {
            let encoded = secret.trim_start_matches("whsec_").as_bytes().to_vec();
            content.windows(encoded.len()).any(|window| window == encoded)
        };
        let is_theirs = file.file_name().unwrap() == "SECRETS";
        assert_eq!((holds(&added.secret), holds(&rotated)), (is_theirs, is_theirs), "{}", file.display());
        #[cfg(unix)]
        if is_theirs {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn without_its_secret_nothing_is_sent_until_there_is_another() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
    let governor = opened(folder.path());
    let added = governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    governor.close().unwrap();
    fs::remove_file(folder.path().join("SECRETS")).unwrap();

    let governor = opened(folder.path());
    decide(&governor, "a");
    governor.log().flush().unwrap();
    let endpoint = shown(&governor, added.id);
    assert_eq!(endpoint.state, EndpointState::Broken);
    assert!(endpoint.reason.unwrap().contains("readdress"));
    assert_eq!(code(governor.webhooks().resume(added.id)), "CONFLICT", "resuming brings no secret back");
    assert!(receiver.rest().is_empty());
    // Its URL is lost as well.
    assert_eq!(code(governor.webhooks().rotate(added.id, Duration::ZERO)), "CONFLICT");
    governor.webhooks().readdress(added.id, &receiver.url).unwrap();
    assert!(shown(&governor, added.id).reason.unwrap().contains("rotate"));
    let secret = governor.webhooks().rotate(added.id, Duration::ZERO).unwrap();
    for request in receiver.take(2) {
        assert!(request.verified(&secret).is_ok());
        assert!(request.verified(&added.secret).is_err());
    }
    assert_eq!(shown(&governor, added.id).state, EndpointState::Active);
}

#[test]
fn unreadable_secrets_stop_only_endpoints_and_are_kept() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
    let file = folder.path().join("SECRETS");
    let governor = opened(folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let added = governor.webhooks().add(&draft).unwrap();
    governor.close().unwrap();
    let good = fs::read(&file).unwrap();
    let cut = &good[..good.len() - 3];
    fs::write(&file, cut).unwrap();

    let governor = opened(folder.path());
    decide(&governor, "a");
    governor.log().flush().unwrap();
    let endpoint = shown(&governor, added.id);
    assert_eq!(endpoint.state, EndpointState::Broken);
    assert!(endpoint.reason.unwrap().contains("SECRETS cannot be read"));
    let webhooks = governor.webhooks();
    for refused in [
        error(webhooks.rotate(added.id, Duration::ZERO)),
        error(webhooks.remove(added.id)),
        error(webhooks.add(&draft)),
    ] {
        assert_eq!(refused.code(), "STORAGE_UNAVAILABLE");
        assert!(refused.to_string().contains("SECRETS"), "{refused}");
    }
    assert_eq!(code(webhooks.resume(added.id)), "CONFLICT");
    governor.close().unwrap();
    assert_eq!(fs::read(&file).unwrap(), cut, "it is as it was");
    assert!(receiver.rest().is_empty());

    // Restored while the store is open, it works again; while it is missing, new secrets are generated.
    let governor = opened(folder.path());
    fs::write(&file, &good).unwrap();
    governor.webhooks().resume(added.id).unwrap();
    assert!(receiver.next().verified(&added.secret).is_ok(), "what was decided meanwhile is told");
    governor.close().unwrap();
    fs::write(&file, b"").unwrap();
    let governor = opened(folder.path());
    assert_eq!(shown(&governor, added.id).state, EndpointState::Broken);
    fs::remove_file(&file).unwrap();
    governor.webhooks().readdress(added.id, &receiver.url).unwrap();
    let secret = governor.webhooks().rotate(added.id, Duration::ZERO).unwrap();
    decide(&governor, "a");
    assert!(receiver.next().verified(&secret).is_ok());
}

#[test]
fn both_secrets_sign_during_a_rotation_and_then_the_new_one() {
    let (receiver, clock) = (Receiver::taking(), Hand::at(NOON));
    let governor = Served::with(&builder().clock(clock.clone()).open_in_memory().unwrap(), soon(2));
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let draft =
        EndpointDraft::to(&receiver.url).of_type(EventType::Decision).secret("an old secret of at least 24 bytes");
    let added = governor.webhooks().add(&draft).unwrap();
    assert_eq!(added.secret, "whsec_YW4gb2xkIHNlY3JldCBvZiBhdCBsZWFzdCAyNCBieXRlcw==");
    let new = governor.webhooks().rotate(added.id, Duration::from_secs(60)).unwrap();
    let verified = |secret: &str| {
        decide(&governor, "a");
        let request = receiver.next();
        (request.verified(&new).is_ok(), request.verified(secret).is_ok())
    };
    assert_eq!(verified(&added.secret), (true, true));
    clock.set(NOON + 59_999);
    assert_eq!(verified(&added.secret), (true, true));
    clock.set(NOON + 60_000);
    assert_eq!(verified(&added.secret), (true, false));
    assert_eq!(shown(&governor, added.id).secrets.len(), 1, "what signs no more is not shown");
    clock.set(NOON + 59_999);
    assert_eq!(shown(&governor, added.id).secrets.len(), 1, "no clock brings it back");
    clock.set(NOON + 60_000);
    let newer = governor.webhooks().rotate(added.id, Duration::ZERO).unwrap();
    decide(&governor, "a");
    let request = receiver.next();
    assert!(request.verified(&newer).is_ok() && request.verified(&new).is_err());
    for _ in 0..7 {
        governor.webhooks().rotate(added.id, Duration::from_secs(60)).unwrap();
    }
    assert_eq!(code(governor.webhooks().rotate(added.id, Duration::from_secs(60))), "CONFLICT");
}

#[test]
fn a_hanging_receiver_delays_nobody_and_gets_its_event_again() {
    let folder = tempfile::tempdir().unwrap();
    let hanging = Receiver::replying(|number, _| if number == 0 { Reply::Never } else { OK });
    let other = Receiver::taking();
    let governor = opened(folder.path());
    for receiver in [&hanging, &other] {
        governor.webhooks().add(&EndpointDraft::to(&receiver.url).of_type(EventType::Decision)).unwrap();
    }
    for _ in 0..5 {
        decide(&governor, "a");
    }
    let cut_off = hanging.next().event_id();
    let ids: Vec<_> = other.take(5).iter().map(receiver::Request::event_id).collect();
    assert_eq!(cut_off, ids[0]);
    governor.close().unwrap();
    let governor = opened(folder.path());
    let again: Vec<_> = hanging.take(5).iter().map(receiver::Request::event_id).collect();
    assert_eq!(again, ids, "what was cut off has not failed");
    drop(governor);
}

#[test]
fn a_removed_endpoint_is_told_nothing_also_after_a_restart() {
    let (folder, gone, stays) = (tempfile::tempdir().unwrap(), Receiver::taking(), Receiver::taking());
    let governor = opened(folder.path());
    let id = governor.webhooks().add(&EndpointDraft::to(&gone.url)).unwrap().id;
    governor.webhooks().add(&EndpointDraft::to(&stays.url)).unwrap();
    governor.webhooks().remove(id).unwrap();
    assert_eq!(code(governor.webhooks().remove(id)), "NOT_FOUND");
    decide(&governor, "a");
    stays.take(2);
    governor.close().unwrap();
    let governor = opened(folder.path());
    assert_eq!(governor.webhooks().list().unwrap().len(), 1);
    decide(&governor, "a");
    stays.take(2);
    assert!(gone.rest().is_empty());
}

#[test]
fn addresses_outside_the_internet_are_refused_unless_allowed() {
    let governor = common::in_memory();
    for url in [
        "http://127.0.0.1:8080/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://localhost/",
        "http://example.com/",
        "nonsense",
    ] {
        let refused = error(governor.webhooks().add(&EndpointDraft::to(url)));
        assert!(matches!(refused, Error::InvalidInput { field: "url", .. }), "{url}: {refused}");
    }
    assert!(governor.webhooks().list().unwrap().is_empty());
    let refused = error(in_memory().webhooks().add(&EndpointDraft::to("https://169.254.169.254/latest/meta-data")));
    assert_eq!(refused.code(), "INVALID_INPUT", "not even then");
}

#[test]
fn a_stored_private_address_is_not_reached_without_permission() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
    let governor = opened(folder.path());
    let id = governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap().id;
    governor.close().unwrap();
    let governor = common::in_folder(folder.path());
    decide(&governor, "a");
    governor.log().flush().unwrap();
    assert_eq!(shown(&governor, id).state, EndpointState::Broken);
    assert!(receiver.rest().is_empty());
}

#[test]
fn undelivered_events_and_endpoints_states_survive_an_archive() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let (store, file) = (folder.path().join("store"), folder.path().join("old.rka"));
    let is_ill = Arc::new(AtomicBool::new(true));
    let ill = Arc::clone(&is_ill);
    let receiver = Receiver::replying(move |_, _| if ill.load(Ordering::SeqCst) { Reply::Status(503) } else { OK });
    let opened = || opened_with(builder().clock(clock.clone()).durability(Durability::Buffered), &store);
    let governor = opened();
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let added = governor.webhooks().add(&draft).unwrap();
    // The clock stands still, so the first event fails once and waits.
    let count = common::heavy(&governor, 400, 1).len();
    let first = receiver.next().event_id();
    until(|| shown(&governor, added.id).attempts == 1);
    governor.close().unwrap();

    clock.set(NOON + 40 * 86_400_000);
    let governor = opened();
    common::wait_until_sealed(&governor);
    let before = Timestamp::from_millis(NOON + 86_400_000);
    assert!(governor.log().archive(before, &file).unwrap().is_none(), "nothing of it was told");
    until(|| shown(&governor, added.id).attempts == 2);
    is_ill.store(false, Ordering::SeqCst);
    clock.set(NOON + 40 * 86_400_000 + 1000);
    // One failed attempt, and one for every delivered event.
    until(|| governor.webhooks().deliveries(added.id, 1).unwrap().total == 1 + count as u64);
    let told: BTreeSet<_> = receiver.rest().iter().map(receiver::Request::event_id).collect();
    assert!(told.len() == count && told.contains(&first), "all of them, the first one too");
    governor.close().unwrap();

    let governor = opened();
    let endpoint = shown(&governor, added.id);
    let archive = governor.log().archive(before, &file).unwrap().expect("all of it was told");
    assert!(archive.records > 100, "what says that there is an endpoint has left: {archive:?}");
    governor.close().unwrap();
    let governor = opened();
    let after = shown(&governor, added.id);
    assert!(after.state == EndpointState::Active && after.next_entry >= endpoint.next_entry);
    assert_eq!((after.url, after.events, after.secrets), (endpoint.url, endpoint.events, endpoint.secrets));
    decide(&governor, "a");
    let request = receiver.next();
    assert!(request.verified(&added.secret).is_ok() && !told.contains(&request.event_id()));
}

#[test]
fn child_that_delivers_beside_a_proxy() {
    let Some(folder) = child_folder() else { return };
    let governor = in_memory();
    let url = fs::read_to_string(folder.join("url")).unwrap();
    governor.webhooks().add(&EndpointDraft::to(&url).of_type(EventType::Decision)).unwrap();
    decide(&governor, "a");
    say("decided");
    // Until the parent kills this process.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_proxy_that_stands_in_the_environment_is_told_nothing() {
    let (folder, receiver, proxy) = (tempfile::tempdir().unwrap(), Receiver::taking(), Receiver::taking());
    fs::write(folder.path().join("url"), &receiver.url).unwrap();
    let names = ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"].map(|name| [name.to_owned(), name.to_lowercase()]);
    let at = proxy.url.trim_end_matches("/hook");
    let of = |name: &String| (name.clone(), at.to_owned());
    let no_exceptions = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
    let environment: Vec<_> = names.as_flattened().iter().map(of).chain(no_exceptions).collect();
    let mut child =
        ChildProcess::start_with("deliveries::child_that_delivers_beside_a_proxy", folder.path(), environment);
    assert_eq!(child.heard().as_deref(), Some("decided"));
    receiver.next();
    assert!(proxy.rest().is_empty());
}

#[test]
fn there_are_no_more_than_32_endpoints() {
    let (governor, receiver) = (in_memory(), Receiver::taking());
    for _ in 0..32 {
        governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    }
    assert_eq!(code(governor.webhooks().add(&EndpointDraft::to(&receiver.url))), "CONFLICT");
}

#[test]
fn many_that_decide_while_endpoints_come_and_go_lose_nothing() {
    let (governor, stays) = (in_memory(), Receiver::taking());
    let mut log = governor.subscribe(&EventFilter::all().of_type(EventType::Recorded)).unwrap();
    governor.webhooks().add(&EndpointDraft::to(&stays.url).of_type(EventType::Recorded)).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                (0..50).for_each(|_| {
                    decide(&governor, "a");
                });
            });
        }
        scope.spawn(|| {
            let passing = Receiver::taking();
            for _ in 0..10 {
                let id = governor.webhooks().add(&EndpointDraft::to(&passing.url)).unwrap().id;
                governor.webhooks().rotate(id, Duration::ZERO).unwrap();
                governor.webhooks().remove(id).unwrap();
            }
        });
    });
    let expected = ids(&told(&mut log, 200));
    assert_eq!(stays.take(200).iter().map(receiver::Request::event_id).collect::<Vec<_>>(), expected);
}

#[test]
fn the_first_attempt_is_immediate_whatever_the_waits() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let hour = Settings { schedule: Some(vec![Duration::from_secs(3600)]), allow_private: true, public_url: None };
    let (governor, receiver) = (Served::with(&governor, hour), Receiver::taking());
    governor.webhooks().add(&EndpointDraft::to(&receiver.url).of_type(EventType::Decision)).unwrap();
    decide(&governor, "a");
    receiver.next();
}

#[test]
fn over_lines_of_json_all_of_it_is_there() {
    let (governor, receiver) = (in_memory(), Receiver::taking());
    let added = result(
        &governor,
        "webhook/add",
        &json!({ "url": receiver.url, "events": ["governance.decision"], "agentId": "a" }),
    );
    let (id, secret) = (&added["id"], added["secret"].as_str().unwrap());
    assert!(id.as_str().unwrap().starts_with("whk_"));
    decide(&governor, "a");
    let request = receiver.next();
    assert!(request.verified(secret).is_ok());
    until(|| result(&governor, "webhook/deliveries", &json!({ "id": id }))["total"] == 1);
    let page = result(&governor, "webhook/deliveries", &json!({ "id": id, "page": 1 }));
    assert_eq!(page["items"][0]["eventId"], request.event_id());
    assert_eq!((&page["items"][0]["result"], &page["items"][0]["status"]), (&json!("delivered"), &json!(200)));
    let list = result(&governor, "webhook/list", &json!({}));
    let endpoint = &list["endpoints"][0];
    assert_eq!((&endpoint["id"], &endpoint["state"]), (id, &json!("active")));
    assert_eq!(endpoint["schedule"], json!([0.001, 0.001]));
    assert!(!list.to_string().contains(secret));
    let again = result(&governor, "webhook/redeliver", &json!({ "eventId": request.event_id() }));
    assert_eq!(again, json!({ "eventId": request.event_id(), "endpoints": 1 }));
    assert_eq!(receiver.next().event_id(), request.event_id());
    let alone = json!({ "eventId": request.event_id(), "id": id });
    assert_eq!(result(&governor, "webhook/redeliver", &alone), again);
    assert_eq!(receiver.next().event_id(), request.event_id());
    let parked = json!({ "id": id, "state": "parked" });
    assert_eq!(result(&governor, "webhook/deliveries", &parked)["total"], 0);
    let rotated = result(&governor, "webhook/rotate", &json!({ "id": id, "overlapSeconds": 0 }));
    decide(&governor, "a");
    assert!(receiver.next().verified(rotated["secret"].as_str().unwrap()).is_ok());
    assert_eq!(refusal(&governor, "webhook/resume", &json!({ "id": id }))["code"], "CONFLICT");
    assert_eq!(result(&governor, "webhook/remove", &json!({ "id": id }))["id"], *id);
    for (method, params) in [
        ("webhook/remove", json!({ "id": id })),
        ("webhook/deliveries", json!({ "id": id })),
        ("webhook/redeliver", json!({ "eventId": request.event_id(), "id": id })),
        ("webhook/redeliver", json!({ "eventId": "evt_01kf7xqzzz0000000000000000" })),
    ] {
        let data = refusal(&governor, method, &params);
        assert_eq!((&data["code"], &data["httpStatus"]), (&json!("NOT_FOUND"), &json!(404)), "{method} {params}");
    }
    for (method, params) in [
        ("webhook/add", json!({})),
        ("webhook/add", json!({ "url": "https://a.example/", "events": ["nothing.such"] })),
        ("webhook/add", json!({ "url": "https://a.example/", "secret": "short" })),
        ("webhook/deliveries", json!({ "id": "whk_" })),
        ("webhook/deliveries", json!({ "id": id, "page": 0 })),
        ("webhook/deliveries", json!({ "id": id, "state": "sent" })),
    ] {
        assert_eq!(refusal(&governor, method, &params)["code"], "INVALID_INPUT", "{method} {params}");
    }
}

#[test]
fn a_mask_on_what_is_kept_is_a_mask_on_what_is_sent() {
    let (governor, receiver) = (in_memory(), Receiver::taking());
    governor.webhooks().add(&EndpointDraft::to(&receiver.url)).unwrap();
    let key = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    governor.enforce(&intent("a", &["document:read"]).with_context("apiKey", key)).unwrap();
    for request in receiver.take(2) {
        assert!(!String::from_utf8_lossy(&request.body).contains(key));
    }
}
