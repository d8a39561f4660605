//! The options with which commands that serve others open a store.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::extension::Extension;
use rulekeep::grant::Confiner;
use rulekeep::intent::InputText;
use rulekeep::proof::{OpenVerification, VerificationState};
use rulekeep::{Durability, Error, Governor, PolicySet};
use rulekeep_server::gateway::Gateway;
use rulekeep_server::webhooks::Settings;
use tempfile::TempDir;

/// The options for opening a store.
#[derive(clap::Args)]
pub(crate) struct StoreOptions {
    /// The folder of the store, created if it does not exist (default: a temporary one)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The policies, in TOML or JSON (default: those last in force, or the recommended ones)
    #[arg(long, value_name = "FILE")]
    policies: Option<PathBuf>,
    /// The point at which a decision is answered: sync, buffered, or sync-from:RISK
    #[arg(long, default_value = "sync")]
    durability: Durability,
    /// The form of the request text in evidence: whole, digest, no, or asked, which is whole if a reviewer is asked
    #[arg(long, value_name = "HOW")]
    input_text: Option<InputText>,
    /// Registers unknown agents at their first request
    #[arg(long)]
    auto_register: bool,
    /// The name of the key that signs checkpoints
    #[arg(long, value_name = "NAME", requires = "checkpoint_seed")]
    checkpoint_name: Option<String>,
    /// The file with the 32 secret bytes of that key, in hex
    #[arg(long, value_name = "FILE", requires = "checkpoint_name")]
    checkpoint_seed: Option<PathBuf>,
    /// The waits between attempts to deliver an event, instead of 5,300,1800,7200,18000,36000,50400,72000,86400; the
    /// first attempt is immediate
    #[arg(long, value_name = "N,N,..", value_parser = seconds)]
    webhook_retry_seconds: Option<Waits>,
    /// The URL at which reviewers reach this server, for approval links
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Permits webhooks at loopback and private addresses
    #[arg(long)]
    allow_private_webhooks: bool,
}

/// The waits between attempts to deliver an event.
type Waits = std::sync::Arc<[Duration]>;

/// An open store; a temporary one is deleted with this value.
pub(crate) struct Opened {
    pub(crate) gateway: Gateway,
    _temporary: Option<TempDir>,
}

impl StoreOptions {
    /// Opens the store, or a temporary one if none was named. Remarks go to standard error.
    pub(crate) fn open(self) -> Result<Opened, String> {
        let (store, temporary) = if let Some(store) = self.store {
            (store, None)
        } else {
            let made = tempfile::tempdir().map_err(|error| format!("cannot make a temporary store: {error}"))?;
            eprintln!("temporary store in {}", made.path().display());
            (made.path().to_owned(), Some(made))
        };
        let builder = Governor::builder().durability(self.durability).input_text(self.input_text.unwrap_or_default());
        let mut builder = builder.verification(OpenVerification::Behind);
        if let Some(policies) = self.policies {
            builder = builder.policies(PolicySet::from_file(policies).map_err(describe)?);
        }
        if self.auto_register {
            builder = builder.auto_register();
        }
        if let (Some(name), Some(seed)) = (self.checkpoint_name, self.checkpoint_seed) {
            let key = checkpoint_key(&name, &seed)?;
            eprintln!("checkpoints are signed by {}", key.verifier());
            builder = builder.checkpoints(key);
        }
        if let Some(confiner) = std::env::current_exe().ok().and_then(|program| Confiner::attempt(program).ok()) {
            builder = builder.confiner(confiner);
        }
        let governor = builder.open(store).map_err(describe)?;
        for warning in governor.policies().current().warnings() {
            eprintln!("policies, line {}: {}", warning.line, warning.message);
        }
        if let Some(recovered) = &governor.log().opening().recovered {
            eprintln!("a write had been cut short; {} bytes are kept in {}", recovered.bytes, recovered.copy);
        }
        let erased = governor.log().opening().erased_evidence_found;
        if erased > 0 {
            eprintln!("erased evidence of {erased} records was found in files and was erased again");
        }
        let settings = Settings {
            schedule: self.webhook_retry_seconds.map(|waits| waits.to_vec()),
            allow_private: self.allow_private_webhooks,
            public_url: self.public_url,
        };
        let gateway = Gateway::with_webhooks(&governor, settings).map_err(describe)?;
        thread::spawn(move || is_sound(&governor));
        Ok(Opened { gateway, _temporary: temporary })
    }
}

/// Waits until the log is verified. Returns whether it is sound; standard error has the reason if not.
pub(crate) fn is_sound(governor: &Governor) -> bool {
    let verified = Extension::of(governor).wait_until_verified();
    match governor.log().verification() {
        VerificationState::Broken(broken) => eprintln!("the log is broken and read-only: {broken}"),
        VerificationState::Failed(why) => eprintln!("the log could not be verified: {why}"),
        _ => {}
    }
    verified.is_ok()
}

/// Reads the key that signs checkpoints, given its name and the file with its secret bytes.
pub(crate) fn checkpoint_key(name: &str, seed: &Path) -> Result<CheckpointKey, String> {
    let text = std::fs::read_to_string(seed).map_err(|error| format!("{}: {error}", seed.display()))?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(text.trim(), &mut bytes)
        .map_err(|_| format!("{}: expected 32 bytes in hex", seed.display()))?;
    CheckpointKey::from_seed(name, &bytes).map_err(|error| error.to_string())
}

fn seconds(text: &str) -> Result<Waits, String> {
    let wait = |wait: &str| Duration::try_from_secs_f64(wait.trim().parse().ok()?).ok();
    text.split(',').map(wait).collect::<Option<_>>().ok_or_else(|| "expected seconds, as 5,300,1800".to_owned())
}

#[allow(clippy::needless_pass_by_value)] // it is handed to `map_err`
pub(crate) fn describe(error: Error) -> String {
    format!("{}: {}", error.code(), error.message())
}
