//! Beats and permits.
//!
//! Beats that arrive together are answered from one transaction. It begins after the last of them arrived, so a permit
//! counted from the sending of its beat never hides an order that was stored before the beat was sent.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use rulekeep::checkpoint::{Checkpoint, ConsistencyProof, VerifierKey, verify_consistency};
use rulekeep::system::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::orders::number;
use super::{Hub, HubError, Orders, limits, sequencer, store};
use crate::log::Leaf;
use crate::permit::Arrival;
use crate::wire::{Anchor, Answer, Beat, Term};

/// A beat that waits for the next transaction.
pub(super) struct Arrived {
    beat: Beat,
    arrival: Arrival,
    answer: oneshot::Sender<Result<Answer, String>>,
}

impl Hub {
    /// Answers a beat, at once if there is news and otherwise after the time that the governor waits.
    pub(super) async fn beat(&self, beat: Beat) -> Result<Answer, HubError> {
        let wait = Duration::from_millis(beat.wait_ms.min(MAX_WAIT_MS));
        let (order, mut newest) = (beat.order, self.inner.newest.subscribe());
        let (sender, answered) = oneshot::channel();
        let busy = || HubError::Database("this hub is shutting down".to_owned());
        self.inner
            .beats
            .send(Arrived { beat, arrival: self.inner.reads.arrived(), answer: sender })
            .await
            .map_err(|_| busy())?;
        let mut answer = answered.await.map_err(|_| busy())?.map_err(HubError::Database)?;
        if answer.refused.is_none() && !answer.is_news() {
            // INVARIANT: the permit stays that of the transaction above, counted from the sending of this beat.
            // An order that it does not have yet ends the waiting before it begins.
            let _ = tokio::time::timeout(wait, newest.wait_for(|newest| *newest > order)).await;
        }
        let orders = self.orders();
        let after = usize::try_from(order).unwrap_or(usize::MAX);
        answer.orders = orders.after(after);
        if orders.signed.len() > after.saturating_add(answer.orders.len()) {
            // It is not up to date after this answer.
            answer.permit = None;
        }
        Ok(answer)
    }

    /// Answers beats, as many at once as have arrived.
    pub(super) async fn answer_beats(self, mut arrived: mpsc::Receiver<Arrived>) {
        let mut left_over = Vec::new();
        loop {
            let mut batch: Vec<Arrived> = std::mem::take(&mut left_over);
            if batch.is_empty() && arrived.recv_many(&mut batch, MOST_AT_ONCE).await == 0 {
                return;
            }
            while batch.len() < MOST_AT_ONCE
                && let Ok(next) = arrived.try_recv()
            {
                batch.push(next);
            }
            // Those whose callers have given up come again in another beat.
            batch.retain(|next| !next.answer.is_closed());
            // A governor's second beat rests on its first.
            let mut seen = HashSet::new();
            let (batch, second): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|next| seen.insert(next.beat.governor.clone()));
            left_over = second;
            let beats: Vec<_> = batch.iter().map(|next| (&next.beat, next.arrival)).collect();
            let answers = self.inner.store.in_time(store::TIMEOUT, self.judge_all(&beats)).await;
            match answers {
                Ok(mut answers) => {
                    for next in batch {
                        let answer = answers.remove(&next.beat.governor);
                        let unknown = || format!("no governor {} is enrolled", next.beat.governor);
                        // A caller that has gone needs no answer.
                        let _ = next.answer.send(answer.unwrap_or_else(|| Err(unknown())));
                    }
                }
                Err(error) => {
                    for next in batch {
                        let _ = next.answer.send(Err(error.to_string()));
                    }
                    tokio::time::sleep(super::PAUSE).await;
                }
            }
        }
    }

    async fn judge_all(&self, beats: &[(&Beat, Arrival)]) -> Result<BTreeMap<String, Judged>, HubError> {
        let mut client = self.inner.store.client().await?;
        let read = self.inner.reads.begin_read();
        let transaction = client.transaction().await?;
        let ids: Vec<&str> = beats.iter().map(|(beat, _)| beat.governor.as_str()).collect();
        let epoch = self.look_at_epoch(&transaction, &ids).await?;
        // Locked in one order, so that hubs do not wait for each other in a circle.
        let rows = transaction.query(&transaction.prepare_cached(SELECT).await?, &[&ids]).await?;
        let members = rows.iter().map(|row| Member::read(row.get(0)).map(|member| (member.id.clone(), member)));
        let mut members: BTreeMap<String, Member> = members.collect::<Result<_, _>>()?;
        self.read_orders(&transaction).await?;
        let stages = self.stages(&transaction).await?;
        let recalls = self.recalls(&transaction, &ids).await?;
        let orders = self.orders();
        let (mut answers, mut leaves, mut recounted) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        for (beat, arrival) in beats {
            let Some(member) = members.get_mut(&beat.governor) else { continue };
            let context = Context {
                orders: &orders,
                now: epoch.now,
                unverified: epoch.unverified,
                awaited_in: epoch.fence.is_awaited(&beat.governor).then_some(epoch.fence.epoch()),
            };
            let mut answer = match member.judge(beat, &context, &mut leaves) {
                Ok(answer) => answer,
                Err(late) => {
                    answers.insert(beat.governor.clone(), Err(late));
                    continue;
                }
            };
            answer.permit = answer.permit.and_then(|term| read.permit(*arrival, term));
            answer.stages.clone_from(&stages);
            answer.recall = recalls.get(&beat.governor).cloned().unwrap_or_default();
            if !answer.nonce.is_empty() {
                recounted.extend(self.settle(&transaction, beat, &epoch, member.is_shown).await?);
            }
            answers.insert(beat.governor.clone(), Ok(answer));
        }
        limits::recount(&transaction, &recounted).await?;
        Member::store(&transaction, &members).await?;
        let leaves: Vec<_> =
            leaves.iter().map(|(leaf, governor, size)| (leaf, governor.as_str(), number(*size))).collect();
        sequencer::enqueue(&transaction, &leaves).await?;
        transaction.commit().await?;
        Ok(answers)
    }
}

