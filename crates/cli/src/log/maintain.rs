//! `rulekeep log archive`, `erase` and `repair`: work on a store that nothing else has open.

use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::Governor;
use rulekeep::agent::AgentId;
use rulekeep::maintenance::RepairOptions;
use rulekeep::proof::{EvidenceSelection, ProofId};
use rulekeep::system::Timestamp;
use serde_json::{Value, json};

use super::Kept;
use super::work::{Progress, finish_first};
use crate::client::Client;
use crate::home::{Home, confirm};
use crate::operate::{Failed, Verb, holding, released};

/// What moves, and to where.
#[derive(clap::Args)]
pub(crate) struct Archive {
    /// Entries from before then move, as far as whole segments are older; those of the last 31 days stay
    #[arg(long, value_name = "TIME")]
    before: Timestamp,
    /// The archive, a new file
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    place: Place,
}

/// Which evidence is erased.
#[derive(clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("selection").required(true).multiple(true))]
pub(crate) struct Erase {
    /// The evidence of this record; may be given several times
    #[arg(long = "record", value_name = "RECORD", group = "selection", conflicts_with_all = ["agent", "before"])]
    records: Vec<ProofId>,
    /// The evidence of this agent's records
    #[arg(long, value_name = "AGENT", group = "selection")]
    agent: Option<AgentId>,
    /// The evidence of records from before then
    #[arg(long, value_name = "TIME", group = "selection")]
    before: Option<Timestamp>,
    /// Why, for the log
    #[arg(long, value_name = "TEXT")]
    cause: String,
    /// Asks nothing
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

/// What is repaired.
#[derive(clap::Args)]
pub(crate) struct Repair {
    /// The folder of the store; the home's without
    #[arg(value_name = "DIR")]
    store: Option<PathBuf>,
    /// The same, as other verbs name it
    #[arg(long = "store", value_name = "DIR", conflicts_with = "store")]
    named: Option<PathBuf>,
    /// Suspends every agent
    #[arg(long)]
    suspend_all: bool,
    #[command(flatten)]
    kept: Kept,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
}

/// The store that is worked on.
#[derive(clap::Args)]
struct Place {
    /// The folder of the store; the home's without, which needs the operator's key
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
}

impl Place {
    fn work<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Governor) -> Result<T, rulekeep::Error>,
    ) -> Result<T, Failed> {
        let client = holding(self.store.as_deref(), None)?;
        let governor = client.governor().ok_or_else(|| "a daemon has the store open".to_owned())?;
        finish_first(what)?;
        let progress = Progress::new(what);
        let done = work(governor);
        progress.end();
        Ok(done?)
    }
}

/// Moves old entries to an archive.
pub(super) fn archive(options: &Archive) -> Result<ExitCode, Failed> {
    let report = options.place.work("the archive", |governor| governor.log().archive(options.before, &options.to))?;
    let report = serde_json::to_value(report).map_err(|error| error.to_string())?;
    if report.is_null() && !options.place.json {
        eprintln!("nothing moved: no whole segment is older than that and than 31 days");
        return Ok(ExitCode::SUCCESS);
    }
    let remark = if report.is_null() { "" } else { "keep the archive: rulekeep log check checks it by itself" };
    Verb::one("archive").remark(remark).show(&report, options.place.json)
}

/// Erases evidence.
pub(super) fn erase(options: &Erase) -> Result<ExitCode, Failed> {
    let selection = match (&options.agent, options.before) {
        (Some(agent), Some(before)) => EvidenceSelection::AgentBefore(agent.clone(), before),
        (Some(agent), None) => EvidenceSelection::Agent(agent.clone()),
        (None, Some(before)) => EvidenceSelection::Before(before),
        (None, None) => EvidenceSelection::Records(options.records.clone()),
    };
    if !options.yes {
        confirm("Erase this evidence for good?")?;
    }
    let erased =
        options.place.work("the erasure", |governor| governor.log().erase_evidence(&selection, &options.cause))?;
    Verb::one("erase").show(&json!({ "erased": erased }), options.place.json)
}

/// Repairs a store.
pub(super) fn repair(options: &Repair) -> Result<ExitCode, Failed> {
    let settings = RepairOptions::default();
    let settings = if options.suspend_all { settings.suspend_all() } else { settings };
    let settings = match options.kept.read()? {
        Some((note, key)) => settings.checkpoint(&note, key)?,
        None => settings,
    };
    let store = if let Some(store) = options.store.as_ref().or(options.named.as_ref()) {
        store.clone()
    } else {
        let home = Home::find()?;
        released(&home)?;
        drop(Client::operating(&home)?); // a broken log opens too, and knows its keys
        home.store()
    };
    finish_first("the repair")?;
    let progress = Progress::new("repairing");
    let report = rulekeep::maintenance::repair(&store, &settings);
    progress.end();
    let report: Value = serde_json::to_value(report?).map_err(|error| error.to_string())?;
    Verb::one("repair").show(&report, options.json)
}
