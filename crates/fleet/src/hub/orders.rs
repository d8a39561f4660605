//! The chain of orders, and how far an order is carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;

use deadpool_postgres::GenericClient;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;

use super::{Hub, HubError, Orders, PAUSE, files, sequencer, store};
use crate::log::Leaf;
use crate::membership::number;
use crate::order::{Command, Mode, SignedOrder};
use crate::wire::{MAX_ORDERS, MAX_ORDERS_BYTES, Standing};

impl Orders {
    /// The digest of an order; zero for none yet.
    pub(super) fn digest_of(&self, seq: u64) -> Option<Digest> {
        match seq {
            0 => Some(Digest::ZERO),
            _ if seq == self.chain.seq() => Some(self.chain.head()),
            _ => self.signed.get(usize::try_from(seq).ok()? - 1).map(|order| order.digest()),
        }
    }

    /// As many of the orders after a number as one answer has room for; at least one, if there is one.
    pub(super) fn after(&self, seq: usize) -> Vec<SignedOrder> {
        let mut room = MAX_ORDERS_BYTES;
        let orders = self.signed.iter().skip(seq).take(MAX_ORDERS).enumerate();
        let fitting = orders.take_while(|(place, order)| {
            let size = most_bytes(order);
            let is_fitting = *place == 0 || size <= room;
            room = room.saturating_sub(size);
            is_fitting
        });
        fitting.map(|(_, order)| SignedOrder::clone(order)).collect()
    }
}

impl Hub {
    /// Verifies a new order, stores it with its leaf, and wakes the members that wait.
    pub(super) async fn give(&self, signed: &SignedOrder) -> Result<Standing, HubError> {
        let mut client = self.inner.store.client().await?;
        self.read_orders(&client).await?;
        let mut chain = self.orders().chain.clone();
        let order = chain.add(signed)?;
        if let Command::Organisation(organisation) = &order.command
            && organisation.log != self.inner.settings.key.verifier().to_string()
        {
            return Err(HubError::Invalid("the order names another key of the log than this hub's".to_owned()));
        }
        order.check_document()?;
        // Signatures of others are not verified by anybody.
        let mut signed = signed.clone();
        let founder = matches!(order.command, Command::Organisation(_)) && order.seq == 1;
        let before = self.orders();
        let operators = if founder { chain.operators() } else { before.chain.operators() };
        signed.signatures.retain(|name, _| operators.contains_key(name));
        let signed = &signed;
        let seq = number(order.seq);
        let transaction = client.transaction().await?;
        let epoch = self.look_at_epoch(&transaction, &[]).await?;
        if let Some(why) = epoch.unverified {
            return Err(HubError::Log(why.to_owned()));
        }
        let signatures = serde_json::to_string(&signed.signatures).unwrap_or_default();
        let stored = transaction
            .execute(
                "INSERT INTO orders VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                &[&seq, &signed.body, &signatures, &epoch.now],
            )
            .await?;
        if stored == 0 {
            return Err(HubError::Invalid(format!("order {seq} was given by somebody else meanwhile: sign it anew")));
        }
        let (body, digest) = (Some(signed.body.clone()), signed.digest());
        let mut leaf = Leaf::Order { seq: order.seq, digest, body };
        if leaf.to_bytes().is_err() {
            // Too long for a leaf; the digest names it.
            leaf = Leaf::Order { seq: order.seq, digest, body: None };
        }
        sequencer::enqueue(&transaction, &[(&leaf, "", seq)]).await?;
        let by = signed.signatures.keys().cloned().collect::<Vec<_>>().join(", ");
        if order.command == Command::Reopen {
            transaction.execute("DELETE FROM fence", &[]).await?;
        }
        let of_member = match &order.command {
            Command::Retire { governor } => Some((governor, Leaf::Retire { governor: governor.clone(), by })),
            Command::Readmit { governor } => {
                transaction.execute(files::READMIT, &[governor]).await?;
                Some((governor, Leaf::Readmit { governor: governor.clone(), by }))
            }
            _ => None,
        };
        if let Some((governor, leaf)) = of_member {
            sequencer::enqueue(&transaction, &[(&leaf, governor, seq)]).await?;
            self.write_off(&transaction, governor, &epoch.fence).await?;
        }
        transaction.commit().await?;
        self.inner.leaves.notify_one();
        self.read_orders(&client).await?;
        self.standing(&client, order.seq).await
    }