/// The answer to a beat, or why there is none.
type Judged = Result<Answer, String>;

impl Answer {
    /// Returns whether the governor should get it at once, whatever its orders are.
    fn is_news(&self) -> bool {
        !self.recall.is_empty() || self.report.is_some() || self.show
    }
}

/// The facts that a beat is judged by, besides its governor.
struct Context<'a> {
    orders: &'a Orders,
    now: i64,
    /// The epoch for which it has not reported what it holds of shared limits.
    awaited_in: Option<u64>,
    /// Why nobody gets a permit.
    unverified: Option<&'a str>,
}

/// The relation of a new checkpoint to the last one.
enum Taken {
    /// Both are the same.
    Same,
    /// The new one continues the last one, and has this size.
    New(u64),
    /// The proof starts from another size than the last one's.
    OtherStart,
}

/// A governor as the database knows it: the columns of `governors`.
#[derive(Debug, Serialize, Deserialize)]
struct Member {
    id: String,
    key: String,
    groups: Vec<String>,
    boot: String,
    boot_before: String,
    boot_at: i64,
    number: i64,
    nonce: String,
    nonce_before: String,
    order_seq: i64,
    refused: String,
    open_actions: i64,
    size: i64,
    note: String,
    anchored_at: i64,
    copied: i64,
    seen_at: i64,
    skew_ms: i64,
    permit_until: i64,
    permit_order: i64,
    former_until: i64,
    trouble: String,
    /// Whether this run has shown that its log continues the anchored one.
    is_shown: bool,
}

impl Member {
    fn read(row: &str) -> Result<Self, HubError> {
        serde_json::from_str(row).map_err(|error| HubError::Database(format!("a governor cannot be read: {error}")))
    }

    /// Stores what beats have changed.
    async fn store(
        transaction: &deadpool_postgres::Transaction<'_>,
        members: &BTreeMap<String, Self>,
    ) -> Result<(), HubError> {
        let rows = serde_json::to_string(&members.values().collect::<Vec<_>>());
        let rows = rows.map_err(|error| HubError::Database(error.to_string()))?;
        transaction.execute(&transaction.prepare_cached(UPDATE).await?, &[&rows]).await?;
        Ok(())
    }

