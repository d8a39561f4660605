//! A member as hubs know it, and the judgment of its beats. Without I/O, so that simulations and hubs share it.
//!
//! A beat changes something only if its sender is there now: it echoes the nonce of an answer that this governor got. Any
//! other beat, of a new run, of a copy, or delivered again by a stranger, is answered with a challenge and forgotten. So no
//! message that somebody kept can bar a healthy governor.

use std::collections::BTreeMap;

use rulekeep::checkpoint::{Checkpoint, ConsistencyProof, VerifierKey, verify_consistency};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use serde::{Deserialize, Serialize};

use crate::budget::Report;
use crate::log::{self, Head, Leaf};
use crate::order::Chain;
use crate::wire::{Anchor, Answer, Beat, Term};

/// A governor as the database knows it: the columns of `governors`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs)] // a row
pub struct Membership {
    /// The governor's id.
    pub id: String,
    /// The public key of the governor.
    pub key: String,
    /// The groups of the governor.
    pub groups: Vec<String>,
    /// The id of the current run of its process; empty before the first.
    pub boot: String,
    /// The ids of the runs before, the last one first.
    pub boots_before: Vec<String>,
    /// The number of the run's last beat.
    pub number: i64,
    /// The nonce of the last answer.
    pub nonce: String,
    /// The last nonce that the governor is known to have: the answer after it may be lost.
    pub nonce_before: String,
    /// A random text that challenges depend on, another for each run.
    pub salt: String,
    /// The epoch of the database in which the run has last echoed a nonce.
    pub met: i64,
    /// The epoch for which the run has reported its parts of shared limits.
    pub reported: i64,
    /// The number of the order in force at the governor.
    pub order_seq: i64,
    /// Orders that it could not carry out, with the reason.
    pub refused: BTreeMap<u64, String>,
    /// Number of open actions of stopped agents.
    pub open_actions: i64,
    /// Number of entries of its log at its last beat.
    pub head_size: i64,
    /// The root of the log at that size; empty before the first.
    pub head_root: String,
    /// Number of entries that the anchored checkpoint covers.
    pub size: i64,
    /// The anchored checkpoint.
    pub note: String,
    /// The time of that anchor.
    pub anchored_at: i64,
    /// Number of entries whose records are copied where they are wanted.
    pub copied: i64,
    /// The time of its last beat.
    pub seen_at: i64,
    /// The lead of its clock over the database's, in milliseconds.
    pub skew_ms: i64,
    /// The hub that granted the last permit.
    pub permit_hub: String,
    /// The end of that permit on the hub's clock; 0 if there is none.
    pub permit_until: i64,
    /// The newest order that came with the last permit.
    pub permit_order: i64,
    /// The hub that granted the last permit without that order.
    pub former_hub: String,
    /// The end of the last permit without that order, on the hub's clock.
    pub former_until: i64,
    /// The reason it gets no permit until an order readmits it.
    pub trouble: String,
    /// Whether the run has shown that its log continues that of the run before.
    pub is_shown: bool,
    /// True once it has given back all parts of shared limits; it decides nothing until its next run.
    pub has_left: bool,
}

/// The facts that a beat is judged by, besides its governor.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs)] // arguments of one call
pub struct Facts<'a> {
    /// The orders.
    pub chain: &'a Chain,
    /// The digest of the order that the beat names; `None` if the chain does not have it.
    pub order: Option<Digest>,
    /// The database's time.
    pub now: i64,
    /// The hub's name.
    pub hub: &'a str,
    /// The time on the hub's own clock, which is never set.
    pub clock: i64,
    /// The epoch of the database.
    pub epoch: i64,
    /// The reason nobody gets a permit.
    pub unverified: Option<&'a str>,
    /// A random text.
    pub random: &'a str,
}

