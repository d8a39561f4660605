//! Grants of shared limits. Requests that arrive within two milliseconds are decided in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use deadpool_postgres::{GenericClient, Transaction};
use rulekeep::extension::Share as PolicyShare;
use tokio_postgres::Row;

use super::batches::{self, Request};
use super::epoch::EpochNow;
use super::{Hub, HubError, Orders};
use crate::budget::{Budget, Fence, Grant, GrantTerms, Share};
use crate::membership::number;
use crate::wire::{Beat, Reserve, Reserved};

/// The terms of a limit, as orders name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitTerms {
    max: i64,
    window: i64,
    share: Share,
}

/// Limits with the names of their counters.
pub(super) type Named = Vec<(String, LimitTerms)>;

impl LimitTerms {
    fn grants(self) -> GrantTerms {
        GrantTerms { window: self.window, lease: LEASE, reserve: RESERVE }
    }
}

impl Orders {
    /// The limits that a policy document names.
    fn limits_of(document: &crate::order::Policies) -> Named {
        let set = document.set().ok();
        let terms = set.iter().flat_map(rulekeep::PolicySet::shared_limits);
        terms
            .map(|terms| {
                let window = i64::try_from(terms.window.as_millis()).unwrap_or(i64::MAX);
                let share = if terms.share == PolicyShare::Lease { Share::Lease } else { Share::Reserve };
                (terms.counter, LimitTerms { max: terms.most, window, share })
            })
            .collect()
    }

    /// The limits in force. While documents are rolled out, the smallest maximum and the longest window hold.
    fn limits(&self, stages: &BTreeMap<u64, usize>) -> BTreeMap<String, LimitTerms> {
        let mut limits: BTreeMap<String, LimitTerms> = BTreeMap::new();
        for (seq, rollout) in self.chain.rollouts().iter().rev() {
            let known =
                self.limits_by_order.get(seq).map(|known| known.get_or_init(|| Self::limits_of(&rollout.order)));
            for (counter, terms) in known.into_iter().flatten() {
                let known = limits.entry(counter.clone()).or_insert(*terms);
                known.max = known.max.min(terms.max);
                known.window = known.window.max(terms.window);
            }
            let reached = stages.get(seq).copied().unwrap_or(0).max(rollout.skipped_to);
            if rollout.order.groups.is_empty() && reached + 1 >= rollout.order.plan.len() {
                break;
            }
        }
        for (counter, max) in self.chain.limits() {
            limits.entry(counter.clone()).and_modify(|terms| terms.max = *max);
        }
        limits
    }
}

impl Hub {
    /// Answers a request for parts of shared limits.
    pub(super) async fn reserve(&self, request: Reserve) -> Result<Reserved, HubError> {
        self.check_membership(&request.governor)?;
        batches::ask(&self.inner.reservations, request).await
    }