    /// Judges a beat: notes what it reports, and answers whether the governor may decide. A beat that arrives late, after
    /// a later one of the same governor, says nothing: its sender has given it up.
    fn judge(&mut self, beat: &Beat, context: &Context<'_>, leaves: &mut Vec<(Leaf, String, u64)>) -> Judged {
        if self.is_late(beat) {
            return Err("a later beat of this governor has arrived before".to_owned());
        }
        if self.trouble.is_empty()
            && let Err(why) = self.recognize(beat)
        {
            self.quarrel(&why, vec![self.note.clone()], leaves);
        }
        if self.trouble.is_empty()
            && let Some(anchor) = &beat.anchor
        {
            match self.take(anchor) {
                Ok(Taken::Same) => self.is_shown = true,
                // The answer that named the anchored size was lost: the next one asks for another proof.
                Ok(Taken::OtherStart) => self.is_shown = false,
                Ok(Taken::New(size)) => {
                    self.is_shown = true;
                    (self.size, self.anchored_at) = (number(size), context.now);
                    self.note.clone_from(&anchor.note);
                    let at = Timestamp::from_millis(context.now);
                    let leaf = Leaf::Anchor { governor: self.id.clone(), note: anchor.note.clone(), at };
                    leaves.push((leaf, self.id.clone(), size));
                }
                Err(why) => self.quarrel(&why, vec![self.note.clone(), anchor.note.clone()], leaves),
            }
        }
        if !self.trouble.is_empty() {
            let refused = Some(format!("{}; an order must readmit it", self.trouble));
            return Ok(Answer { refused, ..Answer::default() });
        }
        // The last nonce that the governor is known to have: its next answer may be lost.
        self.nonce_before = beat.nonce.clone().unwrap_or_default();
        self.nonce = super::random();
        self.number = number(beat.number);
        self.order_seq = number(beat.order);
        self.refused = serde_json::to_string(&beat.refused).unwrap_or_default().replace("\\u0000", "?");
        self.open_actions = number(beat.open);
        self.skew_ms = beat.at.as_millis().saturating_sub(context.now);
        self.seen_at = context.now;
        let refused = if context.orders.chain.is_retired(&self.id) {
            Some("its membership has ended".to_owned())
        } else if context.orders.digest_of(beat.order) != Some(beat.head) {
            Some(format!("its order {} is not the one that this hub knows", beat.order))
        } else {
            context.unverified.map(str::to_owned)
        };
        let term = context.orders.chain.organisation().map(|organisation| Term {
            term_ms: organisation.permit_seconds.saturating_mul(1000),
            offline_ms: u64::try_from(context.orders.chain.offline_for(&self.groups).as_millis()).unwrap_or(0),
        });
        let permit = term.filter(|_| refused.is_none() && self.is_shown);
        if let Some(term) = permit {
            // Permits come with all orders, so the newest order is only missing where earlier ones are held.
            let newest = number(context.orders.chain.seq());
            if std::mem::replace(&mut self.permit_order, newest) < newest {
                self.former_until = self.permit_until;
            }
            self.permit_until = context.now.saturating_add(number(term.term_ms.saturating_add(term.offline_ms)));
        }
        Ok(Answer {
            nonce: self.nonce.clone(),
            permit,
            refused,
            anchored: self.size.unsigned_abs(),
            copied: self.copied.unsigned_abs(),
            report: context.awaited_in.filter(|_| beat.report.is_none()),
            show: !self.is_shown,
            ..Answer::default()
        })
    }

    /// Returns whether a beat was sent before another one that has arrived already.
    fn is_late(&self, beat: &Beat) -> bool {
        if beat.boot == self.boot {
            number(beat.number) <= self.number
        } else {
            // A run that is not known may have ended before its first beat arrived.
            let earlier = self.boot_at.saturating_sub(beat.at.as_millis());
            let is_earlier =
                if self.was_before(&beat.boot) { earlier >= 0 } else { (0..=ON_ITS_WAY_MS).contains(&earlier) };
            is_earlier && !self.boot.is_empty()
        }
    }

    /// Returns whether it is a run before the last one, as far as they are remembered.
    fn was_before(&self, boot: &str) -> bool {
        self.boot_before.split_whitespace().any(|before| before == boot)
    }