/// The relation of a beat to the run that the hub knows.
enum Sender {
    /// The current run, or one that has begun with this beat.
    Current,
    /// A beat that arrives after a later one, or again.
    Late,
    /// Nobody who has shown to be there now.
    Unknown,
    /// A process that contradicts the one that is known.
    Contradicts(&'static str),
}

/// The relation of a new checkpoint to the known ones.
enum Taken {
    /// The checkpoint is the anchored one, or continues it.
    Continued(Head),
    /// One of its proofs starts from another size than the known ones.
    OtherStart,
}

impl Membership {
    /// Judges a beat: notes what it reports, and answers whether the governor may decide. New leaves of the organisation's
    /// log are added to `leaves`.
    ///
    /// # Errors
    ///
    /// The reason there is no answer: a later beat has arrived before, so its sender has given this one up.
    pub fn judge(&mut self, beat: &Beat, facts: &Facts<'_>, leaves: &mut Vec<(Leaf, u64)>) -> Result<Answer, String> {
        let refused = |why: String| Ok(Answer { refused: Some(why), ..Answer::default() });
        if facts.chain.is_retired(&self.id) {
            return refused(RETIRED.to_owned());
        }
        if self.trouble.is_empty() {
            match self.recognize(beat, facts) {
                Sender::Current => {}
                Sender::Late => return Err("a later beat of this governor has arrived before".to_owned()),
                Sender::Unknown => return Ok(self.challenged(beat, facts)),
                Sender::Contradicts(why) => self.quarrel(why, vec![self.note.clone()], leaves),
            }
        }
        if self.trouble.is_empty()
            && let Some(anchor) = &beat.anchor
        {
            match self.take(anchor) {
                // The answer that named the known sizes was lost: the next one asks for other proofs.
                Ok(Taken::OtherStart) => self.is_shown = false,
                Ok(Taken::Continued(head)) => self.anchor(head, &anchor.note, facts.now, leaves),
                Err(why) => self.quarrel(&why, vec![self.note.clone(), anchor.note.clone()], leaves),
            }
        }
        if !self.trouble.is_empty() {
            return refused(format!("{}; an order must readmit it", self.trouble));
        }
        self.note(beat, facts);
        let reason = if facts.order == Some(beat.head) {
            facts.unverified.map(str::to_owned)
        } else {
            Some(format!("its order {} is not the one that this hub knows", beat.order))
        };
        self.nonce = format!("{}.{}", facts.epoch, facts.random);
        let mut answer = self.answer(facts);
        let is_ready = self.is_shown && self.reported == facts.epoch && !self.has_left;
        answer.permit = term(facts.chain, &self.groups).filter(|_| reason.is_none() && is_ready);
        answer.refused = reason;
        if let Some(term) = answer.permit {
            // Permits come with all orders, so the newest order is only missing where earlier ones are held.
            let newest = number(facts.chain.seq());
            if std::mem::replace(&mut self.permit_order, newest) < newest {
                (self.former_hub, self.former_until) = (self.permit_hub.clone(), self.permit_until);
            }
            facts.hub.clone_into(&mut self.permit_hub);
            self.permit_until = facts.clock.saturating_add(number(term.term_ms.saturating_add(term.offline_ms)));
        }
        Ok(answer)
    }

    /// An answer without a permit.
    fn answer(&self, facts: &Facts<'_>) -> Answer {
        Answer {
            nonce: self.nonce.clone(),
            is_taken: true,
            anchored: self.size.unsigned_abs(),
            copied: self.copied.unsigned_abs(),
            head: self.head_size.unsigned_abs(),
            report: (self.reported < facts.epoch).then_some(facts.epoch.unsigned_abs()),
            show: !self.is_shown,
            ..Answer::default()
        }
    }

    /// The answer to a beat whose sender must show that it is there now.
    fn challenged(&self, beat: &Beat, facts: &Facts<'_>) -> Answer {
        let nonce = self.challenge(&beat.boot, facts.epoch);
        let report = Some(facts.epoch.unsigned_abs());
        Answer { nonce, is_taken: false, report, show: true, ..self.answer(facts) }
    }

    /// Finds out who sent a beat. A new run that echoes its challenge becomes the current one.
    fn recognize(&mut self, beat: &Beat, facts: &Facts<'_>) -> Sender {
        let nonce = beat.nonce.as_deref().unwrap_or_default();
        let is_there = nonce == self.challenge(&beat.boot, facts.epoch);
        if beat.boot == self.boot {
            if number(beat.number) <= self.number {
                return Sender::Late;
            } else if !nonce.is_empty() && nonce == self.nonce {
                self.met = self.met.max(nonce.split('.').next().and_then(|epoch| epoch.parse().ok()).unwrap_or(0));
                return Sender::Current;
            } else if !nonce.is_empty() && nonce == self.nonce_before {
                return Sender::Current;
            } else if is_there && self.met < facts.epoch {
                // The database has forgotten the nonces of its last answers.
                self.met = facts.epoch;
                return Sender::Current;
            }
            let cloned = Sender::Contradicts("its process was cloned: a nonce came twice");
            return if is_there { cloned } else { Sender::Unknown };
        }
        if !is_there {
            return Sender::Unknown;
        }
        if self.boots_before.contains(&beat.boot) {
            return Sender::Contradicts("two processes use its key: an earlier run came back");
        }
        let former = std::mem::replace(&mut self.boot, beat.boot.clone());
        self.boots_before.insert(0, former);
        self.boots_before.retain(|boot| !boot.is_empty());
        self.boots_before.truncate(BOOTS_BEFORE);
        facts.random.clone_into(&mut self.salt);
        (self.met, self.reported, self.is_shown) = (facts.epoch, 0, false);
        Sender::Current
    }

    /// The nonce that shows that the sender of an unexpected beat is there now.
    fn challenge(&self, boot: &str, epoch: i64) -> String {
        format!("{epoch}.{}", Digest::of(format!("{}\n{boot}\n{epoch}\n{}", self.id, self.salt).as_bytes()))
    }

