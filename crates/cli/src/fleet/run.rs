//! The hub, the witness, keys and invitations.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::system::{Clock as _, SystemClock, SystemEntropy, Timestamp};
use rulekeep_fleet::cosignature::WitnessKey;
use rulekeep_fleet::enrolment::Invitation;
use rulekeep_fleet::hub::{self, Settings};
use rulekeep_fleet::witness::Witness;
use rulekeep_fleet::{read_key, write_key};
use serde_json::json;
use tokio::net::TcpListener;

use super::link::{Trusted, read, set};
use crate::operate::Failed;
use crate::output;
use crate::serve::{Tls, ended};

/// The settings of a hub.
#[derive(clap::Args)]
pub(crate) struct HubOptions {
    /// The URL of the database; its host may be a list (default: `RULEKEEP_FLEET_DATABASE`)
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Certificates, in PEM, that the database's certificate may be signed by
    #[arg(long, value_name = "FILE")]
    database_ca: Option<PathBuf>,
    /// The key file of the organisation's log
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// A witness that must cosign, with the URL of its add-checkpoint call; can be given several times
    #[arg(long = "witness", value_name = "KEY=URL", value_parser = witness_at)]
    witnesses: Vec<(WitnessKey, String)>,
    /// The folder to which the log is written as files
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
    /// The file with the token for callers that read; without it nobody may
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    #[command(flatten)]
    listening: Listening,
}

/// The settings of a witness.
#[derive(clap::Args)]
pub(crate) struct WitnessOptions {
    /// The key file of the witness
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The public key of a log to cosign; can be given several times
    #[arg(long = "log", value_name = "KEY", required = true)]
    logs: Vec<VerifierKey>,
    /// The folder with the newest checkpoint of each log
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    listening: Listening,
}

/// The address to listen on.
#[derive(clap::Args)]
struct Listening {
    /// The address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7443")]
    listen: String,
    #[command(flatten)]
    tls: Tls,
    /// Permits other addresses than loopback without TLS, for a proxy that ends TLS
    #[arg(long)]
    behind_proxy: bool,
}

/// The key to make.
#[derive(clap::Args)]
pub(crate) struct KeyOptions {
    /// The key's name: of an operator, or of a log or witness as a URL without scheme
    name: String,
    /// The file to write, which only its owner can read
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Prints the public half in the form of a witness
    #[arg(long)]
    witness: bool,
}

/// The invitation to sign.
#[derive(clap::Args)]
pub(crate) struct EnrolOptions {
    /// A group of the governors; can be given several times
    #[arg(long = "group", value_name = "GROUP", required = true)]
    groups: Vec<String>,
    /// The number of governors that may enrol
    #[arg(long, value_name = "N", default_value_t = 1)]
    uses: u32,
    /// The time for which they may
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = crate::times::duration)]
    time: Duration,
    /// The key file of an operator who signs
    #[arg(long = "sign", value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    trusted: Trusted,
}

/// Serves a hub until the process is asked to end.
pub(super) fn hub(options: HubOptions) -> Result<ExitCode, Failed> {
    let database = options.database.or_else(|| set(DATABASE));
    let database = database.ok_or_else(|| Failed::usage(&format!("this needs --database or {DATABASE}")))?;
    let read_token = options.read_token_file.as_ref().map(read).transpose()?;
    let ca = options.database_ca.as_ref().map(read).transpose()?;
    let settings = Settings {
        database,
        database_ca: ca.map(String::into_bytes),
        key: opened(&options.key)?,
        witnesses: options.witnesses,
        publish: options.publish,
        read_token: read_token.map(|token| token.trim().to_owned()),
    };
    options.listening.serve(async {
        let hub = hub::Hub::start(settings).await?;
        tokio::spawn(tell_problems(hub.clone()));
        Ok(hub.router())
    })
}

/// Serves a witness until the process is asked to end.
pub(super) fn witness(options: &WitnessOptions) -> Result<ExitCode, Failed> {
    let key = opened(&options.key)?;
    let witness = Witness::open(&options.folder, key.name(), &key.seed(), &options.logs);
    let witness = witness.map_err(|error| error.to_string())?;
    options.listening.serve(async { Ok(hub::witness_router(witness)) })
}

