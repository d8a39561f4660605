//! `rulekeep log archive`, `erase` and `repair`: work on a store that no other process has open.

use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::Governor;
use rulekeep::agent::AgentId;
use rulekeep::maintenance::RepairOptions;
use rulekeep::proof::{EvidenceSelection, ProofId};
use rulekeep::system::Timestamp;
use serde_json::json;

use super::Kept;
use super::work::{Progress, finish_first};
use crate::client::Client;
use crate::home::{Home, confirm};
use crate::operate::{Failed, holding, released, show};

/// The entries to archive, and the destination.
#[derive(clap::Args)]
pub(crate) struct Archive {
    /// Archives entries from before this time, in whole segments; those of the last 31 days stay
    #[arg(long, value_name = "TIME", value_parser = crate::times::from)]
    before: Timestamp,
    /// The archive, a new file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    place: Place,
}

/// The evidence to erase.
#[derive(clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("selection").required(true).multiple(true))]
pub(crate) struct Erase {
    /// Erases the evidence of this record; can be given several times
    #[arg(long = "record", value_name = "RECORD", group = "selection", conflicts_with_all = ["agent", "before"])]
    records: Vec<ProofId>,
    /// Erases the evidence of this agent's records
    #[arg(long, value_name = "AGENT", group = "selection")]
    agent: Option<AgentId>,
    /// Erases the evidence of records from before this time
    #[arg(long, value_name = "TIME", value_parser = crate::times::from, group = "selection")]
    before: Option<Timestamp>,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    cause: String,
    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

/// The store to repair.
#[derive(clap::Args)]
pub(crate) struct Repair {
    /// The folder of the store (default: the one in the home)
    #[arg(value_name = "DIR")]
    store: Option<PathBuf>,
    /// The same, with the name that other commands use
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

/// The store to work on.
#[derive(clap::Args)]
struct Place {
    /// The folder of the store (default: the one in the home, which needs the operator's key)
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

/// Archives old entries.
pub(super) fn archive(options: &Archive) -> Result<ExitCode, Failed> {
    let report = options.place.work("the archive", |governor| governor.log().archive(options.before, &options.out))?;
    if options.place.json {
        return show(&report, true);
    }
    match report {
        None => eprintln!("nothing moved: no full segment is older than the given time and than 31 days"),
        Some(report) => {
            show(&report, false)?;
            eprintln!("keep the archive; check it with: rulekeep log check");
        }
    }
    Ok(ExitCode::SUCCESS)
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
    show(&json!({ "erased": erased }), options.place.json)
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
    show(&report?, options.json)
}
