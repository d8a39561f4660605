//! Endpoints while other things fail: a crash while one is added, a removal that cannot be recorded, concurrent
//! resumes.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::receiver::{self, OK, Receiver, Reply};
use crate::common::{self, Hand, NOON, builder, code, decide};
use rulekeep::Durability;
use rulekeep::event::{EventFilter, EventType};
use rulekeep::system::{Clock, Timestamp};
use rulekeep_server::webhooks::{EndpointDraft, EndpointState};

use super::{opened, opened_with};

const DAY: i64 = 86_400_000;

#[test]
fn a_crash_while_adding_an_endpoint_leaves_archives_possible() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let (store, cut) = (folder.path().join("store"), folder.path().join("cut"));
    let opened = |folder: &Path| opened_with(builder().clock(clock.clone()).durability(Durability::Buffered), folder);
    opened(&store).close().unwrap();
    let head = fs::read(store.join("HEAD")).unwrap();
    let governor = opened(&store);
    governor.webhooks().add(&EndpointDraft::to("https://hooks.example.com/")).unwrap();
    governor.log().flush().unwrap();
    common::copy_folder(&store, &cut);
    drop(governor);

    // The disk contains its position, but not the endpoint.
    fs::write(cut.join("HEAD"), head).unwrap();
    let journal = common::journal(&cut);
    let mut bytes = fs::read(&journal).unwrap();
    let holds = |text: &str, frame: &[u8]| frame.windows(text.len()).any(|window| window == text.as_bytes());
    let frames = common::frames(&bytes);
    let record = frames.iter().find(|frame| holds("\"webhook/whk_", &bytes[(*frame).clone()])).unwrap().start;
    assert!(frames.iter().any(|frame| frame.start < record && holds("\"webhook-cursor/", &bytes[frame.clone()])));
    bytes.truncate(record);
    fs::write(&journal, bytes).unwrap();

    let governor = opened(&cut);
    assert!(governor.webhooks().list().unwrap().is_empty() && governor.verify().unwrap().valid);
    common::heavy(&governor, 400, 1);
    clock.set(NOON + 40 * DAY);
    common::wait_until_sealed(&governor);
    let archived = governor.log().archive(Timestamp::from_millis(NOON + DAY), folder.path().join("old.rka")).unwrap();
    assert!(archived.expect("nobody waits for what is old").records > 100);
    governor.close().unwrap();
    assert!(opened(&cut).verify().unwrap().valid);
}

#[test]
fn of_many_claims_to_an_endpoint_one_wins_and_sends_once() {
    for round in 0..5 {
        let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::taking());
        let file = folder.path().join("SECRETS");
        let governor = opened(folder.path());
        let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
        let id = governor.webhooks().add(&draft).unwrap().id;
        governor.close().unwrap();
        let secrets = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();

        let governor = opened(folder.path());
        let mut log = governor.subscribe(&EventFilter::all().of_type(EventType::Decision)).unwrap();
        for _ in 0..20 {
            decide(&governor, "a");
        }
        assert_eq!(governor.webhooks().list().unwrap()[0].state, EndpointState::Broken);
        fs::write(&file, secrets).unwrap();
        let (start, other) = (Barrier::new(10), Receiver::taking());
        let resumed = thread::scope(|scope| {
            let resume = || {
                start.wait();
                governor.webhooks().resume(id)
            };
            let resuming: Vec<_> = (0..8).map(|_| scope.spawn(resume)).collect();
            scope.spawn(|| {
                start.wait();
                // It finds the endpoint's old secret, or a working one.
                let _ = governor.webhooks().rotate(id, Duration::from_secs(60));
            });
            scope.spawn(|| {
                start.wait();
                governor.webhooks().add(&EndpointDraft::to(&other.url)).unwrap();
            });
            let results: Vec<_> = resuming.into_iter().map(|thread| thread.join().unwrap()).collect();
            let refused = results.iter().filter_map(|result| result.as_ref().err());
            assert!(refused.clone().all(|error| error.code() == "CONFLICT"), "{results:?}");
            results.len() - refused.count()
        });
        assert!(resumed <= 1, "round {round}: {resumed} took it up");
        let expected: Vec<_> = (0..20).map(|_| log.wait().unwrap().unwrap().id.to_string()).collect();
        let sent: Vec<_> = receiver.take(20).iter().map(receiver::Request::event_id).collect();
        assert_eq!(sent, expected, "round {round}");
        // A superfluous delivery would arrive before this one.
        decide(&governor, "a");
        assert_eq!(receiver.next().event_id(), log.wait().unwrap().unwrap().id.to_string(), "round {round}");
        governor.close().unwrap();
        assert!(receiver.rest().is_empty(), "round {round}");
    }
}

#[test]
fn an_endpoint_whose_removal_is_not_recorded_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::replying(|number, _| if number == 0 { Reply::Never } else { OK });
    let governor = opened(folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let added = governor.webhooks().add(&draft).unwrap();
    decide(&governor, "a");
    let hangs = receiver.next().event_id();
    governor.log().freeze("the contract ended").unwrap();
    assert_eq!(code(governor.webhooks().remove(added.id)), "CONFLICT");
    assert_eq!(governor.webhooks().list().unwrap()[0].state, EndpointState::Active);
    let again = receiver.next();
    assert_eq!(again.event_id(), hangs, "it says that it is told, and it is");
    assert!(again.verified(&added.secret).is_ok());
}

