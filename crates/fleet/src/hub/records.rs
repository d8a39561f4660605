//! Copied records: taking them in, queries over them, and bundles for strangers.

use rulekeep::ProofRecord;
use rulekeep::checkpoint::{Checkpoint, InclusionProof};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_postgres::types::ToSql;

use super::orders::number;
use super::{Hub, HubError};
use crate::bundle::{Bundle, IncludedLeaf};
use crate::log::{Leaf, read_path};
use crate::wire::{Copied, Records};

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
        let key = self.key_of(&batch.governor).await?;
        let mut client = self.inner.store.client().await?;
        let anchored = client
            .query_one("SELECT note FROM governors WHERE id = $1 AND trouble = ''", &[&batch.governor])
            .await
            .map_err(|_| HubError::Forbidden("this governor must be readmitted first".to_owned()))?;
        let checkpoint =
            Checkpoint::open(anchored.get(0), &key).map_err(|error| HubError::Invalid(error.to_string()))?;
        if checkpoint.size() != batch.size || batch.until > batch.size {
            let (size, found) = (checkpoint.size(), batch.size);
            return Err(HubError::Invalid(format!("the newest anchored checkpoint has {size} entries, not {found}")));
        }
        let mut rows = Rows::default();
        for copy in &batch.records {
            let record: ProofRecord =
                serde_json::from_str(copy.record.get()).map_err(|error| HubError::Invalid(error.to_string()))?;
            let path = read_path(copy.path.iter().map(String::as_str));
            let path = path.ok_or_else(|| HubError::Invalid("a path is not a list of hashes in base 64".to_owned()))?;
            checkpoint.verify_record(&record, &path).map_err(|error| HubError::Invalid(error.to_string()))?;
            rows.push(&record, copy.record.get(), copy.path.join("\n"));
        }
        let (until, size) = (number(batch.until), number(batch.size));
        let transaction = client.transaction().await?;
        transaction
            .execute(
                INSERT,
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
                ],
            )
            .await?;
        let advance = "UPDATE governors SET copied = greatest(copied, $2) WHERE id = $1 RETURNING copied";
        let copied: i64 = transaction.query_one(advance, &[&batch.governor, &until]).await?.get(0);
        transaction.commit().await?;
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

    /// Makes the bundle by which a stranger verifies a copied record offline.
    pub(super) async fn bundle(&self, record_id: &str) -> Result<Bundle, HubError> {
        let client = self.inner.store.reader().await?;
        let row = client
            .query_opt(
                "SELECT governor, records.size, body, path, seq, key FROM records JOIN governors ON governor = governors.id WHERE records.id = $1",
                &[&record_id],
            )
            .await?
            .ok_or_else(|| HubError::NotFound(format!("no record {record_id} is copied")))?;
        let (governor, size, path, seq): (String, i64, String, i64) = (row.get(0), row.get(1), row.get(3), row.get(4));
        let (published_size, checkpoint) = self.published(&client).await?;
        let leaf = "SELECT idx, body FROM leaves WHERE subject = $1 AND kind = $2 AND size = $3 AND idx < $4 ORDER BY idx DESC LIMIT 1";
        let mut included = Vec::new();
        for (kind, size) in [("anchor", size), ("enrol", 0)] {
            let leaf = client.query_opt(leaf, &[&governor, &kind, &size, &number(published_size)]).await?;
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
        let path = read_path(path.lines()).unwrap_or_default();
        let proof = InclusionProof::new(seq.unsigned_abs(), path, note).to_string();
        let record = serde_json::from_str(row.get(2)).map_err(|error| HubError::Database(error.to_string()))?;
        Ok(Bundle { record, proof, governor_key: row.get(5), anchor, enrol, checkpoint })
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
    fn push(&mut self, record: &ProofRecord, body: &str, path: String) {
        self.seqs.push(number(record.id.sequence().get()));
        self.ids.push(record.id.to_string());
        self.hashes.push(record.hash.to_string());
        self.times.push(record.timestamp.as_millis());
        self.agents.push(record.entity_id.to_string());
        self.decisions.push(record.decision.to_string());
        self.risks.push(record.risk_level.to_string());
        self.bodies.push(body.to_owned());
        self.paths.push(path);
    }
}

const INSERT: &str = "INSERT INTO records (governor, size, seq, id, hash, at, agent, decision, risk, body, path) \
    SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], \
    $10::text[], $11::text[]) ON CONFLICT (governor, seq) DO NOTHING";
const FIND: &str = "SELECT governor, body FROM records WHERE ($1::text IS NULL OR agent = $1) \
    AND ($2::text IS NULL OR governor = $2) AND ($3::text IS NULL OR decision = $3) AND ($4::text IS NULL OR risk = $4) \
    AND ($5::bigint IS NULL OR at >= $5) AND ($6::bigint IS NULL OR at <= $6) ORDER BY at DESC, seq DESC LIMIT $7";
