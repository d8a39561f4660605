//! Beats and permits.
//!
//! Beats that arrive together are answered from one transaction. It begins after the last of them arrived, so a permit
//! counted from the sending of its beat never hides an order that was stored before the beat was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::batches::{self, Request};
use super::clock::HubClock;
use super::{Hub, HubError, limits, random, sequencer};
use crate::membership::{Facts, Membership, RETIRED, number};
use crate::permit::Arrival;
use crate::wire::{Answer, Beat};

/// A beat and its place among the transactions.
pub(super) struct Arrived {
    beat: Beat,
    arrival: Arrival,
}

impl Hub {
    /// Answers a beat, at once if there is news and otherwise after the time that the governor waits.
    pub(super) async fn beat(&self, beat: Beat) -> Result<Answer, HubError> {
        let wait = Duration::from_millis(beat.wait_ms.min(MAX_WAIT_MS));
        let (order, mut newest) = (beat.order, self.inner.newest.subscribe());
        if let Err(ended) = self.check_membership(&beat.governor) {
            return Ok(Answer { refused: Some(ended.to_string()), ..Answer::default() });
        }
        let mut answer = batches::ask(&self.inner.beats, Arrived { beat, arrival: self.inner.reads.arrived() }).await?;
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

    /// Refuses a governor whose membership has ended, before anything else of its message is looked at.
    pub(super) fn check_membership(&self, governor: &str) -> Result<(), HubError> {
        let is_retired = self.orders().chain.is_retired(governor);
        if is_retired { Err(HubError::Forbidden(format!("{governor}: {RETIRED}"))) } else { Ok(()) }
    }

    async fn judge_all(&self, beats: &[&Arrived]) -> Result<Vec<Result<Answer, String>>, HubError> {
        let mut client = self.inner.store.client().await?;
        let read = self.inner.reads.begin_read();
        let transaction = client.transaction().await?;
        let ids: Vec<&str> = beats.iter().map(|next| next.beat.governor.as_str()).collect();
        let epoch = self.look_at_epoch(&transaction, &ids).await?;
        // Locked in one order, so that hubs do not wait for each other in a circle.
        let rows = transaction.query(&transaction.prepare_cached(SELECT).await?, &[&ids]).await?;
        let members = rows.iter().map(|row| {
            let member: Membership = serde_json::from_str(row.get(0))
                .map_err(|error| HubError::Database(format!("a governor cannot be read: {error}")))?;
            Ok((member.id.clone(), member))
        });
        let mut members: BTreeMap<String, Membership> = members.collect::<Result<_, HubError>>()?;
        self.read_orders(&transaction).await?;
        let stages = self.stages(&transaction).await?;
        let recalls = self.recalls(&transaction, &ids).await?;
        let orders = self.orders();
        let (mut answers, mut leaves, mut recounted) = (Vec::new(), Vec::new(), BTreeSet::new());
        for Arrived { beat, arrival } in beats {
            let Some(member) = members.get_mut(&beat.governor) else {
                answers.push(Err(format!("no governor {} is enrolled", beat.governor)));
                continue;
            };
            let facts = Facts {
                chain: &orders.chain,
                order: orders.digest_of(beat.order),
                now: epoch.now,
                hub: &self.inner.clock.hub,
                clock: HubClock::now(),
                epoch: number(epoch.fence.epoch()),
                unverified: epoch.unverified,
                random: &random(),
            };
            let mut new = Vec::new();
            let mut answer = member.judge(beat, &facts, &mut new);
            leaves.extend(new.into_iter().map(|(leaf, size)| (leaf, beat.governor.as_str(), number(size))));
            if let Ok(answer) = &mut answer {
                answer.permit = answer.permit.and_then(|term| read.permit(*arrival, term));
                answer.stages.clone_from(&stages);
                answer.recall = recalls.get(&beat.governor).cloned().unwrap_or_default();
                if answer.is_taken {
                    recounted.extend(self.settle(&transaction, beat, &epoch, member.is_shown).await?);
                }
            }
            answers.push(answer);
        }
        limits::recount(&transaction, &recounted).await?;
        let rows = serde_json::to_string(&members.values().collect::<Vec<_>>());
        let rows = rows.map_err(|error| HubError::Content(error.to_string()))?;
        transaction.execute(&transaction.prepare_cached(UPDATE).await?, &[&rows]).await?;
        let leaves: Vec<_> = leaves.iter().map(|(leaf, governor, size)| (leaf, *governor, *size)).collect();
        sequencer::enqueue(&transaction, &leaves).await?;
        transaction.commit().await?;
        Ok(answers)
    }
}

impl Request for Arrived {
    type Answer = Answer;
    const GATHER: Duration = Duration::ZERO;
    // A governor's second beat rests on its first.
    const IS_ONE_EACH: bool = true;

    fn governor(&self) -> &str {
        &self.beat.governor
    }

    async fn answer_all(hub: &Hub, requests: &[&Self]) -> Result<Vec<Result<Answer, String>>, HubError> {
        hub.judge_all(requests).await
    }
}

impl Answer {
    /// Returns whether the governor should get it at once, whatever its orders are.
    fn is_news(&self) -> bool {
        !self.recall.is_empty() || self.report.is_some() || self.show
    }
}

/// The longest time that a beat may wait for news.
const MAX_WAIT_MS: u64 = 60_000;
const SELECT: &str = "SELECT row_to_json(g)::text FROM governors AS g WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const UPDATE: &str = "UPDATE governors AS g SET boot = u.boot, boots_before = u.boots_before, number = u.number, \
    nonce = u.nonce, nonce_before = u.nonce_before, salt = u.salt, met = u.met, reported = u.reported, \
    order_seq = u.order_seq, refused = u.refused, open_actions = u.open_actions, head_size = u.head_size, \
    head_root = u.head_root, size = u.size, note = u.note, anchored_at = u.anchored_at, seen_at = u.seen_at, \
    skew_ms = u.skew_ms, permit_hub = u.permit_hub, permit_until = u.permit_until, permit_order = u.permit_order, \
    former_hub = u.former_hub, former_until = u.former_until, trouble = u.trouble, is_shown = u.is_shown, \
    has_left = u.has_left FROM jsonb_populate_recordset(NULL::governors, $1::text::jsonb) AS u WHERE g.id = u.id";