    /// Reads the orders that this hub does not know yet.
    pub(super) async fn read_orders(&self, client: &impl GenericClient) -> Result<(), HubError> {
        let known = self.orders();
        let rows = client
            .query("SELECT body, signatures FROM orders WHERE seq > $1 ORDER BY seq", &[&number(known.chain.seq())])
            .await?;
        if rows.is_empty() {
            return self.bring_back(client, &known).await;
        }
        let (mut chain, mut signed) = (known.chain.clone(), known.signed.clone());
        let mut limits_by_order = known.limits_by_order.clone();
        for row in rows {
            let signatures = serde_json::from_str(row.get(1)).unwrap_or_default();
            let order = SignedOrder { body: row.get(0), signatures };
            let added = chain.add(&order)?;
            if let Command::Policies(_) = &added.command {
                limits_by_order.insert(added.seq, Arc::default());
            }
            signed.push(Arc::new(order));
        }
        let mut orders = self.inner.orders.write().unwrap_or_else(PoisonError::into_inner);
        // Another task may have read further meanwhile.
        if chain.seq() > orders.chain.seq() {
            let seq = chain.seq();
            *orders = Arc::new(Orders { chain, signed, limits_by_order });
            drop(orders);
            self.inner.newest.send_if_modified(|newest| std::mem::replace(newest, seq) != seq);
        }
        Ok(())
    }

    /// Stores orders again that a restored database has forgotten. They are signed, so that no harm can come of it.
    async fn bring_back(&self, client: &impl GenericClient, known: &Orders) -> Result<(), HubError> {
        let stored: i64 = client.query_one("SELECT coalesce(max(seq), 0) FROM orders", &[]).await?.get(0);
        let forgotten = usize::try_from(stored).unwrap_or(usize::MAX);
        for (seq, order) in (stored + 1..).zip(known.signed.iter().skip(forgotten)) {
            let signatures = serde_json::to_string(&order.signatures).unwrap_or_default();
            client.execute(files::ADD_ORDER, &[&seq, &order.body, &signatures]).await?;
        }
        Ok(())
    }