impl Listening {
    /// Serves a router, and prints a line of JSON when it is ready.
    fn serve(&self, router: impl Future<Output = Result<Router, hub::HubError>>) -> Result<ExitCode, Failed> {
        let server = self.tls.server()?.max_connections(MOST_CONNECTIONS).drain_timeout(DRAIN);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let listen = &self.listen;
        runtime.block_on(async {
            let listener = TcpListener::bind(listen).await.map_err(|error| format!("{listen}: {error}"))?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            self.check(address)?;
            let ended = ended()?;
            let router = router.await.map_err(|error| error.to_string())?;
            output::print(&json!({ "url": format!("{}://{address}", self.tls.scheme()) }).to_string())?;
            // A member whose wait is cut asks again.
            let _ = server.serve(listener, router, ended).await;
            Ok::<_, Failed>(())
        })?;
        runtime.shutdown_timeout(DRAIN);
        Ok(ExitCode::SUCCESS)
    }

    fn check(&self, address: SocketAddr) -> Result<(), Failed> {
        if self.tls.is_on() || self.behind_proxy || address.ip().is_loopback() {
            return Ok(());
        }
        let why = format!("{address} is no loopback address: give --tls-certificate and --tls-key, or --behind-proxy");
        Err(Failed::usage(&why))
    }
}

/// Writes what a hub cannot do to standard error, once for each change.
async fn tell_problems(hub: hub::Hub) {
    let mut told = None;
    loop {
        let problem = hub.problem();
        if problem != told {
            eprintln!("hub: {}", problem.as_deref().unwrap_or("all is well again"));
            told = problem;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Makes a key.
pub(super) fn key(options: &KeyOptions) -> Result<ExitCode, Failed> {
    let key = CheckpointKey::generate(&options.name, &SystemEntropy).map_err(|error| error.to_string())?;
    let of_witness = WitnessKey::from_seed(&options.name, &key.seed()).map_err(|error| error.to_string())?;
    write_key(&options.out, &key).map_err(|error| error.to_string())?;
    output::print(&if options.witness { of_witness.to_string() } else { key.verifier().to_string() })?;
    Ok(ExitCode::SUCCESS)
}

/// Signs an invitation.
pub(super) fn enrol(options: EnrolOptions) -> Result<ExitCode, Failed> {
    let key = opened(&options.key)?;
    let chain = options.trusted.chain()?;
    let organisation = chain.organisation().ok_or_else(|| "the organisation is not founded yet".to_owned())?;
    if chain.operators().get(key.name()) != Some(&key.verifier()) {
        return Err(format!("{} is not an operator of {}", key.verifier(), organisation.name).into());
    }
    let time = i64::try_from(options.time.as_millis()).unwrap_or(i64::MAX);
    let own = CheckpointKey::generate("invitation", &SystemEntropy).map_err(|error| error.to_string())?;
    let invitation = Invitation {
        organisation: organisation.name.clone(),
        key: own.verifier().to_string(),
        groups: options.groups,
        uses: options.uses,
        expires_at: Timestamp::from_millis(SystemClock.now().as_millis().saturating_add(time)),
    };
    output::print(&invitation.sign(&own, &key))?;
    Ok(ExitCode::SUCCESS)
}

fn opened(file: &Path) -> Result<CheckpointKey, Failed> {
    Ok(read_key(file).map_err(|error| error.to_string())?)
}

/// Reads a witness and its URL. Its key contains no `=`, and its name may contain one.
fn witness_at(text: &str) -> Result<(WitnessKey, String), String> {
    let (key, rest) = text.split_once("=http").ok_or("expected KEY=URL")?;
    let key = key.parse().map_err(|error| format!("{error}"))?;
    Ok((key, format!("http{rest}")))
}

const DATABASE: &str = "RULEKEEP_FLEET_DATABASE";
/// Connections of a hub, as far as the limit of open files permits.
const MOST_CONNECTIONS: usize = 20_000;
/// The time for calls in progress at the end.
const DRAIN: Duration = Duration::from_secs(3);
