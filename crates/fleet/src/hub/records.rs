//! Copied records: taking them in, queries over them, and bundles for strangers.

use std::collections::{BTreeMap, BTreeSet};

use rulekeep::agent::AgentId;
use rulekeep::checkpoint::{Checkpoint, InclusionProof};
use rulekeep::proof::{Digest, ProofId};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, RiskLevel};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;

use super::{Hub, HubError};
use crate::bundle::{Bundle, IncludedLeaf};
use crate::log::{self, Head, Leaf, read_path};
use crate::membership::number;
use crate::wire::{Copied, Copy, Records};

/// A query over the copied records of all members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    /// The agent.
    pub agent: Option<String>,
    /// The governor.
    pub governor: Option<String>,
    /// The decision: `ALLOW`, `DENY`, `ESCALATE` or `DEGRADE`.
    pub decision: Option<String>,
    /// The risk level.
    pub risk: Option<String>,
    /// The earliest time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// The latest time, in milliseconds since 1970.
    pub until: Option<i64>,
    /// The most records to return: at most 1,000, by default 100.
    pub limit: Option<u32>,
}

/// A copied record as a query returns it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The governor that decided.
    pub governor: String,
    /// The record.
    pub record: Box<RawValue>,
}

impl Hub {
    /// Takes a batch of records in, after checking each against the anchored checkpoint.
    pub(super) async fn copy(&self, batch: &Records) -> Result<Copied, HubError> {
        self.check_membership(&batch.governor)?;
        let key = self.key_of(&batch.governor).await?;
        let client = self.inner.store.client().await?;
        let statement = client.prepare_cached("SELECT note FROM governors WHERE id = $1 AND trouble = ''").await?;
        let anchored = client
            .query_one(&statement, &[&batch.governor])
            .await
            .map_err(|_| HubError::Forbidden("this governor must be readmitted first".to_owned()))?;
        // Nobody else waits for the connection while the records are verified.
        drop(client);
        let checkpoint =
            Checkpoint::open(anchored.get(0), &key).map_err(|error| HubError::Invalid(error.to_string()))?;
        if checkpoint.size() != batch.size || batch.until > batch.size {
            let (size, found) = (checkpoint.size(), batch.size);
            return Err(HubError::Invalid(format!("the newest anchored checkpoint has {size} entries, not {found}")));
        }
        let (head, mut rows) = (Head::from(&checkpoint), Rows::default());
        for copy in &batch.records {
            rows.push(&Columns::verified(copy, &head)?, copy);
        }
        let (until, size) = (number(batch.until), number(batch.size));
        let client = self.inner.store.client().await?;
        let copied: i64 = client
            .query_one(
                &client.prepare_cached(INSERT).await?,
                &[
                    &batch.governor,
                    &size,
                    &rows.seqs,
                    &rows.ids,
                    &rows.hashes,
                    &rows.times,
                    &rows.agents,
                    &rows.decisions,
                    &rows.risks,
                    &rows.bodies,
                    &rows.paths,
                    &until,
                ],
            )
            .await?
            .get(0);
        Ok(Copied { copied: copied.unsigned_abs() })
    }

    /// Finds copied records, newest first.
    pub(super) async fn find(&self, wanted: &Wanted) -> Result<Vec<Found>, HubError> {
        let limit = i64::from(wanted.limit.unwrap_or(100).clamp(1, 1000));
        let values: [&(dyn ToSql + Sync); 7] =
            [&wanted.agent, &wanted.governor, &wanted.decision, &wanted.risk, &wanted.since, &wanted.until, &limit];
        let client = self.inner.store.reader().await?;
        let rows = client.query(FIND, &values).await?;
        let found = |row: &tokio_postgres::Row| {
            let record = RawValue::from_string(row.get(1)).map_err(|error| HubError::Database(error.to_string()))?;
            Ok(Found { governor: row.get(0), record })
        };
        rows.iter().map(found).collect()
    }

