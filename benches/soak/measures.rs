//! The measurements, in the order of a log's life.

#![allow(clippy::cast_precision_loss)] // counts stay far below 2^53

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use rulekeep::proof::{OpenVerification, VerificationState};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Durability, Governor, ProofQuery};

use crate::Options;
use crate::load::{self, BUSY};
use crate::machine::{self, BareFile};
use crate::table::{Table, Target};

type Done = Result<(), Box<dyn Error>>;

pub(crate) fn all(options: &Options, table: &mut Table) -> Done {
    let folder = tempfile::Builder::new().prefix("rulekeep-soak").tempdir_in(&options.store)?;
    let store = folder.path().join("store");
    write(options, table, &store)?;
    reopen(table, &store)?;
    reopen_behind(table, &store)?;
    std::fs::remove_dir_all(&store)?;
    sync_alone(options, table, folder.path())?;
    sync_together(options, table, folder.path())
}

fn open(store: &Path, durability: Durability) -> Result<Governor, rulekeep::Error> {
    Governor::builder().durability(durability).cache_bytes(CACHE).open(store)
}

/// Writes the log, and measures the latency of single calls meanwhile.
fn write(options: &Options, table: &mut Table, store: &Path) -> Done {
    let governor = open(store, Durability::Buffered)?;
    load::register(&governor)?;
    let mut latency = vec![paced(&governor, 0)?];
    let (mut rates, mut json_bytes) = (Vec::new(), 0);
    let part = (options.records / 10).max(1);
    for start in (0..options.records).step_by(usize::try_from(part)?) {
        let mut elapsed = Duration::ZERO;
        for chunk in (start..start + part).step_by(CHUNK) {
            // Created outside the measured time, and few at a time so that their memory does not count.
            let until = (start + part).min(chunk + CHUNK as u64);
            let intents: Vec<_> = (chunk..until).map(load::intent).collect::<Result<_, _>>()?;
            let started = Instant::now();
            for intent in &intents {
                governor.enforce(intent)?;
            }
            elapsed += started.elapsed();
        }
        rates.push(ratio(part, elapsed));
        eprintln!(
            "soak: {} of {} records, {:.0} a second",
            start + part,
            options.records,
            rates.last().unwrap_or(&0.0)
        );
        if (start / part) % 5 == 4 {
            governor.log().flush()?;
            latency.push(paced(&governor, start)?);
        }
    }
    let started = Instant::now();
    governor.log().flush()?;
    eprintln!("soak: all of it on disk {:.1} s later", started.elapsed().as_secs_f64());
    for record in governor.query(&ProofQuery::entity(BUSY).page_size(200))?.items {
        json_bytes += serde_json::to_string(&record)?.len() as u64;
    }
    let medians: Vec<f64> = latency.iter().map(|samples| at(samples, 0.5)).collect();
    let flat = medians.iter().copied().fold(0.0, f64::max) / medians.iter().copied().fold(f64::MAX, f64::min);
    let all: Vec<f64> = latency.concat();
    table.add("enforce, Buffered, median", "us", all.clone(), Target::Under(3.5));
    table.add_tail("enforce, Buffered, p99", "us", all, 0.99, Target::Under(18.0));
    table.add(
        "enforce, Buffered, slowest median over fastest as the log grows",
        "ratio",
        vec![flat],
        Target::Under(1.2),
    );
    let (slowest, fastest) =
        (rates.iter().copied().fold(f64::MAX, f64::min), rates.iter().copied().fold(0.0, f64::max));
    table.add("Buffered, one thread", "decisions/s", rates, Target::Over(250_000.0));
    table.add(
        "Buffered, one thread, slowest tenth of the log over fastest",
        "ratio",
        vec![slowest / fastest],
        Target::Over(0.8),
    );
    wait_for_sealing(&governor);
    tell_memory("written");
    let records = governor.status().metrics.proof_chain_length;
    governor.close()?;
    let bytes = machine::bytes_below(&store.join("journal"))? + machine::bytes_below(&store.join("view"))?;
    let written = json_bytes as f64 / 200.0 * records as f64;
    table.add("journal and view for a byte of record JSON", "bytes", vec![bytes as f64 / written], Target::Under(1.6));
    Ok(())
}

fn tell_memory(behind: &str) {
    if let Some(peak) = machine::peak_memory() {
        eprintln!("soak: {behind}; {:.0} MiB at the most so far", peak / f64::from(1 << 20));
    }
}

fn wait_for_sealing(governor: &Governor) {
    let started = Instant::now();
    while governor.log().journal().unsealed > 0 && started.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = governor.log().journal().unsealed;
    eprintln!("soak: full segments sealed {:.1} s later, {left} left", started.elapsed().as_secs_f64());
}

