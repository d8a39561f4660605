//! `rulekeep report`: one HTML file about a period of a store's log, for reading and for printing.
//!
//! The store is opened read-only, even while a service writes to it. Its records are read once, in memory that grows
//! with the number of agents and escalations, but not with that of records. The page has neither scripts nor external
//! resources, and everything from the log is escaped.
//!
//! | file | subject |
//! |---|---|
//! | `span.rs` | the period, divided into intervals |
//! | `tally.rs` | the counts, from one pass over the records |
//! | `charts.rs` | the charts, as SVG |
//! | `page.rs`, `page.css` | the page |

mod charts;
mod page;
mod span;
mod tally;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rulekeep::checkpoint::{Checkpoint, VerifierKey};
use rulekeep::proof::{ExportRange, Order, Verification, VerifyOptions};
use rulekeep::system::{Clock, SystemClock, Timestamp};
use rulekeep::{Error, Governor, ProofQuery};

use crate::log::Kept;
use crate::output::counted;
use crate::store::describe;
use crate::times::Period;
use span::Span;
use tally::Tally;

/// The contents and the destination of a report.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rulekeep report --out report.html\n  rulekeep report --from 7d --to yesterday --out week.html"
)]
pub struct Options {
    /// The folder of the store (default: the one in the home)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(flatten)]
    period: Period,
    /// Only the records of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    #[command(flatten)]
    kept: Kept,
    /// The HTML file to write; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes a report. If the log does not verify, the report is written too, and the exit code is a failure.
///
/// # Errors
///
/// Returns a message if the store cannot be opened, the checkpoint cannot be read or is not signed by the key, or the
/// file cannot be written.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    if options.period.from.zip(options.period.to).is_some_and(|(from, to)| from > to) {
        return Err("--from is later than --to: expected the earlier moment first".to_owned());
    }
    let kept = options.kept_checkpoint()?;
    let store = crate::home::store_of(options.store.as_deref())?;
    let governor = Governor::open_read_only(&store).map_err(describe)?;
    let verification = match &kept {
        Some(kept) => governor.log().verify_with_checkpoint(&VerifyOptions::new(), &kept.note, &kept.key),
        None => governor.verify(),
    };
    let verification = verification.map_err(describe)?;
    let (tally, unread) = options.tally(&governor)?;
    governor.close().map_err(describe)?;
    let report = Report { options, store, verification, kept, tally, unread, written_at: SystemClock.now() };
    let page = page::html(&report).map_err(|error| format!("a chart cannot be drawn: {error}"))?;
    write_new(&options.out, &page)?;
    let Report { verification, tally, .. } = &report;
    eprintln!("{}: {}", options.out.display(), counted(tally.records, "record"));
    if let Some(broken) = &verification.first_broken {
        eprintln!("the log does not verify: {broken}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The data shown in a report.
struct Report<'a> {
    options: &'a Options,
    store: PathBuf,
    verification: Verification,
    kept: Option<KeptCheckpoint>,
    tally: Tally,
    /// The reason why not all records could be read.
    unread: Option<String>,
    written_at: Timestamp,
}

/// A checkpoint that the user kept, with the key that signed it.
struct KeptCheckpoint {
    note: String,
    key: VerifierKey,
    checkpoint: Checkpoint,
}

impl Options {
    fn kept_checkpoint(&self) -> Result<Option<KeptCheckpoint>, String> {
        let Some((note, key)) = self.kept.read()? else { return Ok(None) };
        let checkpoint = Checkpoint::open(&note, key).map_err(|error| format!("--checkpoint: {error}"))?;
        Ok(Some(KeptCheckpoint { note, key: key.clone(), checkpoint }))
    }

    /// Returns the counts, and the reason why not all records could be read if the log is broken.
    fn tally(&self, governor: &Governor) -> Result<(Tally, Option<String>), String> {
        let mut range = ExportRange::all();
        if let Some(agent) = &self.agent {
            governor.agents().get(agent).map_err(describe)?;
            range = range.of_agent(agent.parse().map_err(|error| format!("--agent: {error}"))?);
        }
        let mut tally = Tally::new(self.span(governor));
        match governor.log().export(&range, &mut tally, &mut |_, _| {}) {
            Ok(_) => Ok((tally, None)),
            Err(error @ Error::ChainBroken { .. }) => Ok((tally, Some(error.message()))),
            Err(error) => Err(describe(error)),
        }
    }

    /// Returns the requested period; open ends are those of the first and last record. `None` without records.
    fn span(&self, governor: &Governor) -> Option<Span> {
        let mut query = self.agent.as_deref().map_or_else(ProofQuery::all, ProofQuery::entity);
        if let Some(from) = self.period.from {
            query = query.from(from);
        }
        if let Some(to) = self.period.to {
            query = query.to(to);
        }
        let end = |order| governor.log().records(&query.clone().order(order)).find_map(Result::ok);
        let (first, last) = (end(Order::OldestFirst)?, end(Order::NewestFirst)?);
        Some(Span::new(self.period.from.unwrap_or(first.timestamp), self.period.to.unwrap_or(last.timestamp)))
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), String> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
