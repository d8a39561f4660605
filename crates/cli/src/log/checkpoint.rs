//! `rulekeep log checkpoint` and `prove`.

use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep_server::calls::checkpoints;
use serde::Serialize;

use super::work::write_new;
use crate::client::{Client, Failure};
use crate::home::Home;
use crate::operate::{Failed, holding};
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
    /// The file to write (default: standard output)
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Prints the answer as JSON
    #[arg(long, conflicts_with = "to")]
    json: bool,
}

/// The statement to prove.
#[derive(clap::Args)]
pub(crate) struct Prove {
    /// The record to prove to be in the log
    #[arg(value_name = "RECORD", required_unless_present = "from_size")]
    proof_id: Option<String>,
    /// Proves that the log of --to-size entries begins with the log of this many entries
    #[arg(long, value_name = "N", requires = "to_size", conflicts_with = "proof_id")]
    from_size: Option<u64>,
    /// The later size
    #[arg(long, value_name = "N", requires = "from_size")]
    to_size: Option<u64>,
    #[command(flatten)]
    log: Create,
}

/// Signs a checkpoint.
pub(super) fn create(options: &Create) -> Result<ExitCode, Failed> {
    let made = options.client(Client::operating)?.make(checkpoints::Create {}).map_err(with_advice)?;
    options.show(&made, &made.note)
}

/// Creates a proof.
pub(super) fn prove(Prove { proof_id, from_size, to_size, log }: Prove) -> Result<ExitCode, Failed> {
    // A daemon has the key and proves to anybody; without one the store has to be opened with the key.
    let client = log.client(|home| Client::daemon(home)?.map_or_else(|| Client::operating(home), Ok))?;
    let made = client.make(checkpoints::Prove { proof_id, from_size, to_size }).map_err(with_advice)?;
    log.show(&made, &made.proof)
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
    fn client(&self, of_home: impl Fn(&Home) -> Result<Client, String>) -> Result<Client, Failed> {
        if self.store.is_some() {
            return holding(self.store.as_deref(), self.key()?);
        }
        let home = Home::find()?;
        home.check()?;
        Ok(of_home(&home)?)
    }

    fn key(&self) -> Result<Option<CheckpointKey>, String> {
        let (Some(name), Some(seed)) = (&self.checkpoint_name, &self.checkpoint_seed) else { return Ok(None) };
        checkpoint_key(name, seed).map(Some)
    }

    fn show(&self, answer: &impl Serialize, text: &str) -> Result<ExitCode, Failed> {
        match &self.to {
            Some(file) => write_new(file, text).map(|()| true)?,
            None if self.json => output::print(&output::json(answer))?,
            None => output::print(text.trim_end_matches('\n'))?,
        };
        Ok(ExitCode::SUCCESS)
    }
}