    /// Makes the bundle by which a stranger verifies a copied record offline. Where several governors have copied a
    /// record with this id, the caller must name one of them.
    pub(super) async fn bundle(&self, record_id: &str, governor: Option<&str>) -> Result<Bundle, HubError> {
        let client = self.inner.store.reader().await?;
        let rows = client.query(COPIED, &[&record_id, &governor]).await?;
        let owners: BTreeSet<&str> = rows.iter().map(|row| row.get(0)).collect();
        if owners.len() > 1 {
            let owners = Vec::from_iter(owners).join(", ");
            let why = format!("several governors have copied a record {record_id}: name one of {owners}");
            return Err(HubError::Invalid(why));
        }
        let row = rows.first().ok_or_else(|| HubError::NotFound(format!("no record {record_id} is copied")))?;
        let (governor, size, path, seq): (String, i64, String, i64) = (row.get(0), row.get(1), row.get(3), row.get(4));
        let key: String = row.get(5);
        let (published_size, checkpoint) = self.published(&client).await?;
        let leaf = "SELECT idx, body FROM leaves WHERE subject = $1 AND kind = $2 AND size = $3 AND idx < $4 ORDER BY idx DESC";
        let proven: Vec<Digest> = read_path(path.lines()).unwrap_or_default();
        let hash: Digest =
            row.get::<_, String>(6).parse().map_err(|_| HubError::Database("a hash cannot be read".to_owned()))?;
        // A governor that was readmitted with another log may have anchors of one size for both.
        let is_of_record = |leaf: &str| match Leaf::parse(leaf) {
            Ok(Leaf::Anchor { note, .. }) => Checkpoint::read_unverified(&note).is_ok_and(|checkpoint| {
                let head = Head::from(&checkpoint);
                log::verify_inclusion(hash.as_bytes(), seq.unsigned_abs(), &head, &proven).is_ok()
            }),
            Ok(Leaf::Enrol { key: enrolled, .. }) => enrolled == key,
            _ => false,
        };
        let mut included = Vec::new();
        for (kind, size) in [("anchor", size), ("enrol", 0)] {
            let leaves = client.query(leaf, &[&governor, &kind, &size, &number(published_size)]).await?;
            let leaf = leaves.into_iter().find(|leaf| is_of_record(leaf.get(1)));
            let leaf = leaf.ok_or_else(|| {
                HubError::NotFound("its anchor is not published yet: try again in a second".to_owned())
            })?;
            let index = leaf.get::<_, i64>(0).unsigned_abs();
            let path = self.inclusion(index, published_size).await?;
            included.push(IncludedLeaf::new(index, leaf.get::<_, String>(1), &path));
        }
        let (Some(enrol), Some(anchor)) = (included.pop(), included.pop()) else {
            return Err(HubError::Log("a leaf is missing".to_owned()));
        };
        let Ok(Leaf::Anchor { note, .. }) = serde_json::from_str(&anchor.leaf) else {
            return Err(HubError::Log("the anchor's leaf cannot be read".to_owned()));
        };
        let proof = InclusionProof::new(seq.unsigned_abs(), proven, note).to_string();
        let record = serde_json::from_str(row.get(2)).map_err(|error| HubError::Database(error.to_string()))?;
        Ok(Bundle { record, proof, governor_key: key, anchor, enrol, checkpoint })
    }
}

/// The columns that a copied record is found by.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Columns {
    id: ProofId,
    hash: Digest,
    timestamp: Timestamp,
    entity_id: AgentId,
    decision: Decision,
    risk_level: RiskLevel,
}

impl Columns {
    /// Verifies that a record, as it is written, is in the log of a governor.
    fn verified(copy: &Copy, head: &Head) -> Result<Self, HubError> {
        let invalid = |why: String| HubError::Invalid(why);
        let mut fields: BTreeMap<&str, &RawValue> =
            serde_json::from_str(copy.record.get()).map_err(|error| invalid(error.to_string()))?;
        let columns: Self = serde_json::from_str(copy.record.get()).map_err(|error| invalid(error.to_string()))?;
        // The hash is that of the canonical JSON without these.
        fields.retain(|name, _| *name != "hash" && *name != "outcome");
        let text = serde_json::to_vec(&fields).map_err(|error| invalid(error.to_string()))?;
        let computed = Digest::new(Sha256::digest(&text).into());
        if computed != columns.hash {
            return Err(invalid(format!("record {} has the hash {computed}, not {}", columns.id, columns.hash)));
        }
        let path = read_path(copy.path.iter().map(String::as_str));
        let path = path.ok_or_else(|| invalid("a path is not a list of hashes in base 64".to_owned()))?;
        log::verify_inclusion(columns.hash.as_bytes(), columns.id.sequence().get(), head, &path)
            .map_err(|error| invalid(format!("record {} is not in the anchored log: {error}", columns.id)))?;
        Ok(columns)
    }
}

/// Columns of records.
#[derive(Default)]
struct Rows {
    seqs: Vec<i64>,
    ids: Vec<String>,
    hashes: Vec<String>,
    times: Vec<i64>,
    agents: Vec<String>,
    decisions: Vec<String>,
    risks: Vec<String>,
    bodies: Vec<String>,
    paths: Vec<String>,
}

impl Rows {
    fn push(&mut self, record: &Columns, copy: &Copy) {
        self.seqs.push(number(record.id.sequence().get()));
        self.ids.push(record.id.to_string());
        self.hashes.push(record.hash.to_string());
        self.times.push(record.timestamp.as_millis());
        self.agents.push(record.entity_id.to_string());
        self.decisions.push(record.decision.to_string());
        self.risks.push(record.risk_level.to_string());
        self.bodies.push(copy.record.get().to_owned());
        self.paths.push(copy.path.join("\n"));
    }
}

const INSERT: &str = "WITH added AS (INSERT INTO records (governor, size, seq, id, hash, at, agent, decision, risk, body, path) \
    SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], \
    $10::text[], $11::text[]) ON CONFLICT (governor, seq, hash) DO NOTHING) \
    UPDATE governors SET copied = greatest(copied, $12) WHERE id = $1 RETURNING copied";
const COPIED: &str = "SELECT governor, records.size, body, path, seq, key, hash FROM records \
    JOIN governors ON governor = governors.id WHERE records.id = $1 AND ($2::text IS NULL OR governor = $2) \
    ORDER BY records.size DESC LIMIT 100";
const FIND: &str = "SELECT governor, body FROM records WHERE ($1::text IS NULL OR agent = $1) \
    AND ($2::text IS NULL OR governor = $2) AND ($3::text IS NULL OR decision = $3) AND ($4::text IS NULL OR risk = $4) \
    AND ($5::bigint IS NULL OR at >= $5) AND ($6::bigint IS NULL OR at <= $6) ORDER BY at DESC, seq DESC LIMIT $7";
