//! `rulekeep log checkpoint`, `prove` and `check-proof`.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rulekeep::checkpoint::{CheckpointKey, InclusionProof, VerifierKey, verify_inclusion};
use rulekeep::proof::ProofId;
use rulekeep::{Error, ProofRecord};
use rulekeep_server::calls::checkpoints;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::folder;
use super::work::{open, write_new};
use crate::client::{Client, Failure, opened};
use crate::home::Home;
use crate::operate::{Failed, holding, show};
use crate::output;
use crate::store::checkpoint_key;

/// The log, the key that signs for it, and the destination of the text.
#[derive(clap::Args)]
pub(crate) struct Create {
    /// The folder of a store that no process has open (default: the one in the home)
    #[arg(long, value_name = "DIR", requires = "checkpoint_name")]
    store: Option<PathBuf>,
    /// The name of the key that signs; the home's key is in its config.toml, under [checkpoints]
    #[arg(long, value_name = "NAME", requires_all = ["checkpoint_seed", "store"])]
    checkpoint_name: Option<String>,
    /// The file with the 32 secret bytes of that key, in hex
    #[arg(long, value_name = "FILE", requires = "checkpoint_name")]
    checkpoint_seed: Option<PathBuf>,
    #[command(flatten)]
    written: Written,
}

/// The statement to prove.
#[derive(clap::Args)]
pub(crate) struct Prove {
    /// The record to prove to be in the log
    #[arg(value_name = "RECORD", required_unless_present = "from_size")]
    proof_id: Option<ProofId>,
    /// Proves that the log of --to-size entries begins with the log of this many entries
    #[arg(long, value_name = "N", requires = "to_size", conflicts_with_all = ["proof_id", "checkpoint"])]
    from_size: Option<u64>,
    /// The later size
    #[arg(long, value_name = "N", requires = "from_size")]
    to_size: Option<u64>,
    /// The folder of the store, which is only read (default: the one in the home)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// A signed checkpoint that covers the record (default: the newest one in the store)
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    written: Written,
}

/// The files of a proof, and the key that must have signed its checkpoint.
#[derive(clap::Args)]
pub(crate) struct CheckProof {
    /// The record: its JSON, or an export with it
    record: PathBuf,
    /// The proof that `log prove` wrote
    proof: PathBuf,
    /// The public key that must have signed the checkpoint, as text
    #[arg(long, value_name = "KEY")]
    key: VerifierKey,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

/// The destination of a text.
#[derive(clap::Args)]
struct Written {
    /// The file to write (default: standard output)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prints the answer as JSON
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

/// Signs a checkpoint.
pub(super) fn create(options: &Create) -> Result<ExitCode, Failed> {
    let made = options.client()?.make(checkpoints::Create {}).map_err(with_advice)?;
    options.written.show(&made, &made.note)
}

/// Creates a proof from the store's files, which stay as they are.
pub(super) fn prove(options: &Prove) -> Result<ExitCode, Failed> {
    let governor = opened(&folder(options.store.as_ref())?)?;
    let log = governor.log();
    let proof = match (&options.proof_id, options.from_size.zip(options.to_size)) {
        (Some(id), _) => {
            let note = match &options.checkpoint {
                Some(file) => read(file)?,
                None => log.stored_checkpoint()?.ok_or_else(|| NO_CHECKPOINT.to_owned())?,
            };
            log.prove_with_checkpoint(id, &note).map_err(|error| match error {
                Error::Conflict { message } => {
                    format!("{message}; make a later one with: rulekeep log checkpoint").into()
                }
                other => Failed::from(other),
            })?
        }
        (None, Some((old, new))) => log.prove_consistency(old, new)?,
        (None, None) => return Err(Failed::usage("expected RECORD, or --from-size and --to-size")),
    };
    governor.close()?;
    options.written.show(&checkpoints::CheckpointProof { proof: proof.clone() }, &proof)
}

/// Verifies a proof from files alone.
pub(super) fn check(CheckProof { record, proof, key, json }: &CheckProof) -> Result<ExitCode, Failed> {
    let text = read(proof)?;
    let at = |file: &Path, why: &dyn Display| format!("{}: {why}", file.display());
    let place = text.parse::<InclusionProof>().map_err(|error| at(proof, &error))?.index;
    let mut found = None;
    for line in serde_json::Deserializer::from_reader(open(record)?).into_iter::<Line>() {
        found = match line.map_err(|error| at(record, &error))? {
            Line::Exported { record } | Line::Alone(record) => Some(record),
            Line::Other(_) => continue,
        };
        if found.as_ref().is_some_and(|record| record.id.sequence().get() == place) {
            break;
        }
    }
    let found = found.ok_or_else(|| at(record, &"there is no record in this file"))?;
    let checkpoint = verify_inclusion(&found, &text, key).map_err(|error| at(proof, &error))?;
    let (log, entries) = (checkpoint.origin(), checkpoint.size());
    show(&json!({ "valid": true, "record": found.id, "hash": found.hash, "log": log, "entries": entries }), *json)
}

/// A line of an export, or a record by itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Exported { record: Box<ProofRecord> },
    Alone(Box<ProofRecord>),
    Other(IgnoredAny),
}

/// Adds where a key is set to the failure of a log without a checkpoint key.
fn with_advice(mut failure: Failure) -> Failure {
    if failure.message.contains("no checkpoint key") {
        failure.message.push_str(
            "; set one under [checkpoints] in the home's config.toml, or for a folder with \
                                  --store, --checkpoint-name and --checkpoint-seed",
        );
    }
    failure
}

impl Create {
    fn client(&self) -> Result<Client, Failed> {
        if self.store.is_some() {
            return holding(self.store.as_deref(), self.key()?);
        }
        let home = Home::find()?;
        home.check()?;
        Ok(Client::operating(&home)?)
    }

    fn key(&self) -> Result<Option<CheckpointKey>, String> {
        let (Some(name), Some(seed)) = (&self.checkpoint_name, &self.checkpoint_seed) else { return Ok(None) };
        checkpoint_key(name, seed).map(Some)
    }
}

impl Written {
    fn show(&self, answer: &impl Serialize, text: &str) -> Result<ExitCode, Failed> {
        match &self.out {
            Some(file) => write_new(file, text).map(|()| true)?,
            None if self.json => output::print(&output::json(answer))?,
            None => output::print(text.trim_end_matches('\n'))?,
        };
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

const NO_CHECKPOINT: &str = "the store has no checkpoint to prove against; make one with: rulekeep log checkpoint";