    async fn decide_all(&self, requests: &[&Reserve]) -> Result<Vec<Reserved>, HubError> {
        let mut client = self.inner.store.client().await?;
        let transaction = client.transaction().await?;
        let epoch = self.look_at_epoch(&transaction, &[]).await?;
        self.read_orders(&transaction).await?;
        let limits = self.orders().limits(&self.stages(&transaction).await?);
        let ids: Vec<&str> = requests.iter().map(|request| request.governor.as_str()).collect();
        let boots = "SELECT id, boot, permit_hub, permit_until FROM governors WHERE id = ANY($1) AND trouble = ''";
        let rows = transaction.query(boots, &[&ids]).await?;
        let left = self.permit_left();
        let is_permitted = |row: &&Row| left(row.get(2), row.get(3)) > 0;
        let boots = rows.iter().filter(is_permitted).map(|row| (row.get(0), row.get(1)));
        let boots: BTreeMap<String, String> = boots.collect();
        let wants = requests.iter().flat_map(|request| &request.wants);
        let counters: Vec<&str> =
            wants.map(|want| want.counter.as_str()).filter(|counter| limits.contains_key(*counter)).collect();
        let mut budgets = budgets(&transaction, &counters, &limits, &epoch).await?;
        let mut places = Vec::new();
        for request in requests {
            places.extend(request.wants.iter().map(|want| (&*request.governor, &*request.boot, want.number)));
        }
        let mut known = known(&transaction, &places).await?;
        let (mut answers, mut new, mut short) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for request in requests {
            let mut answer = Reserved::default();
            let is_current = epoch.unverified.is_none() && boots.get(&request.governor) == Some(&request.boot);
            for want in &request.wants {
                let place = (request.governor.clone(), request.boot.clone(), want.number, want.counter.clone());
                let is_shared_so = limits.get(&want.counter).is_some_and(|terms| terms.share == want.share);
                let budget = budgets.get_mut(&want.counter).filter(|_| is_current && is_shared_so);
                if let Some(grant) = budget.and_then(|budget| budget.decide(want, &request.boot, known.get(&place))) {
                    // Decisions that wait for one lease ask for it together.
                    known.insert(place.clone(), grant.clone());
                    new.insert(place, (request.governor.as_str(), grant.clone()));
                    answer.grants.push(grant);
                } else {
                    let short: &mut i64 = short.entry(want.counter.clone()).or_default();
                    *short = short.saturating_add(want.amount.max(0));
                    answer.refused.push(want.number);
                }
            }
            answers.push(answer);
        }
        store(&transaction, &new.into_values().collect::<Vec<_>>()).await?;
        store_taken(&transaction, &budgets).await?;
        for (counter, amount) in short {
            let Some(budget) = budgets.get(&counter) else { continue };
            let leases = "WHERE counter = $1 AND is_lease AND NOT is_recalled AND counted > 0 AND ends > $2";
            let rows = transaction.query(&format!("{SELECT} {leases}"), &[&counter, &epoch.now]).await?;
            let leases = rows.iter().map(grant).collect::<Result<Vec<_>, _>>()?;
            for lease in budget.recall(amount, &leases) {
                let recall = "UPDATE grants SET is_recalled = true WHERE boot = $1 AND number = $2 AND counter = $3";
                transaction.execute(recall, &[&lease.boot, &number(lease.number), &counter]).await?;
            }
        }
        transaction.commit().await?;
        Ok(answers)
    }

    /// The leases to ask back, by governor.
    pub(super) async fn recalls(
        &self,
        client: &impl GenericClient,
        ids: &[&str],
    ) -> Result<BTreeMap<String, Vec<u64>>, HubError> {
        let recalled = "SELECT governor, grants.number FROM grants JOIN governors ON id = governor AND grants.boot = governors.boot \
                        WHERE governor = ANY($1) AND is_recalled AND counted > 0 AND ends > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let mut recalls: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for row in client.query(recalled, &[&ids]).await? {
            recalls.entry(row.get(0)).or_default().push(row.get::<_, i64>(1).unsigned_abs());
        }
        Ok(recalls)
    }

    /// Takes back what a beat returns, and what it reports of an earlier life of the database. Returns the counters
    /// whose grants must be counted again.
    pub(super) async fn settle(
        &self,
        transaction: &Transaction<'_>,
        beat: &Beat,
        epoch: &EpochNow,
        is_shown: bool,
    ) -> Result<BTreeSet<String>, HubError> {
        let governor = beat.governor.as_str();
        let (fence, now) = (&epoch.fence, epoch.now);
        // Only a run that the database knew when the epoch began can hold grants that it does not know.
        let report = beat.report.as_ref().filter(|report| is_shown && fence.is_completed_by(governor, report));
        if beat.returned.is_empty() && report.is_none() {
            return Ok(BTreeSet::new());
        }
        let limits = self.orders().limits(&self.stages(transaction).await?);
        if !beat.returned.is_empty() {
            let counters = beat.returned.iter().map(|each| each.counter.as_str());
            let counters: Vec<&str> = counters.filter(|counter| limits.contains_key(*counter)).collect();
            let mut budgets = budgets(transaction, &counters, &limits, epoch).await?;
            let places: Vec<_> = beat.returned.iter().map(|each| (governor, &*beat.boot, each.number)).collect();
            let (mut known, mut changed) = (known(transaction, &places).await?, BTreeMap::new());
            for each in &beat.returned {
                let place = (beat.governor.clone(), beat.boot.clone(), each.number, each.counter.clone());
                if let (Some(grant), Some(budget)) = (known.get_mut(&place), budgets.get_mut(&each.counter))
                    && budget.give_back(grant, &beat.boot, each.total).is_ok_and(|freed| freed > 0)
                {
                    changed.insert(place, (governor, grant.clone()));
                }
            }
            store(transaction, &changed.into_values().collect::<Vec<_>>()).await?;
            store_taken(transaction, &budgets).await?;
        }
        let Some(report) = report else { return Ok(BTreeSet::new()) };
        let places: Vec<_> = report.grants.iter().map(|each| (governor, &*each.boot, each.number)).collect();
        let known = known(transaction, &places).await?;
        let merged = report.grants.iter().filter_map(|each| {
            let place = (beat.governor.clone(), each.boot.clone(), each.number, each.counter.clone());
            let terms = limits.get(&each.counter)?;
            let merged = Grant::merge(known.get(&place), each, fence.epoch())?;
            Some((place, (governor, merged.within(terms.max, now, terms.grants()))))
        });
        let merged: BTreeMap<_, _> = merged.collect();
        let counters = merged.keys().map(|(.., counter)| counter.clone()).collect();
        store(transaction, &merged.into_values().collect::<Vec<_>>()).await?;
        transaction.execute("DELETE FROM fence WHERE governor = $1", &[&governor]).await?;
        Ok(counters)
    }

    /// Stops waiting for the report of a governor, by an order. What it may hold counts as the whole of each limit.
    pub(super) async fn write_off(
        &self,
        transaction: &Transaction<'_>,
        governor: &str,
        fence: &Fence,
    ) -> Result<(), HubError> {
        let row = transaction
            .query_opt("DELETE FROM fence WHERE governor = $1 RETURNING coalesce(boot, '')", &[&governor])
            .await?;
        let Some(row) = row else { return Ok(()) };
        let (boot, limits): (String, _) = (row.get(0), self.orders().limits(&self.stages(transaction).await?));
        let charges =
            limits.iter().map(|(counter, terms)| Grant::charge(counter, &boot, terms.max, fence, terms.grants()));
        let charges: Vec<_> = charges.map(|charge| (governor, charge)).collect();
        store(transaction, &charges).await?;
        recount(transaction, &limits.into_keys().collect()).await
    }
}