    /// Notes what a beat reports.
    fn note(&mut self, beat: &Beat, facts: &Facts<'_>) {
        self.nonce_before = beat.nonce.clone().unwrap_or_default();
        self.number = number(beat.number);
        self.order_seq = number(beat.order);
        self.open_actions = number(beat.open);
        self.skew_ms = beat.at.as_millis().saturating_sub(facts.now);
        self.seen_at = facts.now;
        let shown = |text: &String| text.replace('\0', "?").chars().take(MAX_REASON_CHARS).collect();
        let known = beat.refused.range(..=facts.chain.seq());
        self.refused = known.take(MAX_REASONS).map(|(order, why)| (*order, shown(why))).collect();
        if let Some(head) = beat.log.filter(|_| self.is_shown) {
            self.note_head(head);
        }
        // A report of a run that is not shown yet is asked for again.
        let is_for_now = |report: &Report| report.is_for(facts.epoch.unsigned_abs(), &beat.boot);
        if self.is_shown && beat.report.as_ref().is_some_and(is_for_now) {
            self.reported = facts.epoch;
        }
        if beat.is_leaving {
            (self.has_left, self.permit_until, self.former_until) = (true, 0, 0);
        }
    }

    /// Notes a checkpoint. It becomes a leaf if it is a new one, and also if the governor comes back after it had left: a
    /// database that goes back must not take it for one that holds nothing.
    fn anchor(&mut self, head: Head, note: &str, now: i64, leaves: &mut Vec<(Leaf, u64)>) {
        self.is_shown = true;
        let has_returned = std::mem::take(&mut self.has_left);
        if number(head.size) > self.size || has_returned {
            (self.size, self.anchored_at) = (number(head.size), now);
            note.clone_into(&mut self.note);
            self.note_head(head);
            let at = Timestamp::from_millis(now);
            leaves.push((Leaf::Anchor { governor: self.id.clone(), note: note.to_owned(), at }, head.size));
        }
    }

    fn note_head(&mut self, head: Head) {
        if number(head.size) > self.head_size {
            (self.head_size, self.head_root) = (number(head.size), head.root.to_string());
        }
    }

    /// Checks a new checkpoint against the anchored one, and that of a new run against the last beat of the run before.
    fn take(&self, anchor: &Anchor) -> Result<Taken, String> {
        let key: VerifierKey = self.key.parse().map_err(|_| "its key cannot be read".to_owned())?;
        let checkpoint = Checkpoint::open(&anchor.note, &key).map_err(|error| error.to_string())?;
        let new = Head::from(&checkpoint);
        let known = self.size.max(if self.is_shown { 0 } else { self.head_size }).unsigned_abs();
        if new.size < known {
            return Err(format!("its log has {} entries, and had {known}: an earlier copy was restored", new.size));
        }
        let proof = |text: &Option<String>| text.as_deref().unwrap_or_default().parse::<ConsistencyProof>().ok();
        if !self.is_shown && self.head_size > self.size {
            let root = self.head_root.parse().map_err(|_| "the root of its log cannot be read".to_owned())?;
            let last = Head { size: self.head_size.unsigned_abs(), root };
            let proof = proof(&anchor.continues);
            if new.size > last.size && proof.as_ref().is_none_or(|proof| proof.old != last.size) {
                return Ok(Taken::OtherStart);
            }
            let path = proof.map(|proof| proof.path).unwrap_or_default();
            let is_continued = new == last || log::verify_consistency(&last, &new, &path).is_ok();
            if !is_continued {
                return Err("its log was forked: it does not continue that of its last beat".to_owned());
            }
        }
        if self.size == 0 || Checkpoint::open(&self.note, &key).is_ok_and(|last| last == checkpoint) {
            return Ok(Taken::Continued(new));
        }
        let start = proof(&anchor.proof).map_or(0, |proof| proof.old);
        if new.size > self.size.unsigned_abs() && start != self.size.unsigned_abs() {
            return Ok(Taken::OtherStart);
        }
        let text = anchor.proof.as_deref().unwrap_or_default();
        verify_consistency(&self.note, &anchor.note, text, &key)
            .map(|_| Taken::Continued(new))
            .map_err(|error| format!("its log was forked: {error}"))
    }

    /// Notes why the governor gets no permit until it is readmitted.
    fn quarrel(&mut self, why: &str, notes: Vec<String>, leaves: &mut Vec<(Leaf, u64)>) {
        why.clone_into(&mut self.trouble);
        let leaf = Leaf::Fork { governor: self.id.clone(), why: why.to_owned(), notes };
        leaves.push((leaf, self.size.unsigned_abs()));
    }
}

/// The times of a permit by the orders.
fn term(chain: &Chain, groups: &[String]) -> Option<Term> {
    chain.organisation().map(|organisation| Term {
        term_ms: organisation.permit_seconds.saturating_mul(1000),
        offline_ms: u64::try_from(chain.offline_for(groups).as_millis()).unwrap_or(0),
    })
}

/// A count as PostgreSQL stores it.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The reason a retired governor gets no permit.
pub(crate) const RETIRED: &str = "its membership has ended";
/// The earlier runs of a governor that are remembered.
const BOOTS_BEFORE: usize = 16;
/// The most orders that a governor can name as not carried out.
const MAX_REASONS: usize = 32;
/// The longest reason that is kept.
const MAX_REASON_CHARS: usize = 300;
