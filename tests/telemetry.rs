//! What a subscriber of `tracing` and a recorder of `metrics` are told.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::{builder, intent, reading};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use rulekeep::escalation::Review;
use rulekeep::intent::Input;
use rulekeep::{Agent, Outcome, Tier};
use serde_json::Map;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

/// Keeps every span and event with its fields, by number.
#[derive(Clone, Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Debug, Clone)]
struct Seen {
    name: &'static str,
    fields: BTreeMap<String, String>,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Watcher {
    fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn last(&self, name: &str) -> BTreeMap<String, String> {
        let seen = self.all().into_iter().rfind(|seen| seen.name == name);
        seen.unwrap_or_else(|| panic!("{name} was not told: {:?}", self.all())).fields
    }
}

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("rulekeep")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = BTreeMap::new();
        span.record(&mut Fields(&mut fields));
        let mut seen = self.seen.lock().unwrap();
        seen.push(Seen { name: span.metadata().name(), fields });
        Id::from_u64(seen.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let place = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Fields(&mut self.seen.lock().unwrap()[place].fields));
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.seen.lock().unwrap().push(Seen { name: event.metadata().name(), fields });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Keeps the last value of each metric.
#[derive(Default)]
struct Tally {
    numbers: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    times: Arc<Times>,
}

#[derive(Default)]
struct Times(Mutex<Vec<f64>>);

impl metrics::HistogramFn for Times {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl Tally {
    fn number(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.numbers.lock().unwrap().entry(name).or_default())
    }

    fn of(&self, name: &str) -> u64 {
        self.numbers.lock().unwrap().get(name).map_or(0, |number| number.load(Ordering::SeqCst))
    }
}

/// A recorder for all threads of this process: the writer's too.
#[derive(Clone, Default)]
struct Shared(Arc<Tally>);

impl Recorder for Shared {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.0.number(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.0.number(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(&self.0.times))
    }
}

/// Both are told of the whole process: one test at a time, its governor closed before the next.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const SECRET: &str = "hunter2-and-more";

#[test]
fn each_call_is_a_span_that_says_who_what_and_how_it_ended() {
    let _turn = turn();
    let watcher = Watcher::default();
    tracing::subscriber::with_default(watcher.clone(), || {
        let governor = builder().open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();

        let allowed = governor.enforce(&reading("a").with_context("password", SECRET)).unwrap();
        let told = watcher.last("rulekeep.enforce");
        assert_eq!(told["gen_ai.agent.id"], "a");
        assert_eq!(told["gen_ai.operation.name"], "enforce");
        assert_eq!(told["gen_ai.tool.name"], "example_action");
        assert_eq!(told["rulekeep.decision"], "ALLOW");
        assert_eq!(told["rulekeep.proof.id"], allowed.proof_id.to_string());
        assert!(!told.contains_key("error.type"));

        governor.report(&allowed.proof_id, Outcome::Success.note(SECRET)).unwrap();
        let told = watcher.last("rulekeep.report");
        assert_eq!(
            (&*told["rulekeep.outcome"], &*told["rulekeep.proof.id"]),
            ("SUCCESS", &*allowed.proof_id.to_string())
        );
        governor.report(&allowed.proof_id, Outcome::Failure).unwrap_err();
        assert_eq!(watcher.last("rulekeep.report")["error.type"], "CONFLICT");

        let context = Map::from_iter([("note".to_owned(), SECRET.into())]);
        governor.enforce_input("a", Input::new(&format!("Read the file {SECRET}")).context(&context)).unwrap();
        let told = watcher.last("rulekeep.parse");
        assert_eq!((&*told["gen_ai.agent.id"], &*told["gen_ai.operation.name"]), ("a", "parse"));
        assert!(told.contains_key("rulekeep.risk"));

        governor.enforce(&intent("a", &["email:send"]).with_context("body", SECRET)).unwrap();
        let told = watcher.last("rulekeep.escalate");
        let asked = governor.escalations().pending().unwrap().remove(0);
        assert_eq!(told["rulekeep.escalation.id"], asked.id.to_string());
        governor.escalations().approve(asked.id, Review::by("mail-lead").note(SECRET)).unwrap();
        let told = watcher.last("rulekeep.approve");
        assert_eq!(told["rulekeep.escalation.id"], asked.id.to_string());
        assert_eq!(told["rulekeep.escalation.state"], "approved");
        governor.escalations().reject(asked.id, Review::by("mail-lead")).unwrap_err();
        assert_eq!(watcher.last("rulekeep.reject")["error.type"], "CONFLICT");

        governor.enforce(&reading("nobody")).unwrap_err();
        assert_eq!(watcher.last("rulekeep.enforce")["error.type"], "AGENT_NOT_FOUND");
        governor.close().unwrap();
    });
    let all = format!("{:?}", watcher.all());
    assert!(!all.contains(SECRET), "{all}");
}

#[test]
fn counters_and_times_are_those_of_the_log() {
    let _turn = turn();
    let shared = Shared::default();
    // The writer's thread tells it too.
    metrics::set_global_recorder(shared.clone()).unwrap();
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("m").at_tier(Tier::T4)).unwrap();
    for _ in 0..3 {
        governor.enforce(&reading("m")).unwrap();
    }
    governor.enforce(&intent("m", &["email:send"])).unwrap();
    governor.log().flush().unwrap();
    let tally = &shared.0;
    let gauge = |name: &str| f64::from_bits(tally.of(name));
    assert!((gauge("rulekeep.escalations.pending{}") - 1.0).abs() < f64::EPSILON);
    let asked = governor.escalations().pending().unwrap().remove(0);
    governor.escalations().approve(asked.id, Review::by("mail-lead")).unwrap();
    assert!(gauge("rulekeep.escalations.pending{}").abs() < f64::EPSILON);
    // Behind it the writer has said all.
    governor.close().unwrap();

    assert_eq!(tally.of("rulekeep.proof.records{}"), 5, "an answer is a record too");
    assert_eq!(decisions(tally), 5);
    assert_eq!(tally.of("rulekeep.decisions{decision=ALLOW,risk=LOW}"), 4);
    let times = tally.times.0.lock().unwrap();
    assert_eq!(times.len(), 4);
    assert!(times.iter().all(|seconds| *seconds > 0.0));
}

/// The decisions of all kinds.
fn decisions(tally: &Tally) -> u64 {
    let numbers = tally.numbers.lock().unwrap();
    numbers
        .iter()
        .filter(|(name, _)| name.starts_with("rulekeep.decisions{"))
        .map(|(_, number)| number.load(Ordering::SeqCst))
        .sum()
}