impl Request for Reserve {
    type Answer = Reserved;
    const GATHER: Duration = Duration::from_millis(2);
    const IS_ONE_EACH: bool = false;

    fn governor(&self) -> &str {
        &self.governor
    }

    async fn answer_all(hub: &Hub, requests: &[&Self]) -> Result<Vec<Result<Reserved, String>>, HubError> {
        Ok(hub.decide_all(requests).await?.into_iter().map(Ok).collect())
    }
}

/// The budgets of some counters, locked, without grants that count no more.
async fn budgets(
    transaction: &Transaction<'_>,
    counters: &[&str],
    limits: &BTreeMap<String, LimitTerms>,
    epoch: &EpochNow,
) -> Result<BTreeMap<String, Budget>, HubError> {
    transaction
        .execute(
            "INSERT INTO budgets SELECT DISTINCT unnest($1::text[]), 0 ORDER BY 1 ON CONFLICT DO NOTHING",
            &[&counters],
        )
        .await?;
    // Locked in one order, so that hubs do not wait for each other in a circle.
    transaction
        .query("SELECT 1 FROM budgets WHERE counter = ANY($1) ORDER BY counter FOR UPDATE", &[&counters])
        .await?;
    let windows: Vec<i64> =
        counters.iter().map(|counter| limits.get(*counter).map_or(0, |terms| terms.window)).collect();
    transaction.execute(EXPIRE, &[&counters, &epoch.now, &windows]).await?;
    let rows = transaction.query(HOLDERS, &[&counters, &epoch.now]).await?;
    let budget = |row: &Row| {
        let (counter, taken, holders): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let terms = limits.get(&counter)?;
        let holders = u32::try_from(holders).unwrap_or(u32::MAX);
        let budget = Budget::new(terms.max, taken, holders, terms.grants(), &epoch.fence, epoch.now);
        Some((counter, budget))
    };
    Ok(rows.iter().filter_map(budget).collect())
}

async fn store_taken(transaction: &Transaction<'_>, budgets: &BTreeMap<String, Budget>) -> Result<(), HubError> {
    let (counters, taken): (Vec<&String>, Vec<i64>) =
        budgets.iter().map(|(counter, budget)| (counter, budget.taken())).unzip();
    let update = "UPDATE budgets SET taken = u.taken FROM unnest($1::text[], $2::bigint[]) AS u(counter, taken) WHERE budgets.counter = u.counter";
    transaction.execute(update, &[&counters, &taken]).await?;
    Ok(())
}

