//! The options by which the programs that serve others open a store.

use std::path::PathBuf;

use rulekeep::intent::InputText;
use rulekeep::{Durability, Error, Governor, GovernorBuilder, PolicySet};
use tempfile::TempDir;

/// What a store is opened with.
#[derive(Default)]
pub(crate) struct StoreOptions {
    store: Option<PathBuf>,
    policies: Option<PathBuf>,
    durability: Option<Durability>,
    input_text: InputText,
    auto_register: bool,
    checkpoint_name: Option<String>,
    checkpoint_seed: Option<PathBuf>,
    webhook_retry_seconds: Option<String>,
    allow_private_webhooks: bool,
}

/// A store that is open; a temporary one goes with it.
pub(crate) struct Opened {
    pub(crate) governor: Governor,
    _temporary: Option<TempDir>,
}

/// The options, as a usage line says them.
pub(crate) const STORE_USAGE: &str = "[--store DIR] [--policies FILE] [--durability sync|buffered|sync-from:RISK] [--input-text whole|digest|no] [--auto-register] \
                                      [--checkpoint-name NAME --checkpoint-seed FILE] [--webhook-retry-seconds N,N,..] [--allow-private-webhooks]";

impl StoreOptions {
    /// Takes an option, with its value where it has one; false for one that it does not know.
    pub(crate) fn take(&mut self, option: &str, rest: &mut impl Iterator<Item = String>) -> Result<bool, String> {
        let mut value = || rest.next().ok_or_else(|| format!("{option} needs a value"));
        match option {
            "--store" => self.store = Some(value()?.into()),
            "--policies" => self.policies = Some(value()?.into()),
            "--durability" => {
                self.durability = Some(value()?.parse().map_err(|error| format!("--durability: {error}"))?);
            }
            "--input-text" => {
                self.input_text = value()?.parse().map_err(|error| format!("--input-text: {error}"))?;
            }
            "--checkpoint-name" => self.checkpoint_name = Some(value()?),
            "--checkpoint-seed" => self.checkpoint_seed = Some(value()?.into()),
            "--webhook-retry-seconds" => self.webhook_retry_seconds = Some(value()?),
            "--allow-private-webhooks" => self.allow_private_webhooks = true,
            "--auto-register" => self.auto_register = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Opens the store, a temporary one where none was named. What there is to know of it is said on standard error.
    pub(crate) fn open(self) -> Result<Opened, String> {
        let (store, temporary) = if let Some(store) = self.store {
            (store, None)
        } else {
            let made = tempfile::tempdir().map_err(|error| format!("cannot make a temporary store: {error}"))?;
            eprintln!("temporary store in {}", made.path().display());
            (made.path().to_owned(), Some(made))
        };
        let mut builder =
            Governor::builder().durability(self.durability.unwrap_or(Durability::Sync)).input_text(self.input_text);
        if let Some(policies) = self.policies {
            builder = builder.policies(PolicySet::from_file(policies).map_err(describe)?);
        }
        if self.auto_register {
            builder = builder.auto_register();
        }
        if self.checkpoint_name.is_some() || self.checkpoint_seed.is_some() {
            builder = with_checkpoints(builder, self.checkpoint_name, self.checkpoint_seed)?;
        }
        if self.webhook_retry_seconds.is_some() || self.allow_private_webhooks {
            builder = with_webhooks(builder, self.webhook_retry_seconds, self.allow_private_webhooks)?;
        }
        let governor = builder.open(store).map_err(describe)?;
        for warning in governor.policies().current().warnings() {
            eprintln!("policies, line {}: {}", warning.line, warning.message);
        }
        if let Some(recovered) = &governor.log().opening().recovered {
            eprintln!("a write had been cut short; {} bytes are kept in {}", recovered.bytes, recovered.copy);
        }
        let verification = governor.verify().map_err(describe)?;
        if let Some(broken) = verification.first_broken {
            eprintln!("the log is broken and read-only: {broken}");
        }
        Ok(Opened { governor, _temporary: temporary })
    }
}

#[cfg(feature = "checkpoints")]
fn with_checkpoints(
    builder: GovernorBuilder,
    name: Option<String>,
    seed: Option<PathBuf>,
) -> Result<GovernorBuilder, String> {
    let (Some(name), Some(seed)) = (name, seed) else {
        return Err("--checkpoint-name and --checkpoint-seed go together".to_owned());
    };
    let text = std::fs::read_to_string(&seed).map_err(|error| format!("{}: {error}", seed.display()))?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(text.trim(), &mut bytes)
        .map_err(|_| format!("{}: expected 32 bytes in hex", seed.display()))?;
    let key = rulekeep::checkpoint::CheckpointKey::from_seed(&name, &bytes).map_err(|error| error.to_string())?;
    eprintln!("checkpoints are signed by {}", key.verifier());
    Ok(builder.checkpoints(key))
}

#[cfg(not(feature = "checkpoints"))]
fn with_checkpoints(_: GovernorBuilder, _: Option<String>, _: Option<PathBuf>) -> Result<GovernorBuilder, String> {
    Err("checkpoints need the feature: build with --features checkpoints".to_owned())
}

#[cfg(feature = "webhooks")]
fn with_webhooks(
    mut builder: GovernorBuilder,
    retry_seconds: Option<String>,
    allow_private: bool,
) -> Result<GovernorBuilder, String> {
    if let Some(text) = retry_seconds {
        let seconds = |step: &str| {
            let seconds: f64 = step.trim().parse().map_err(|_| ())?;
            std::time::Duration::try_from_secs_f64(seconds).map_err(|_| ())
        };
        let steps = text.split(',').map(seconds).collect::<Result<Vec<_>, _>>();
        builder =
            builder.webhook_schedule(steps.map_err(|()| "--webhook-retry-seconds: expected seconds, as 0,5,300")?);
    }
    Ok(if allow_private { builder.allow_private_webhooks() } else { builder })
}

#[cfg(not(feature = "webhooks"))]
fn with_webhooks(_: GovernorBuilder, _: Option<String>, _: bool) -> Result<GovernorBuilder, String> {
    Err("webhooks need the feature: build with --features webhooks".to_owned())
}

#[allow(clippy::needless_pass_by_value)] // it is handed to `map_err`
pub(crate) fn describe(error: Error) -> String {
    format!("{}: {error}", error.code())
}
