//! Tests of the outbox with a manual clock, which runs the whole schedule in no time.

use proptest::prelude::*;

use super::*;
use rulekeep::proof::Sequence;

const NOON: i64 = 1_800_000_000_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOON + millis)
}

fn told(sequence: u64) -> Told {
    let event = EventId::new(at(0), [1, 2, 3], 0, Sequence::new(sequence));
    Told { event, event_type: EventType::Decision, place: (sequence, 0), body: Vec::new() }
}

fn start() -> Cursor {
    Cursor { next: 0, ordinal: 0, attempts: 0, retry_at: None, failing: false, off: None }
}

fn outbox() -> Outbox {
    Outbox::new(Schedule::default(), start(), Vec::new())
}

fn failed() -> Answer {
    Answer::Failed { status: Some(500), error: "500".to_owned(), retry_after: None }
}

const OK: Answer = Answer::Delivered(200);

/// Fails until the event is parked. Returns the waits in milliseconds.
fn fail_until_parked(outbox: &mut Outbox, now: &mut i64) -> Vec<i64> {
    let mut waits = Vec::new();
    loop {
        match outbox.step(at(*now)) {
            Step::Send(_) => {}
            Step::Until(next) => {
                waits.push(next.as_millis() - NOON - *now);
                *now = next.as_millis() - NOON;
                continue;
            }
            other => panic!("{other:?}"),
        }
        if outbox.done(&failed(), at(*now), u16::MAX / 2 + 1).unwrap().end == End::Parked {
            return waits;
        }
    }
}

#[test]
fn an_event_is_given_up_after_ten_attempts_and_the_next_goes_on() {
    let (mut outbox, mut now) = (outbox(), 0);
    outbox.offer(told(7));
    let waits = fail_until_parked(&mut outbox, &mut now);
    assert_eq!(waits.len(), 9);
    assert_eq!(now / 10_000, 27_210, "75.6 hours");
    assert_eq!(outbox.parked().len(), 1);
    assert_eq!(outbox.parked()[0].attempts, 10);
    assert!(outbox.cursor().failing);
    assert_eq!(outbox.step(at(now)), Step::Idle);

    // While the endpoint is failing: at once, and then only by the last wait.
    outbox.offer(told(8));
    let waits = fail_until_parked(&mut outbox, &mut now);
    assert_eq!(waits.iter().map(|wait| wait / 1000).collect::<Vec<_>>(), [86_400]);
    outbox.offer(told(9));
    assert!(matches!(outbox.step(at(now)), Step::Send(told) if told.place == (9, 0)));
    assert_eq!(outbox.done(&OK, at(now), 0).unwrap().end, End::Delivered);
    assert!(!outbox.cursor().failing);
    outbox.offer(told(10));
    assert_eq!(fail_until_parked(&mut outbox, &mut now).len(), 9, "a success ends it");
}

#[test]
fn a_lost_receiver_is_disabled_and_its_event_waits_for_resume() {
    let mut outbox = outbox();
    outbox.offer(told(1));
    assert!(matches!(outbox.step(at(0)), Step::Send(_)));
    assert_eq!(outbox.done(&Answer::Gone, at(0), 0).unwrap().end, End::Off);
    assert_eq!(outbox.step(at(0)), Step::Off);
    let note = outbox.note(at(0)).expect("that it is off is noted at once");
    let mut outbox = Outbox::new(Schedule::default(), note.cursor, Vec::new());
    assert_eq!(outbox.step(at(0)), Step::Off);
    assert_eq!(outbox.redeliver(told(1)), Err(Refusal::Off));
    assert!(outbox.resume());
    assert!(!outbox.resume());
    outbox.offer(told(1));
    assert!(matches!(outbox.step(at(0)), Step::Send(told) if told.place == (1, 0)));
}

