//! Appends of records through a hub against the same rows written to PostgreSQL directly, in turns.

use std::fmt;
use std::time::Instant;

use rulekeep::ProofRecord;
use rulekeep::checkpoint::CheckpointKey;
use rulekeep::system::SystemEntropy;
use rulekeep_fleet::wire::Records;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use crate::support::cluster::Cluster;
use crate::support::governor::{Log, real_record};
use crate::support::http::{Connection, signed};
use crate::support::hub::HubProcess;
use crate::support::member::Member;
use crate::support::organisation::Organisation;

/// Connections of a hub to the database, and so many writers on both sides.
const WRITERS: usize = 8;
/// Records in a batch.
const BATCH: usize = 100;
/// Batches of a writer in a round.
const BATCHES: usize = 4;
/// Entries that the governors' logs have besides, so that paths are as long as in a log of some age.
const EARLIER: usize = 1 << 19;
/// Bytes of a record.
const BYTES: usize = 1024;

/// Records a second in each round.
pub(crate) struct Report {
    hub: Vec<f64>,
    bare: Vec<f64>,
}

impl Report {
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.hub) / median(&self.bare)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hub, bare, ratio) = (median(&self.hub), median(&self.bare), self.ratio());
        write!(f, "{hub:.0} records/s through a hub, {bare:.0} bare, medians of {}; ratio {ratio:.2}", self.hub.len())
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) async fn measure(rounds: usize, cluster: &Cluster, hub: &HubProcess, organisation: &Organisation) -> Report {
    let template = real_record();
    let mut log = Log::new(CheckpointKey::generate("filled", &SystemEntropy).expect("a good name"));
    log.grow(EARLIER, "earlier");
    log.record(&template, (rounds + 1) * BATCHES * BATCH, |_, record| fill(record));
    let size = log.size();
    let batches: Vec<_> = (0..(rounds + 1) * BATCHES).map(|n| log.copies(n * BATCH..(n + 1) * BATCH, size)).collect();
    let mut writers = Vec::new();
    for n in 0..WRITERS {
        let mut member = Member::new(&format!("writer-{n}"), organisation, &[hub.address()]);
        member.log = log.signed_by(member.key.clone());
        member.enrol(&organisation.invitation(&[], 1_000)).await.expect("a good invitation");
        for _ in 0..2 {
            member.beat(std::time::Duration::ZERO).await.expect("the hub answers");
        }
        assert_eq!(member.answer.anchored, size, "{:?}", member.answer);
        let request = |(n, records): (usize, &Vec<_>)| {
            let until = (EARLIER + (n + 1) * BATCH) as u64;
            let batch = Records { governor: member.key.name().to_owned(), size, until, records: records.clone() };
            signed(&member.key, "/fleet/v1/records", &batch)
        };
        let requests: Vec<Vec<u8>> = batches.iter().enumerate().map(request).collect();
        let connection = Connection::open(hub.address()).await.expect("the hub answers");
        let (client, link) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("the database answers");
        tokio::spawn(link);
        let insert = client.prepare(INSERT).await.expect("the schema of the hub");
        let rows =
            batches.iter().zip(0..).map(|(batch, place)| Rows::of(&log.records()[place * BATCH..], batch)).collect();
        writers.push(Writer { name: format!("bare-{n}"), requests, connection, client, insert, rows });
    }
    let mut report = Report { hub: Vec::new(), bare: Vec::new() };
    for round in 0..=rounds {
        let mut sides = [true, false];
        sides.rotate_left(round % 2);
        for through_hub in sides {
            let began = Instant::now();
            let mut running = JoinSet::new();
            for mut writer in writers.drain(..) {
                running.spawn(async move {
                    for batch in round * BATCHES..(round + 1) * BATCHES {
                        if through_hub { writer.post(batch).await } else { writer.insert(batch, size).await }
                    }
                    writer
                });
            }
            writers = running.join_all().await;
            let rate = (WRITERS * BATCHES * BATCH) as f64 / began.elapsed().as_secs_f64();
            // The first round warms up.
            if round > 0 {
                if through_hub { &mut report.hub } else { &mut report.bare }.push(rate);
            }
        }
    }
    report
}

/// Lengthens a record's text until the record has the wanted size.
fn fill(record: &mut ProofRecord) {
    let has = serde_json::to_string(record).expect("JSON").len();
    record.reasoning.push_str(&".".repeat(BYTES.saturating_sub(has)));
}

struct Writer {
    name: String,
    requests: Vec<Vec<u8>>,
    connection: Connection,
    client: Client,
    insert: Statement,
    rows: Vec<Rows>,
}

impl Writer {
    async fn post(&mut self, batch: usize) {
        let answer = self.connection.call(&self.requests[batch]).await.expect("the hub answers");
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }

    async fn insert(&mut self, batch: usize, size: u64) {
        let rows = &self.rows[batch];
        let size = i64::try_from(size).expect("a small log");
        let values: [&(dyn ToSql + Sync); 11] = [
            &self.name,
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
        ];
        assert_eq!(self.client.execute(&self.insert, &values).await.expect("the rows are new"), BATCH as u64);
    }
}

/// The rows of a batch, as the hub makes them.
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
    fn of(records: &[ProofRecord], copies: &[rulekeep_fleet::wire::Copy]) -> Self {
        let mut rows = Self::default();
        for (record, copy) in records.iter().zip(copies) {
            rows.seqs.push(i64::try_from(record.id.sequence().get()).expect("a small log"));
            rows.ids.push(record.id.to_string());
            rows.hashes.push(record.hash.to_string());
            rows.times.push(record.timestamp.as_millis());
            rows.agents.push(record.entity_id.to_string());
            rows.decisions.push(record.decision.to_string());
            rows.risks.push(record.risk_level.to_string());
            rows.bodies.push(copy.record.get().to_owned());
            rows.paths.push(copy.path.join("\n"));
        }
        rows
    }
}

const INSERT: &str = "INSERT INTO records (governor, size, seq, id, hash, at, agent, decision, risk, body, path) \
    SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], \
    $10::text[], $11::text[]) ON CONFLICT (governor, seq, hash) DO NOTHING";