fn reopen(table: &mut Table, store: &Path) -> Done {
    let started = Instant::now();
    let governor = open(store, Durability::Buffered)?;
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("soak: opened in {seconds:.1} s");
    tell_memory("opened");
    // The target is for ten million records, so the result is scaled to that number.
    let for_ten_million = seconds * 1e7 / governor.status().metrics.proof_chain_length as f64;
    table.add("open, chain verified, for ten million records", "s", vec![for_ten_million], Target::Under(8.0));

    let last = governor.query(&ProofQuery::entity(BUSY))?;
    let newest = last.items.first().map(|record| record.timestamp.as_millis()).unwrap_or_default();
    let mut stats = Vec::new();
    for back in 0..200_i64 {
        let from = Timestamp::from_millis(newest - back * 50);
        let started = Instant::now();
        governor.stats(BUSY, rulekeep::proof::Period::new(Some(from), None))?;
        stats.push(micros(started.elapsed()));
    }
    table.add("stats of any period, an entity of a tenth of the log", "us", stats, Target::Under(200.0));

    let query = ProofQuery::entity(BUSY).decision(Decision::Allow);
    let total = governor.query(&query)?.total;
    for (name, page) in
        [("first page of a filtered query", 1), ("last page of a filtered query", total.div_ceil(50).max(1))]
    {
        let mut times = Vec::new();
        for _ in 0..20 {
            let started = Instant::now();
            governor.query(&query.clone().page(page))?;
            times.push(micros(started.elapsed()) / 1000.0);
        }
        table.add(name, "ms", times, Target::Under(5.0));
    }

    let mut rates = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let verification = governor.verify()?;
        rates.push(ratio(verification.records, started.elapsed()));
        eprintln!("soak: verified, {:.0} records a second", rates.last().unwrap_or(&0.0));
        if !verification.valid {
            return Err("the log does not verify".into());
        }
    }
    table.add("verify", "records/s", rates, Target::Over(1_500_000.0));
    tell_memory("verified");
    if let Some(peak) = machine::peak_memory() {
        let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
        table.add("most memory", "MiB", vec![megabytes(peak)], Target::Under(megabytes(CACHE as f64) + 64.0));
    }
    Ok(governor.close()?)
}

/// Opens the log with background verification, and decides at once.
fn reopen_behind(table: &mut Table, store: &Path) -> Done {
    let mut times = Vec::new();
    for round in 0..3 {
        let started = Instant::now();
        let builder = Governor::builder().durability(Durability::Buffered).cache_bytes(CACHE);
        let governor = builder.verification(OpenVerification::Behind).open(store)?;
        governor.enforce(&load::intent(round)?)?;
        times.push(started.elapsed().as_secs_f64());
        if !matches!(governor.log().verification(), VerificationState::Running(_) | VerificationState::Verified) {
            return Err("the log is not verified behind".into());
        }
        governor.close()?;
    }
    table.add("open and decide, chain verified behind", "s", times, Target::Under(0.1));
    Ok(())
}

/// One caller in Sync mode, alternating with a bare sync, because the disk's speed varies.
fn sync_alone(options: &Options, table: &mut Table, folder: &Path) -> Done {
    let governor = open(&folder.join("alone"), Durability::Sync)?;
    load::register(&governor)?;
    let mut bare = BareFile::new(folder)?;
    let (mut ours, mut bares) = (Vec::new(), Vec::new());
    for number in 0..options.sync_decisions {
        let intent = load::intent(number)?;
        let started = Instant::now();
        governor.enforce(&intent)?;
        ours.push(micros(started.elapsed()));
        bares.push(micros(bare.sync()?));
    }
    let ratio = at(&ours, 0.5) / at(&bares, 0.5);
    table.add("Sync, one caller, over a bare fdatasync", "ratio", vec![ratio], Target::Under(1.4));
    eprintln!("soak: Sync {:.0} us, bare {:.0} us", at(&ours, 0.5), at(&bares, 0.5));
    Ok(governor.close()?)
}

/// Many callers in Sync mode: the number of callers that one sync serves.
fn sync_together(options: &Options, table: &mut Table, folder: &Path) -> Done {
    let governor = open(&folder.join("together"), Durability::Sync)?;
    load::register(&governor)?;
    let each = (options.sync_decisions * 20 / CALLERS).max(10);
    let before = governor.log().journal().syncs;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let governor = governor.clone();
                scope.spawn(move || {
                    (0..each).try_for_each(|number| governor.enforce(&load::intent(caller * each + number)?).map(drop))
                })
            })
            .collect();
        callers
            .into_iter()
            .try_for_each(|caller| caller.join().map_err(|_| "a caller panicked")?.map_err(|error| error.to_string()))
    })?;
    let elapsed = started.elapsed();
    let syncs = (governor.log().journal().syncs - before).max(1);
    let decisions = CALLERS * each;
    table.add(
        "Sync, 64 callers, for each fdatasync",
        "decisions",
        vec![decisions as f64 / syncs as f64],
        Target::Over(60.0),
    );
    table.add("Sync, 64 callers", "decisions/s", vec![ratio(decisions, elapsed)], Target::Over(80_000.0));
    Ok(governor.close()?)
}

/// Single calls, far enough apart that the queue does not fill.
fn paced(governor: &Governor, start: u64) -> Result<Vec<f64>, rulekeep::Error> {
    (0..20_000)
        .map(|number| {
            let intent = load::intent(start + number)?;
            let started = Instant::now();
            governor.enforce(&intent)?;
            let elapsed = started.elapsed();
            while started.elapsed() < PACE {
                std::hint::spin_loop();
            }
            Ok(micros(elapsed))
        })
        .collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place among samples
fn at(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

fn ratio(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

fn micros(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e6
}

const CACHE: u64 = 16 << 20;
const CALLERS: u64 = 64;
const CHUNK: usize = 1_000;
const PACE: Duration = Duration::from_micros(20);