    /// Checks that the beat comes from the one process that holds this governor's store.
    fn recognize(&mut self, beat: &Beat) -> Result<(), String> {
        if self.boot.is_empty() {
            // New, readmitted, or forgotten by a restored database.
            self.boot.clone_from(&beat.boot);
            (self.boot_at, self.number, self.is_shown) = (beat.at.as_millis(), 0, false);
            return Ok(());
        }
        if beat.boot == self.boot {
            let is_next = beat.nonce.as_ref().is_some_and(|nonce| *nonce == self.nonce || *nonce == self.nonce_before);
            // The answer to the first beat of a run may have been lost.
            let is_first_again = beat.nonce.is_none() && self.nonce_before.is_empty();
            return if is_next || is_first_again {
                Ok(())
            } else {
                Err("its process was cloned: a nonce came twice".to_owned())
            };
        }
        if self.was_before(&beat.boot) {
            return Err("two processes use its key: an earlier run came back".to_owned());
        }
        if beat.nonce.is_some() {
            return Err("its process was cloned: a run began with a nonce".to_owned());
        }
        let former = std::mem::replace(&mut self.boot, beat.boot.clone());
        let before: Vec<&str> = self.boot_before.split_whitespace().take(BOOTS_BEFORE - 1).collect();
        self.boot_before = std::iter::once(former.as_str()).chain(before).collect::<Vec<_>>().join(" ");
        (self.nonce, self.nonce_before) = (String::new(), String::new());
        (self.boot_at, self.number, self.is_shown) = (beat.at.as_millis(), 0, false);
        Ok(())
    }

    /// Checks a new checkpoint against the last one.
    fn take(&self, anchor: &Anchor) -> Result<Taken, String> {
        let key: VerifierKey = self.key.parse().map_err(|_| "its key cannot be read".to_owned())?;
        let checkpoint = Checkpoint::open(&anchor.note, &key).map_err(|error| error.to_string())?;
        let size = self.size.unsigned_abs();
        if size == 0 {
            return Ok(if checkpoint.size() > 0 { Taken::New(checkpoint.size()) } else { Taken::Same });
        }
        if checkpoint.size() < size {
            let found = checkpoint.size();
            return Err(format!("its log has {found} entries, and had {size}: an earlier copy was restored"));
        }
        let same = Checkpoint::open(&self.note, &key).is_ok_and(|last| last == checkpoint);
        if same {
            return Ok(Taken::Same);
        }
        let proof = anchor.proof.as_deref().unwrap_or_default();
        let start = proof.parse().map_or(0, |proof: ConsistencyProof| proof.old);
        if checkpoint.size() > size && start != size {
            return Ok(Taken::OtherStart);
        }
        verify_consistency(&self.note, &anchor.note, proof, &key)
            .map(|checkpoint| Taken::New(checkpoint.size()))
            .map_err(|error| format!("its log was forked: {error}"))
    }

    /// Notes why the governor gets no permit until it is readmitted.
    fn quarrel(&mut self, why: &str, notes: Vec<String>, leaves: &mut Vec<(Leaf, String, u64)>) {
        why.clone_into(&mut self.trouble);
        let leaf = Leaf::Fork { governor: self.id.clone(), why: why.to_owned(), notes };
        leaves.push((leaf, self.id.clone(), self.size.unsigned_abs()));
    }
}

/// The earlier runs of a governor that are remembered, so that a late beat of one is not taken for a new run.
const BOOTS_BEFORE: usize = 16;
/// The longest time for which a beat is taken to be on its way, in milliseconds.
const ON_ITS_WAY_MS: i64 = 60_000;
/// Beats in one transaction.
const MOST_AT_ONCE: usize = 512;
/// The longest time that a beat may wait for news.
const MAX_WAIT_MS: u64 = 60_000;
const SELECT: &str = "SELECT row_to_json(g)::text FROM governors AS g WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const UPDATE: &str = "UPDATE governors AS g SET boot = u.boot, boot_before = u.boot_before, nonce = u.nonce, \
    nonce_before = u.nonce_before, refused = u.refused, note = u.note, trouble = u.trouble, order_seq = u.order_seq, \
    open_actions = u.open_actions, size = u.size, anchored_at = u.anchored_at, seen_at = u.seen_at, skew_ms = u.skew_ms, \
    permit_until = u.permit_until, is_shown = u.is_shown, boot_at = u.boot_at, number = u.number, \
    permit_order = u.permit_order, former_until = u.former_until \
    FROM jsonb_populate_recordset(NULL::governors, $1::text::jsonb) AS u WHERE g.id = u.id";
