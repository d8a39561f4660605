//! The organisation's log: waiting leaves get their places, and a checkpoint is published once all witnesses have
//! cosigned it.
//!
//! Every hub tries once a second, and at once for an order. The row of the head is locked, so one hub appends at a time.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{GenericClient, Transaction};
use rulekeep::checkpoint::Checkpoint;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use tokio_postgres::Row;

use super::{Hub, HubError, files, store};
use crate::cosignature::cosigned_by;
use crate::log::{self, Head, Leaf, LogError, RollEntry, TileId};
use crate::membership::number;
use crate::witness;

/// Enqueues leaves, each with its subject and a number that finds it again.
pub(super) async fn enqueue(client: &impl GenericClient, leaves: &[(&Leaf, &str, i64)]) -> Result<(), HubError> {
    if leaves.is_empty() {
        return Ok(());
    }
    let (mut kinds, mut subjects, mut sizes, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (leaf, subject, size) in leaves {
        kinds.push(leaf.kind());
        subjects.push(*subject);
        sizes.push(*size);
        bodies.push(String::from_utf8(leaf.to_bytes()?).map_err(|error| HubError::Log(error.to_string()))?);
    }
    client.execute(ENQUEUE, &[&kinds, &subjects, &sizes, &bodies]).await?;
    Ok(())
}

impl Hub {
    /// Extends the log and publishes it until the program ends.
    pub(super) async fn sequence(self) {
        loop {
            // An order or a new epoch does not wait for the second to end.
            let _ = tokio::time::timeout(EVERY, self.inner.leaves.notified()).await;
            self.step().await;
        }
    }

    /// Extends the log and publishes it.
    pub(super) async fn step(&self) {
        let store = &self.inner.store;
        let done = store.in_time(store::LONG_TIMEOUT, self.extend()).await;
        let done = store.in_time(store::LONG_TIMEOUT, self.publish()).await.and(done);
        let problem = done.err().map(|error| error.to_string());
        *self.inner.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Appends the waiting leaves, and once a day a list of all members.
    async fn extend(&self) -> Result<(), HubError> {
        let mut client = self.inner.store.client().await?;
        self.inner.clock.exchange(&client).await?;
        let transaction = client.transaction().await?;
        let new = "INSERT INTO head VALUES (true, 0, $1, 0, '') ON CONFLICT DO NOTHING";
        transaction.execute(new, &[&Head::EMPTY.root.as_bytes().as_slice()]).await?;
        let epoch = self.look_at_epoch(&transaction, &[]).await?;
        let size = newest(&transaction, "").await?.size;
        if self.inner.largest.fetch_max(size, Ordering::Relaxed) > size {
            // It went back under this hub, with the server that it is on.
            let (identity, now) = store::identity(&transaction).await?;
            self.begin_epoch(&transaction, &identity, now).await?;
            self.inner.largest.store(size, Ordering::Relaxed);
        } else if epoch.unverified.is_none() {
            // A database that has lost leaves must get them back before others take their places.
            self.roll(&transaction, epoch.now).await?;
            append_waiting(&transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Lists all members once a day, so that a silent one is seen to be silent.
    async fn roll(&self, transaction: &Transaction<'_>, now: i64) -> Result<(), HubError> {
        // Locked, so that one hub does it.
        newest(transaction, " FOR UPDATE").await?;
        let day = now.div_euclid(DAY);
        if transaction.query_opt(ROLLED, &[&day]).await?.is_some() {
            return Ok(());
        }
        let orders = self.orders();
        let rows = transaction.query("SELECT id, size, note, seen_at FROM governors ORDER BY id", &[]).await?;
        let entry = |row: &Row| RollEntry {
            id: row.get(0),
            size: row.get::<_, i64>(1).unsigned_abs(),
            root: Checkpoint::read_unverified(row.get(2)).map_or(Digest::ZERO, |checkpoint| checkpoint.root()),
            seen: Timestamp::from_millis(row.get(3)),
        };
        let members: Vec<_> = rows.iter().map(entry).filter(|entry| !orders.chain.is_retired(&entry.id)).collect();
        let leaves = Leaf::rolls(Timestamp::from_millis(now), &members);
        enqueue(transaction, &leaves.iter().map(|leaf| (leaf, "", day)).collect::<Vec<_>>()).await
    }

    /// Signs the newest head, has it cosigned by the witnesses, and publishes it. Finds out whether the database has
    /// lost leaves, and brings them back.
    async fn publish(&self) -> Result<(), HubError> {
        self.check_key()?;
        let mut client = self.inner.store.client().await?;
        // One that begins a new epoch locks a table.
        let transaction = client.transaction().await?;
        let epoch = self.look_at_epoch(&transaction, &[]).await?;
        transaction.commit().await?;
        let head = newest(&client, "").await?;
        let row = client.query_one("SELECT published_size, published FROM head", &[]).await?;
        let (published_size, published): (i64, String) = (row.get(0), row.get(1));
        let key = &self.inner.settings.key;
        let files = self.inner.settings.publish.as_deref();
        let in_files = files.map_or(head.size, |folder| files::published_size(folder, &key.verifier()));
        let is_published = published_size == number(head.size) && !published.is_empty() && in_files <= head.size;
        if is_published && epoch.unverified.is_none() {
            // Another hub published it.
            if let Some(folder) = files.filter(|_| in_files < head.size) {
                files::write_all(&client, folder, &head, in_files, &self.orders().signed, &published).await?;
            }
            return Ok(());
        }
        let signed = Checkpoint::new(key.name(), head.size, head.root).and_then(|checkpoint| checkpoint.sign(key));
        let mut note = signed.map_err(|error| HubError::Log(error.to_string()))?;
        let mut largest = files.map_or(0, |_| in_files);
        for (_, url) in &self.inner.settings.witnesses {
            // The size that the witness keeps, presumably.
            let mut kept = published_size.unsigned_abs();
            while kept <= head.size {
                let path = with_tiles(&client, |tiles| log::consistency(kept, &head, tiles)).await?;
                match ask(url, kept, &path, &note).await? {
                    Told::Signed(line) => {
                        note.push_str(&line);
                        break;
                    }
                    Told::Keeps(size) if size == kept => {
                        return Err(HubError::Log(format!("the witness has another log of {size} leaves")));
                    }
                    Told::Keeps(size) => kept = size,
                }
            }
            largest = largest.max(kept);
        }
        if head.size < largest {
            let folder = files.ok_or_else(|| {
                HubError::Log(format!(
                    "the database has lost leaves before {largest}: give the hub the published files"
                ))
            })?;
            return files::restore(self, folder, largest).await;
        }
        let witnesses: Vec<_> = self.inner.settings.witnesses.iter().map(|(witness, _)| witness.clone()).collect();
        cosigned_by(&note, &witnesses, witnesses.len()).map_err(|error| HubError::Log(error.to_string()))?;
        if let Some(folder) = files {
            files::write_all(&client, folder, &head, in_files, &self.orders().signed, &note).await?;
        }
        let update = "UPDATE head SET published_size = $1, published = $2 WHERE published_size <= $1";
        client.execute(update, &[&number(head.size), &note]).await?;
        self.verify_epoch(&client, largest).await?;
        if !self.inner.has_compared.swap(true, Ordering::Relaxed) {
            self.inner.leaves.notify_one();
        }
        Ok(())
    }

    /// The published checkpoint and its size.
    pub(super) async fn published(&self, client: &impl GenericClient) -> Result<(u64, String), HubError> {
        let row = client.query_opt("SELECT published_size, published FROM head WHERE published <> ''", &[]).await?;
        let row = row.ok_or_else(|| HubError::NotFound("no checkpoint is published yet".to_owned()))?;
        Ok((row.get::<_, i64>(0).unsigned_abs(), row.get(1)))
    }

    /// The inclusion path of a leaf in the log of `size` leaves.
    pub(super) async fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Digest>, HubError> {
        let client = self.inner.store.client().await?;
        let newest = newest(&client, "").await?;
        let root = with_tiles(&client, |tiles| log::root(size, &newest, tiles)).await?;
        with_tiles(&client, |tiles| log::inclusion(index, &Head { size, root }, tiles)).await
    }
}

/// Appends the waiting leaves to the log.
pub(super) async fn append_waiting(transaction: &Transaction<'_>) -> Result<(), HubError> {
    let head = newest(transaction, " FOR UPDATE").await?;
    let mut rows = transaction.query(TAKE, &[]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|row| row.get::<_, i64>(0));
    let kinds: Vec<String> = rows.iter().map(|row| row.get(1)).collect();
    let subjects: Vec<String> = rows.iter().map(|row| row.get(2)).collect();
    let sizes: Vec<i64> = rows.iter().map(|row| row.get(3)).collect();
    let bodies: Vec<String> = rows.iter().map(|row| row.get(4)).collect();
    let places: Vec<i64> = (number(head.size)..).take(rows.len()).collect();
    transaction.execute(APPEND, &[&places, &kinds, &subjects, &sizes, &bodies]).await?;
    let leaves: Vec<Vec<u8>> = bodies.into_iter().map(String::into_bytes).collect();
    let appended = with_tiles(transaction, |tiles| log::append(&head, tiles, &leaves)).await?;
    let levels: Vec<i16> = appended.tiles.iter().map(|(tile, _)| i16::from(tile.level)).collect();
    let indexes: Vec<i64> = appended.tiles.iter().map(|(tile, _)| number(tile.index)).collect();
    let hashes: Vec<&[u8]> = appended.tiles.iter().map(|(_, hashes)| hashes.as_slice()).collect();
    transaction.execute(STORE_TILES, &[&levels, &indexes, &hashes]).await?;
    let root = appended.head.root.as_bytes().as_slice();
    transaction.execute("UPDATE head SET size = $1, root = $2", &[&number(appended.head.size), &root]).await?;
    Ok(())
}

/// The newest head of the log.
pub(super) async fn newest(client: &impl GenericClient, lock: &str) -> Result<Head, HubError> {
    let row = client.query_one(&format!("SELECT size, root FROM head{lock}"), &[]).await?;
    let (size, root): (i64, Vec<u8>) = (row.get(0), row.get(1));
    let root = root.try_into().map_err(|_| HubError::Log("the stored root is not a hash".to_owned()))?;
    Ok(Head { size: size.unsigned_abs(), root: Digest::new(root) })
}

/// Runs a computation over the log, loading the tiles that it asks for.
async fn with_tiles<T>(
    client: &impl GenericClient,
    compute: impl Fn(&HashMap<TileId, Vec<u8>>) -> Result<T, LogError>,
) -> Result<T, HubError> {
    let mut tiles = HashMap::new();
    loop {
        let missing = match compute(&tiles) {
            Err(LogError::Missing(missing)) => missing,
            done => return Ok(done?),
        };
        let levels: Vec<i16> = missing.iter().map(|tile| i16::from(tile.level)).collect();
        let indexes: Vec<i64> = missing.iter().map(|tile| number(tile.index)).collect();
        let rows = client.query(TILES, &[&levels, &indexes]).await?;
        let known = tiles.len();
        for row in rows {
            let level = u8::try_from(row.get::<_, i16>(0)).unwrap_or(u8::MAX);
            tiles.insert(TileId { level, index: row.get::<_, i64>(1).unsigned_abs() }, row.get(2));
        }
        if tiles.len() == known {
            return Err(LogError::Missing(missing).into());
        }
    }
}

/// A witness's answer.
enum Told {
    /// The line of its cosignature.
    Signed(String),
    /// The size that it keeps, which is another than the one asked from.
    Keeps(u64),
}

/// Asks a witness to cosign a checkpoint.
async fn ask(url: &str, old: u64, path: &[Digest], note: &str) -> Result<Told, HubError> {
    let (url, body) = (url.to_owned(), witness::request(old, path, note));
    let asked = tokio::task::spawn_blocking(move || {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(WITNESS_TIMEOUT));
        let config = if url.starts_with("https:") { config } else { config.proxy(None) };
        let mut answer = ureq::Agent::from(config.build()).post(&url).send(&body)?;
        Ok::<_, ureq::Error>((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    });
    let failed = |why: &dyn std::fmt::Display| HubError::Log(format!("the witness: {why}"));
    match asked.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))? {
        (200, lines) => Ok(Told::Signed(lines)),
        (409, size) => size.trim().parse().map(Told::Keeps).map_err(|error| failed(&error)),
        (status, why) => Err(failed(&format!("{status} {why}"))),
    }
}

const EVERY: Duration = Duration::from_secs(1);
const WITNESS_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const DAY: i64 = 86_400_000;
const ENQUEUE: &str = "INSERT INTO pending (kind, subject, size, body) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])";
const TAKE: &str = "DELETE FROM pending WHERE id IN (SELECT id FROM pending ORDER BY id LIMIT 10000) \
    RETURNING id, kind, subject, size, body";
const APPEND: &str = "INSERT INTO leaves \
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[])";
const STORE_TILES: &str = "INSERT INTO tiles SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bytea[]) \
    ON CONFLICT (level, n) DO UPDATE SET hashes = excluded.hashes";
const TILES: &str = "SELECT level, n, hashes FROM tiles \
    JOIN unnest($1::smallint[], $2::bigint[]) AS wanted(l, i) ON level = l AND n = i";
const ROLLED: &str = "SELECT 1 FROM leaves WHERE kind = 'roll' AND subject = '' AND size = $1 \
    UNION ALL SELECT 1 FROM pending WHERE kind = 'roll' AND size = $1 LIMIT 1";
