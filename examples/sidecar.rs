//! A governor behind standard input and output: JSON-RPC 2.0, one message a
//! line, so that a runtime in any language can embed it with no network.
//!
//! ```text
//! cargo run --release --example sidecar -- [--store DIR] [--policies FILE]
//!     [--durability sync|buffered|sync-from:RISK] [--auto-register]
//!     [--checkpoint-name NAME --checkpoint-seed FILE]
//!     [--webhook-retry-seconds N,N,.. ] [--allow-private-webhooks]
//! ```
//!
//! Those of checkpoints need the feature `checkpoints`; the file holds the key's 32 secret
//! bytes in hex. The public key is said on standard error. Those of webhooks need the
//! feature `webhooks`: how long is waited before each attempt, instead of the documented
//! times, and that loopback and private addresses may be endpoints.

use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::{Durability, Error, Governor, GovernorBuilder, PolicySet, sidecar};

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("sidecar: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sidecar: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), String> {
    let temporary;
    let store = if let Some(store) = options.store {
        store
    } else {
        temporary = tempfile::tempdir().map_err(|error| format!("cannot make a temporary store: {error}"))?;
        eprintln!("sidecar: temporary store in {}", temporary.path().display());
        temporary.path().to_owned()
    };
    let mut builder = Governor::builder().durability(options.durability);
    if let Some(policies) = options.policies {
        builder = builder.policies(PolicySet::from_file(policies).map_err(describe)?);
    }
    if options.auto_register {
        builder = builder.auto_register();
    }
    if options.checkpoint_name.is_some() || options.checkpoint_seed.is_some() {
        builder = with_checkpoints(builder, options.checkpoint_name, options.checkpoint_seed)?;
    }
    if options.webhook_retry_seconds.is_some() || options.allow_private_webhooks {
        builder = with_webhooks(builder, options.webhook_retry_seconds, options.allow_private_webhooks)?;
    }
    let governor = builder.open(store).map_err(describe)?;
    for warning in governor.policies().warnings() {
        eprintln!("sidecar: policies, line {}: {}", warning.line, warning.message);
    }
    if let Some(recovered) = &governor.opening().recovered {
        eprintln!("sidecar: a write had been cut short; {} bytes are kept in {}", recovered.bytes, recovered.copy);
    }
    let verification = governor.verify().map_err(describe)?;
    if let Some(broken) = verification.first_broken {
        eprintln!("sidecar: the log is broken and read-only: {broken}");
    }
    let served = sidecar::serve(&governor, BufReader::new(io::stdin().lock()), io::stdout());
    governor.close().map_err(describe)?;
    match served {
        // Whoever asked has gone; that is an end like any other.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
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
    eprintln!("sidecar: checkpoints are signed by {}", key.verifier());
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
fn describe(error: Error) -> String {
    format!("{}: {error}", error.code())
}

struct Options {
    store: Option<PathBuf>,
    policies: Option<PathBuf>,
    durability: Durability,
    auto_register: bool,
    checkpoint_name: Option<String>,
    checkpoint_seed: Option<PathBuf>,
    webhook_retry_seconds: Option<String>,
    allow_private_webhooks: bool,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            store: None,
            policies: None,
            durability: Durability::Sync,
            auto_register: false,
            checkpoint_name: None,
            checkpoint_seed: None,
            webhook_retry_seconds: None,
            allow_private_webhooks: false,
        };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--store" => options.store = Some(value()?.into()),
                "--policies" => options.policies = Some(value()?.into()),
                "--durability" => {
                    options.durability = value()?.parse().map_err(|error| format!("--durability: {error}"))?;
                }
                "--checkpoint-name" => options.checkpoint_name = Some(value()?),
                "--checkpoint-seed" => options.checkpoint_seed = Some(value()?.into()),
                "--webhook-retry-seconds" => options.webhook_retry_seconds = Some(value()?),
                "--allow-private-webhooks" => options.allow_private_webhooks = true,
                "--auto-register" => options.auto_register = true,
                other => return Err(format!("unknown option {other:?}")),
            }
        }
        Ok(options)
    }
}

const USAGE: &str = "usage: sidecar [--store DIR] [--policies FILE] [--durability sync|buffered|sync-from:RISK] [--auto-register] \
                     [--checkpoint-name NAME --checkpoint-seed FILE] [--webhook-retry-seconds N,N,..] [--allow-private-webhooks]";