    /// Looks for orders that other hubs have stored, and moves rollouts on.
    pub(super) async fn watch_orders(self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            // The next look tries again.
            let _ = self.inner.store.in_time(store::TIMEOUT, self.look()).await;
        }
    }

    async fn look(&self) -> Result<(), HubError> {
        let client = self.inner.store.client().await?;
        let read = self.read_orders(&client).await;
        self.move_rollouts(&client).await.and(read)
    }

    /// Moves rollouts to their next stage once it is due and no member has refused them.
    async fn move_rollouts(&self, client: &impl GenericClient) -> Result<(), HubError> {
        let orders = self.orders();
        let Some((seq, rollout)) = orders.chain.rollouts().iter().next_back() else { return Ok(()) };
        if rollout.order.plan.is_empty() {
            return Ok(());
        }
        let (_, now) = store::identity(client).await?;
        let seq = number(*seq);
        client
            .execute(
                "INSERT INTO rollouts VALUES ($1, 0, $2, '') ON CONFLICT DO NOTHING",
                &[&seq, &rollout.at.as_millis()],
            )
            .await?;
        let row = client.query_one("SELECT stage, since, paused FROM rollouts WHERE order_seq = $1", &[&seq]).await?;
        let (stage, since, paused): (i32, i64, String) = (row.get(0), row.get(1), row.get(2));
        let at = usize::try_from(stage).unwrap_or(0).max(rollout.skipped_to);
        let Some(soaking) = rollout.order.plan.get(at) else { return Ok(()) };
        let refused = "SELECT coalesce(min(id), '') FROM governors WHERE refused ? $1 AND id <> ALL($2)";
        let retired: Vec<&String> = orders.chain.retired().iter().collect();
        let refused: String = client.query_one(refused, &[&seq.to_string(), &retired]).await?.get(0);
        if !refused.is_empty() && soaking.mode == Mode::Enforce && paused.is_empty() {
            client
                .execute(
                    "UPDATE rollouts SET paused = $2 WHERE order_seq = $1",
                    &[&seq, &format!("{refused} refused it")],
                )
                .await?;
        }
        let ends = since.saturating_add(i64::try_from(soaking.soak_seconds).unwrap_or(i64::MAX).saturating_mul(1000));
        if refused.is_empty() && paused.is_empty() && now >= ends && at + 1 < rollout.order.plan.len() {
            let next = i32::try_from(at + 1).unwrap_or(stage);
            client
                .execute(
                    "UPDATE rollouts SET stage = $2, since = $3 WHERE order_seq = $1 AND stage = $4",
                    &[&seq, &next, &now, &stage],
                )
                .await?;
        }
        Ok(())
    }

    /// The stages that rollouts have reached.
    pub(super) async fn stages(&self, client: &impl GenericClient) -> Result<BTreeMap<u64, usize>, HubError> {
        let rows = client.query("SELECT order_seq, stage FROM rollouts", &[]).await?;
        let stage = |row: &tokio_postgres::Row| (row.get::<_, i64>(0).unsigned_abs(), row.get::<_, i32>(1));
        Ok(rows.iter().map(stage).map(|(seq, stage)| (seq, usize::try_from(stage).unwrap_or(0))).collect())
    }

    /// Counts how many members have carried out an order. Permits count on the clocks of the hubs that granted them.
    pub(super) async fn standing(&self, client: &impl GenericClient, seq: u64) -> Result<Standing, HubError> {
        let seq_number = number(seq);
        let row = client.query_opt(GIVEN, &[&seq_number]).await?;
        let row = row.ok_or_else(|| HubError::NotFound(format!("there is no order {seq}")))?;
        let (at, leaf, now): (i64, Option<i64>, i64) = (row.get(0), row.get(1), row.get(2));
        self.inner.clock.read(client).await?;
        let (orders, permit_left) = (self.orders(), self.permit_left());
        let [mut acknowledged, mut ended, mut open] = [0; 3];
        let (mut refused, mut bound) = (Vec::new(), at);
        for row in client.query(MEMBERS, &[&seq_number, &seq.to_string()]).await? {
            if row.get(1) && !orders.chain.is_retired(row.get(0)) {
                refused.push(row.get(0));
            }
            let left = permit_left(row.get(3), row.get(4));
            match (row.get(2), left > 0) {
                (true, _) => acknowledged += 1,
                (false, true) => open += 1,
                (false, false) => ended += 1,
            }
            if !row.get::<_, bool>(2) {
                bound = bound.max(now.saturating_add(left));
            }
        }
        let (leaf, bound) = (leaf.map(i64::unsigned_abs), Timestamp::from_millis(bound));
        Ok(Standing { seq, leaf, acknowledged, ended, open, refused, bound })
    }
}

/// An upper bound of the length of an order's JSON. Its body is JSON itself, so a byte is escaped by one at most.
fn most_bytes(order: &SignedOrder) -> usize {
    let signatures = order.signatures.iter().map(|(name, signature)| 2 * name.len() + signature.len() + 8);
    2 * order.body.len() + signatures.sum::<usize>() + 64
}

const GIVEN: &str = "SELECT at, (SELECT idx FROM leaves, head WHERE kind = 'order' AND subject = '' AND leaves.size = $1 \
    AND idx < published_size), (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM orders WHERE seq = $1";
/// The members that have had a permit, with the end of the last one without the order.
const MEMBERS: &str = "SELECT id, refused ? $2, order_seq >= $1, \
    CASE WHEN permit_order >= $1 THEN former_hub ELSE permit_hub END, \
    CASE WHEN permit_order >= $1 THEN former_until ELSE permit_until END \
    FROM governors WHERE permit_until > 0 OR order_seq >= $1 ORDER BY id";