#[test]
fn an_endpoint_whose_move_is_not_recorded_keeps_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::replying(|number, _| if number == 0 { Reply::Never } else { OK });
    let other = Receiver::taking();
    let governor = opened(folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let added = governor.webhooks().add(&draft).unwrap();
    decide(&governor, "a");
    let hangs = receiver.next().event_id();
    let secrets = || fs::read(folder.path().join("SECRETS")).unwrap();
    let before = secrets();
    governor.log().freeze("the contract ended").unwrap();
    assert_eq!(code(governor.webhooks().readdress(added.id, &other.url)), "CONFLICT");
    assert!(secrets() == before, "beside the journal stands the address that it means");
    assert_eq!(governor.webhooks().list().unwrap()[0].state, EndpointState::Active);
    assert_eq!(receiver.next().event_id(), hangs);
    assert!(other.rest().is_empty());
}

/// A clock at which delivering threads can be held and counted.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    is_shut: bool,
    waiting: usize,
    looks: usize,
}

impl Gate {
    fn shut(&self, is_shut: bool) {
        self.0.0.lock().unwrap().is_shut = is_shut;
        self.0.1.notify_all();
    }

    fn wait(&self, is_so: impl Fn(&Held) -> bool) {
        let held = self.0.0.lock().unwrap();
        let (_held, waited) = self.0.1.wait_timeout_while(held, Duration::from_secs(60), |held| !is_so(held)).unwrap();
        assert!(!waited.timed_out(), "it never comes to it");
    }
}

impl Clock for Gate {
    fn now(&self) -> Timestamp {
        if thread::current().name() == Some("rulekeep-webhook") {
            let mut held = self.0.0.lock().unwrap();
            held.looks += 1;
            held.waiting += 1;
            self.0.1.notify_all();
            held = self.0.1.wait_while(held, |held| held.is_shut).unwrap();
            held.waiting -= 1;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    }
}

#[test]
fn an_endpoint_is_moved_only_once_its_thread_has_ended() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    // Closed before the response arrives, so that the delivering thread is held right after it.
    let shutting = gate.clone();
    let receiver = Receiver::replying(move |_, _| {
        shutting.shut(true);
        Reply::Status(200)
    });
    let other = Receiver::taking();
    let governor = opened_with(builder().clock(gate.clone()), folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    let id = governor.webhooks().add(&draft).unwrap().id;
    decide(&governor, "a");
    receiver.next();
    gate.wait(|held| held.waiting > 0);
    assert_eq!(code(governor.webhooks().readdress(id, &other.url)), "CONFLICT");
    let shown = governor.webhooks().list().unwrap().remove(0);
    assert_eq!((shown.state, shown.reason.unwrap().contains("resume")), (EndpointState::Broken, true));
    assert!(shown.url.starts_with(receiver.url.trim_end_matches("hook")));
    gate.shut(false);

    governor.webhooks().readdress(id, &other.url).unwrap();
    let decided: Vec<_> = (0..5).map(|_| decide(&governor, "a")).collect();
    for (proof_id, request) in decided.iter().zip(other.take(5)) {
        assert_eq!(request.event()["data"]["proofId"], proof_id.to_string());
    }
    governor.close().unwrap();
    assert!(receiver.rest().is_empty() && other.rest().is_empty());
}

#[test]
fn an_endpoint_that_is_off_tries_again_to_have_that_noted() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let receiver = Receiver::replying(|_, _| Reply::Status(410));
    let governor = opened_with(builder().clock(gate.clone()), folder.path());
    let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
    governor.webhooks().add(&draft).unwrap();
    decide(&governor, "a");
    governor.log().flush().unwrap();
    // Nothing can be recorded from here on.
    governor.log().freeze("the contract ended").unwrap();
    receiver.next();
    while governor.webhooks().list().unwrap()[0].state != EndpointState::Off {
        thread::yield_now();
    }
    let looks = gate.0.0.lock().unwrap().looks;
    gate.wait(|held| held.looks >= looks + 10);
}

#[test]
fn secret_parts_of_an_address_stay_outside_journal_and_answers() {
    let (folder, receiver, other) = (tempfile::tempdir().unwrap(), Receiver::taking(), Receiver::taking());
    let governor = opened(folder.path());
    let tokens = ["t0ken-in-the-path", "t0ken-in-the-query", "t0ken-of-later"];
    let at = |url: &str, token: &str| format!("{}/{token}", url.trim_end_matches("/hook"));
    let draft = EndpointDraft::to(format!("{}?key={}", at(&receiver.url, tokens[0]), tokens[1]));
    let draft = draft.of_type(EventType::Decision);
    assert!(!format!("{draft:?}").contains("t0ken"));
    let added = governor.webhooks().add(&draft).unwrap();
    decide(&governor, "a");
    let first = receiver.next();
    assert!(first.verified(&added.secret).is_ok(), "it is sent there all the same");
    // An interrupted delivery is sent again.
    while governor.webhooks().deliveries(added.id, 1).unwrap().total == 0 {
        thread::yield_now();
    }

    // To another URL with the next event; in order, and with the same secret.
    governor.webhooks().readdress(added.id, &at(&other.url, tokens[2])).unwrap();
    assert_eq!(code(governor.webhooks().readdress(added.id, "https://localhost.example:99999/")), "INVALID_INPUT");
    decide(&governor, "a");
    let second = other.next();
    assert!(second.verified(&added.secret).is_ok() && second.event_id() != first.event_id());
    let shown = governor.webhooks().list().unwrap().remove(0);
    assert_eq!(shown.url, at(&other.url, "…"));
    assert!(!serde_json::to_string(&shown).unwrap().contains("t0ken"));
    governor.close().unwrap();
    for file in common::files_below(folder.path()) {
        let content = fs::read(&file).unwrap();
        let holds = content.windows(5).any(|window| window == b"t0ken");
        assert_eq!(holds, file.file_name().unwrap() == "SECRETS", "{}", file.display());
    }
    let governor = opened(folder.path());
    decide(&governor, "a");
    assert!(other.next().verified(&added.secret).is_ok() && receiver.rest().is_empty());
}