#[test]
fn a_thousand_that_were_given_up_switch_off() {
    let mut outbox = outbox();
    let mut now = 0;
    for sequence in 0..1000 {
        outbox.offer(told(sequence));
        loop {
            match outbox.step(at(now)) {
                Step::Until(next) => now = next.as_millis() - NOON,
                Step::Send(_) => {
                    if !matches!(outbox.done(&failed(), at(now), 0).unwrap().end, End::RetryAt(_)) {
                        break;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(outbox.parked().len(), 1000);
    assert_eq!(outbox.step(at(now)), Step::Off);
    // An endpoint that is off accepts no redelivery.
    assert!(outbox.cursor().off.as_ref().unwrap().ends_with("resume the endpoint, then redeliver"));
}

#[test]
fn a_manual_send_goes_out_once_ahead_of_all_and_unparks() {
    let (mut outbox, mut now) = (outbox(), 0);
    outbox.offer(told(1));
    fail_until_parked(&mut outbox, &mut now);
    outbox.offer(told(2));
    assert!(outbox.redeliver(told(1)).is_ok() && outbox.redeliver(told(1)).is_ok());
    let cursor = outbox.cursor().clone();
    assert!(matches!(outbox.step(at(now)), Step::Send(told) if told.place == (1, 0)));
    let done = outbox.done(&failed(), at(now), 0).unwrap();
    assert_eq!((done.attempt, done.end), (0, End::Dropped));
    assert_eq!(outbox.parked().len(), 1);
    assert!(matches!(outbox.step(at(now)), Step::Send(told) if told.place == (1, 0)));
    assert_eq!(outbox.done(&OK, at(now), 0).unwrap().end, End::Delivered);
    assert!(outbox.parked().is_empty());
    assert_eq!(*outbox.cursor(), Cursor { failing: false, ..cursor }, "the order of all others is as it was");
    assert!((0..100).all(|_| outbox.redeliver(told(1)).is_ok()));
    assert_eq!(outbox.redeliver(told(1)), Err(Refusal::Full), "no more than a hundred wait");
}

#[test]
fn failing_ends_when_all_given_up_events_arrived_by_hand() {
    let (mut outbox, mut now) = (outbox(), 0);
    for sequence in [1, 2] {
        outbox.offer(told(sequence));
        fail_until_parked(&mut outbox, &mut now);
    }
    outbox.offer(told(3));
    assert!(matches!(outbox.step(at(now)), Step::Send(_)));
    assert!(matches!(outbox.done(&failed(), at(now), 0).unwrap().end, End::RetryAt(_)));
    for (sequence, fails_still) in [(1, true), (2, false)] {
        assert!(matches!(outbox.step(at(now)), Step::Until(_)));
        outbox.redeliver(told(sequence)).unwrap();
        assert!(matches!(outbox.step(at(now)), Step::Send(_)));
        assert_eq!(outbox.done(&OK, at(now), 0).unwrap().end, End::Delivered);
        assert_eq!(outbox.cursor().failing, fails_still);
    }
    assert!(!outbox.note(at(now)).expect("that is noted at once").cursor.failing);
    assert!(matches!(outbox.step(at(now)), Step::Send(told) if told.place == (3, 0)));
}

#[test]
fn deliveries_are_noted_by_the_batch_and_failures_at_once() {
    let mut outbox = outbox();
    for sequence in 0..256 {
        outbox.offer(told(sequence));
        assert!(matches!(outbox.step(at(0)), Step::Send(_)));
        outbox.done(&OK, at(0), 0);
        assert_eq!(outbox.note(at(0)).is_some(), sequence == 255, "{sequence}");
    }
    outbox.offer(told(256));
    outbox.step(at(0));
    outbox.done(&OK, at(0), 0);
    assert!(outbox.note(at(249)).is_none());
    assert!(outbox.note(at(250)).is_some());
    outbox.offer(told(257));
    outbox.step(at(300));
    outbox.done(&failed(), at(300), 0);
    let note = outbox.note(at(300)).unwrap();
    assert_eq!((note.cursor.next, note.cursor.attempts), (257, 1));
    assert_eq!(note.cursor.retry_at, outbox.cursor().retry_at);
    assert!(outbox.last_note().is_none());
    // Progress that could not be stored is reported again.
    outbox.not_noted(&note, at(300));
    assert!(outbox.note(at(550)).is_some());
}

#[test]
fn silent_entries_are_noted_rarely_so_that_notes_do_not_grow() {
    let mut outbox = outbox();
    let mut notes = 0;
    for next in 1..100_000 {
        outbox.passed(next);
        notes += u32::from(outbox.note(at(i64::try_from(next).unwrap())).is_some());
    }
    assert_eq!(notes, 6);
}

#[test]
fn a_clock_that_was_set_back_by_years_does_not_hold_an_event_up() {
    let mut outbox = outbox();
    outbox.offer(told(1));
    outbox.step(at(0));
    outbox.done(&failed(), at(0), 0);
    assert!(matches!(outbox.step(at(0)), Step::Until(_)));
    assert!(matches!(outbox.step(at(-100_000_000_000)), Step::Send(_)));
}

#[derive(Debug, Clone)]
enum Happening {
    Answer(Answer),
    Crash,
    Passes(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let asked = prop_oneof![Just(None), (0_u64..200_000).prop_map(|seconds| Some(Duration::from_secs(seconds)))];
    prop_oneof![
        4 => Just(Happening::Answer(OK)),
        6 => asked.prop_map(|retry_after| Happening::Answer(Answer::Failed { status: None, error: "no".to_owned(), retry_after })),
        1 => Just(Happening::Answer(Answer::Gone)),
        1 => Just(Happening::Crash),
        2 => (0_i64..600).prop_map(Happening::Passes),
    ]
}

/// The journal and the receiver beside an outbox.
struct World {
    outbox: Outbox,
    now: i64,
    kept: (Cursor, Vec<Parked>),
    arrived: Vec<u64>,
    /// The time at which the current event failed last, and the minimum and maximum wait.
    failed: Option<(u64, i64, i64, i64)>,
}

impl World {
    fn new() -> Self {
        Self { outbox: outbox(), now: 0, kept: (start(), Vec::new()), arrived: Vec::new(), failed: None }
    }

    fn keep(&mut self) {
        if let Some(Note { cursor, parked }) = self.outbox.note(at(self.now)) {
            self.kept.0 = cursor;
            self.kept.1 = parked.unwrap_or_else(|| self.kept.1.clone());
        }
    }

    fn happens(&mut self, happening: &Happening, chance: u16) {
        let answer = match happening {
            Happening::Crash => {
                self.outbox = Outbox::new(Schedule::default(), self.kept.0.clone(), self.kept.1.clone());
                return;
            }
            Happening::Passes(millis) => {
                self.now += millis;
                return self.keep();
            }
            Happening::Answer(answer) => answer,
        };
        loop {
            match self.outbox.step(at(self.now)) {
                Step::Idle => {
                    let Cursor { next, ordinal, .. } = *self.outbox.cursor();
                    self.outbox.offer(told(next + u64::from(ordinal > 0)));
                }
                Step::Until(next) => {
                    assert!(next > at(self.now));
                    self.now = next.as_millis() - NOON;
                }
                Step::Off => {
                    assert!(self.outbox.resume());
                    self.failed = None;
                }
                Step::Send(told) => {
                    let sequence = told.place.0;
                    self.sent(sequence, answer, chance);
                    return self.keep();
                }
            }
        }
    }

    fn sent(&mut self, sequence: u64, answer: &Answer, chance: u16) {
        let attempts = self.outbox.cursor().attempts;
        let was_failing = self.outbox.cursor().failing;
        if let Some((_, failed_at, least, _)) = self.failed.filter(|(before, ..)| *before == sequence) {
            assert!(self.now - failed_at >= least, "tried again too early");
        }
        if *answer == OK {
            self.arrived.push(sequence);
        }
        let done = self.outbox.done(answer, at(self.now), chance).unwrap();
        assert_eq!(done.attempt, attempts + 1);
        let Answer::Failed { retry_after, .. } = answer else { return };
        let asked = retry_after.map_or(0, |asked| i64::try_from(asked.as_millis()).unwrap()).min(86_400_000);
        let schedule = Schedule::default();
        let step = match done.end {
            End::RetryAt(_) if was_failing => *schedule.waits().last().unwrap(),
            End::RetryAt(_) => schedule.waits()[usize::try_from(attempts).unwrap()],
            End::Parked => {
                assert_eq!(done.attempt, if was_failing { 2 } else { 10 });
                return;
            }
            other => panic!("{other:?}"),
        };
        let step = i64::try_from(step).unwrap();
        let (least, most) = ((step - step / 10).max(asked), (step + step / 10).max(asked));
        let End::RetryAt(next) = done.end else { return };
        let wait = next.as_millis() - NOON - self.now;
        assert!((least..=most).contains(&wait), "{wait} is not within {least}..={most}");
        self.failed = Some((sequence, self.now, least, most));
    }
}

proptest! {
    #[test]
    fn after_any_answer_or_crash_events_arrive_in_order_or_park(
        happenings in proptest::collection::vec((happening(), any::<u16>()), 1..400),
    ) {
        let mut world = World::new();
        for (happening, chance) in &happenings {
            world.happens(happening, *chance);
        }
        let Cursor { next, ordinal, .. } = *world.outbox.cursor();
        let parked: Vec<u64> = world.outbox.parked().iter().map(|parked| parked.event.sequence().get()).collect();
        for sequence in 0..next + u64::from(ordinal > 0) {
            prop_assert!(world.arrived.contains(&sequence) || parked.contains(&sequence), "{} is lost", sequence);
        }
        let mut last = None;
        let mut seen = std::collections::BTreeSet::new();
        for sequence in &world.arrived {
            if seen.insert(*sequence) {
                prop_assert!(last < Some(*sequence), "{} came late", sequence);
                last = Some(*sequence);
            }
        }
    }

    #[test]
    fn where_it_stands_reads_back(attempts: u32, failing: bool, off: Option<String>, retry_at: Option<u32>) {
        let retry_at = retry_at.map(|millis| at(millis.into()));
        let cursor = Cursor { next: 5, ordinal: 1, attempts, retry_at, failing, off };
        let text = serde_json::to_string(&cursor).unwrap();
        prop_assert_eq!(serde_json::from_str::<Cursor>(&text).unwrap(), cursor);
    }
}
