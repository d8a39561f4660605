//! The organisation's log as files: published beside the database, and what brings a restored database up to date.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use deadpool_postgres::GenericClient;
use rulekeep::checkpoint::{Checkpoint, VerifierKey};

use super::sequencer::{DAY, append_waiting, newest};
use super::{Hub, HubError, store};
use crate::log::{Head, Leaf, Resource, TileId, entries_bundle, leaves_of};
use crate::membership::number;
use crate::order::SignedOrder;

/// The size of the published checkpoint; 0 if there is none.
pub(super) fn published_size(folder: &Path, key: &VerifierKey) -> u64 {
    let note = fs::read_to_string(folder.join(CHECKPOINT)).unwrap_or_default();
    Checkpoint::open(&note, key).map_or(0, |checkpoint| checkpoint.size())
}

/// Writes what is new since `from` leaves: tiles and orders first, the checkpoint last.
pub(super) async fn write_all(
    client: &impl GenericClient,
    folder: &Path,
    head: &Head,
    from: u64,
    orders: &[Arc<SignedOrder>],
    note: &str,
) -> Result<(), HubError> {
    let grown = "SELECT level, n, hashes FROM tiles WHERE n >= ($1::bigint >> (8 * (level + 1)))";
    for row in client.query(grown, &[&number(from)]).await? {
        let level = u8::try_from(row.get::<_, i16>(0)).unwrap_or(u8::MAX);
        let (id, hashes): (_, Vec<u8>) = (TileId { level, index: row.get::<_, i64>(1).unsigned_abs() }, row.get(2));
        let width = u32::try_from(hashes.len() / 32).unwrap_or(0);
        write(&folder.join(Resource::Hashes(id, width).to_string()), &hashes)?;
    }
    for index in from / 256..head.size.div_ceil(256) {
        let (first, end) = (number(index * 256), number(head.size.min(index * 256 + 256)));
        let leaves = "SELECT body FROM leaves WHERE idx >= $1 AND idx < $2 ORDER BY idx";
        let leaves: Vec<String> = client.query(leaves, &[&first, &end]).await?.iter().map(|row| row.get(0)).collect();
        let width = u32::try_from(leaves.len()).unwrap_or(0);
        write(&folder.join(Resource::Entries(index, width).to_string()), &entries_bundle(&leaves)?)?;
    }
    // Written in order, so that none is missing before one that is there.
    let files = orders.iter().enumerate().map(|(index, order)| (order_file(folder, index as u64 + 1), order));
    let missing: Vec<_> = files.rev().take_while(|(file, _)| !file.exists()).collect();
    for (file, order) in missing.into_iter().rev() {
        write(&file, &serde_json::to_vec(&**order).unwrap_or_default())?;
    }
    write(&folder.join(CHECKPOINT), note.as_bytes())
}

/// Brings back what a restored database has forgotten: orders, members, anchors, and the leaves themselves. `size` is
/// the number of leaves that a witness or the files are known to have.
pub(super) async fn restore(hub: &Hub, folder: &Path, size: u64) -> Result<(), HubError> {
    let missing = |why: String| HubError::Log(format!("the database has lost leaves before {size}: {why}"));
    let mut client = hub.inner.store.client().await?;
    let transaction = client.transaction().await?;
    let head = newest(&transaction, " FOR UPDATE").await?;
    if head.size >= size {
        // Another hub has extended it meanwhile.
        return Ok(());
    }
    let note = fs::read_to_string(folder.join(CHECKPOINT)).map_err(|error| missing(error.to_string()))?;
    let key = hub.inner.settings.key.verifier();
    let goal = Checkpoint::open(&note, &key).map_err(|error| missing(error.to_string()))?;
    if goal.size() < size {
        return Err(missing(format!("the published files have {}", goal.size())));
    }
    // Leaves that were waiting in the copy are in the files, at their own places.
    transaction.execute("DELETE FROM pending", &[]).await?;
    let known: i64 = transaction.query_one("SELECT coalesce(max(seq), 0) FROM orders", &[]).await?.get(0);
    for seq in known.unsigned_abs() + 1.. {
        let Ok(file) = fs::read(order_file(folder, seq)) else { break };
        let order: SignedOrder = serde_json::from_slice(&file).map_err(|error| missing(error.to_string()))?;
        let signatures = serde_json::to_string(&order.signatures).unwrap_or_default();
        transaction.execute(ADD_ORDER, &[&number(seq), &order.body, &signatures]).await?;
    }
    for text in published_leaves(folder, head.size, goal.size()).map_err(missing)? {
        let leaf = Leaf::parse(&text).map_err(|error| missing(error.to_string()))?;
        let (subject, number) = replay(&transaction, &leaf).await?;
        let insert = "INSERT INTO pending (kind, subject, size, body) VALUES ($1, $2, $3, $4)";
        transaction.execute(insert, &[&leaf.kind(), &subject, &number, &text]).await?;
    }
    append_waiting(&transaction).await?;
    if newest(&transaction, "").await?.root != goal.root() {
        return Err(missing("the published files contradict the database".to_owned()));
    }
    // Grants were lost with the leaves. Who is retired is known from the orders.
    hub.read_orders(&transaction).await?;
    let (identity, now) = store::identity(&transaction).await?;
    hub.begin_epoch(&transaction, &identity, now).await?;
    Ok(transaction.commit().await?)
}