async fn store(transaction: &Transaction<'_>, grants: &[(&str, Grant)]) -> Result<(), HubError> {
    let (governors, grants): (Vec<&str>, Vec<&Grant>) =
        grants.iter().map(|(governor, grant)| (*governor, grant)).unzip();
    let grants: Vec<String> = grants.iter().map(|grant| serde_json::to_string(grant).unwrap_or_default()).collect();
    transaction.execute(STORE, &[&governors, &grants]).await?;
    Ok(())
}

/// Counts the grants of some counters again.
pub(super) async fn recount(transaction: &Transaction<'_>, counters: &BTreeSet<String>) -> Result<(), HubError> {
    if !counters.is_empty() {
        transaction.execute(RECOUNT, &[&counters.iter().collect::<Vec<_>>()]).await?;
    }
    Ok(())
}

/// The grants with some numbers of some runs of governors, by governor, run, number and counter.
async fn known(
    transaction: &Transaction<'_>,
    places: &[(&str, &str, u64)],
) -> Result<BTreeMap<(String, String, u64, String), Grant>, HubError> {
    let governors: Vec<&str> = places.iter().map(|(governor, ..)| *governor).collect();
    let boots: Vec<&str> = places.iter().map(|(_, boot, _)| *boot).collect();
    let numbers: Vec<i64> = places.iter().map(|(.., place)| number(*place)).collect();
    let rows = transaction.query(KNOWN, &[&governors, &boots, &numbers]).await?;
    let placed = rows.iter().map(|row| {
        let grant = grant(row)?;
        Ok(((row.get(0), grant.boot.clone(), grant.number, grant.counter.clone()), grant))
    });
    placed.collect()
}

/// The grant of a row of [`SELECT`].
fn grant(row: &Row) -> Result<Grant, HubError> {
    serde_json::from_str(row.get(1)).map_err(|error| HubError::Database(format!("a grant cannot be read: {error}")))
}

/// The term of a lease, in milliseconds. SOURCE: simulated; a governor's own rate over 15 minutes wastes nothing and
/// lets most uses pass without a question.
const LEASE: i64 = 900_000;
/// The time within which a reservation is used, in milliseconds.
const RESERVE: i64 = 10_000;
const SELECT: &str = "SELECT governor, body FROM grants";
const KNOWN: &str = "SELECT governor, body FROM grants JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::bigint[])) \
    AS wanted(g, b, n) ON governor = g AND boot = b AND number = n";
const STORE: &str = "INSERT INTO grants SELECT u.governor, (body->>'boot'), (body->>'number')::bigint, body->>'counter', \
    body->>'share' = 'lease', (body->>'amount')::bigint - (body->>'returned')::bigint, (body->>'ends')::bigint, \
    (body->>'countsUntil')::bigint, u.text FROM unnest($1::text[], $2::text[]) AS u(governor, text), LATERAL (SELECT u.text::jsonb AS body) AS read \
    ON CONFLICT (governor, boot, number, counter) DO UPDATE SET counted = excluded.counted, counts_until = excluded.counts_until, \
    body = excluded.body";
const EXPIRE: &str = "WITH gone AS (DELETE FROM grants USING unnest($1::text[], $3::bigint[]) AS terms(c, length) \
    WHERE counter = c AND counts_until <= $2 AND ends <= $2 - length RETURNING counter, counted), \
    freed AS (SELECT counter, least(sum(counted), 9223372036854775807)::bigint AS freed FROM gone GROUP BY counter) \
    UPDATE budgets SET taken = taken - freed FROM freed WHERE budgets.counter = freed.counter";
const HOLDERS: &str = "SELECT counter, taken, (SELECT count(DISTINCT governor) FROM grants \
    WHERE grants.counter = budgets.counter AND is_lease AND ends > $2) FROM budgets WHERE counter = ANY($1)";
const RECOUNT: &str = "UPDATE budgets SET taken = coalesce((SELECT least(sum(counted), 9223372036854775807) FROM grants WHERE grants.counter = budgets.counter), 0) \
    WHERE counter = ANY($1)";