/// The published leaves from one index to another.
fn published_leaves(folder: &Path, from: u64, until: u64) -> Result<Vec<String>, String> {
    let mut leaves = Vec::new();
    for index in from / 256..until.div_ceil(256) {
        let width = u32::try_from((until - index * 256).min(256)).unwrap_or(256);
        let path = Resource::Entries(index, width).to_string();
        let bundle = fs::read(folder.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let texts = leaves_of(&bundle).ok_or_else(|| format!("{path} is not a bundle of entries"))?;
        leaves.extend(texts.into_iter().skip(usize::try_from(from.saturating_sub(index * 256)).unwrap_or(0)));
    }
    Ok(leaves)
}

/// Redoes in a restored database what a leaf tells. Returns its subject and the number that finds it again.
async fn replay(client: &impl GenericClient, leaf: &Leaf) -> Result<(String, i64), HubError> {
    let (governor, number) = match leaf {
        Leaf::Enrol { governor, key, groups, .. } => {
            client.execute(ENROL, &[governor, key, groups]).await?;
            (governor, 0)
        }
        Leaf::Anchor { governor, note, at } => {
            let size = Checkpoint::read_unverified(note).map_or(0, |checkpoint| number(checkpoint.size()));
            client.execute(ANCHOR, &[governor, &size, note, &at.as_millis()]).await?;
            (governor, size)
        }
        Leaf::Fork { governor, why, .. } => {
            client.execute("UPDATE governors SET trouble = $2 WHERE id = $1", &[governor, why]).await?;
            (governor, 0)
        }
        Leaf::Readmit { governor, .. } => {
            client.execute(READMIT, &[governor]).await?;
            (governor, 0)
        }
        Leaf::Order { seq, .. } => return Ok((String::new(), number(*seq))),
        Leaf::Roll { at, .. } => return Ok((String::new(), at.as_millis().div_euclid(DAY))),
        _ => return Ok((String::new(), 0)),
    };
    Ok((governor.clone(), number))
}

/// Replaces a file as a whole.
fn write(path: &Path, content: &[u8]) -> Result<(), HubError> {
    let failed = |error: std::io::Error| HubError::Log(format!("{}: {error}", path.display()));
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    let temporary = path.with_extension("new");
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // A part of a file is of no use.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

fn order_file(folder: &Path, seq: u64) -> std::path::PathBuf {
    folder.join(format!("orders/{seq}.json"))
}

const CHECKPOINT: &str = "checkpoint";
/// Ends a governor's trouble; what it held under an earlier life stays spent.
pub(super) const READMIT: &str = "UPDATE governors SET trouble = '', size = 0, copied = 0, note = '', head_size = 0, \
    head_root = '', boot = '', boots_before = '[]', nonce = '', nonce_before = '', salt = gen_random_uuid()::text \
    WHERE id = $1 AND trouble <> ''";
/// A governor that anchored after the copy was made has run since.
const ANCHOR: &str =
    "UPDATE governors SET size = $2, note = $3, anchored_at = $4, has_left = false WHERE id = $1 AND size <= $2";
/// Nobody knows what it holds of shared limits.
const ENROL: &str = "WITH known AS (INSERT INTO governors (id, key, groups) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING) \
    INSERT INTO fence VALUES ($1, NULL) ON CONFLICT DO NOTHING";
pub(super) const ADD_ORDER: &str = "INSERT INTO orders \
    SELECT $1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint ON CONFLICT DO NOTHING";
