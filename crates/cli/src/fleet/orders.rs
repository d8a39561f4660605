//! Orders: written, signed by operators, and given to a hub.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use indicatif::HumanCount;
use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep_fleet::order::{Chain, Command, Order, OrderError, Organisation, Policies, SignedOrder, Stage};
use rulekeep_fleet::read_key;
use rulekeep_fleet::wire::Standing;
use serde::Serialize;
use serde_json::json;

use super::link::{Trusted, read};
use super::terms;
use crate::operate::Failed;
use crate::output;

/// A subcommand that gives an order.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Founds the organisation and prints its trust anchor; given a trust anchor, changes the operators
    #[command(
        after_help = "Examples:\n  rulekeep fleet found --name fleet.example.com --log \"$(cat log.pub)\" --operator \"$(cat ann.pub)\" --operator \"$(cat bob.pub)\" --needed 1 --needed-to-loosen 2 --permit 30s --sign ann.key --sign bob.key"
    )]
    Found(Box<Found>),
    /// Sets a kill switch at all members, or at those of some groups
    #[command(after_help = "Examples:\n  rulekeep fleet kill --all --note \"wrong payees\" --sign ann.key --wait")]
    #[command(group = clap::ArgGroup::new("scope").required(true))]
    Kill {
        /// Stops all agents
        #[arg(long, group = "scope")]
        all: bool,
        /// Stops this agent
        #[arg(long, value_name = "AGENT", group = "scope")]
        agent: Option<String>,
        /// Stops the agents of this group
        #[arg(long, value_name = "GROUP", group = "scope")]
        group: Option<String>,
        /// A group of governors that it binds (default: all); can be given several times
        #[arg(long, value_name = "GROUP")]
        governors: Vec<String>,
        /// The reason
        #[arg(long, value_name = "TEXT")]
        note: String,
        #[command(flatten)]
        by: Giving,
    },
    /// Lifts the kill switch of an order
    #[command(after_help = "Examples:\n  rulekeep fleet lift 3 --note \"resolved\" --sign ann.key --sign bob.key")]
    Lift {
        /// The number of the order that set it
        order: u64,
        /// The reason
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        #[command(flatten)]
        by: Giving,
    },
    /// Puts a policy document in force, at once or in stages
    #[command(
        after_help = "Examples:\n  rulekeep fleet roll policy.toml --plan canary:5%:4h,all --sign ann.key --out new.json"
    )]
    Roll {
        /// The document, in TOML
        file: PathBuf,
        /// The stages, each with its share of the governors and its least time
        #[arg(long, value_name = "STAGE,..", value_delimiter = ',', value_parser = terms::stage)]
        plan: Vec<Stage>,
        /// A group of governors that it is for (default: all); can be given several times
        #[arg(long, value_name = "GROUP")]
        governors: Vec<String>,
        #[command(flatten)]
        by: Giving,
    },
    /// Moves a rollout to a stage, without waiting for the stages before it
    #[command(after_help = "Examples:\n  rulekeep fleet skip 2 3 --sign ann.key --sign bob.key")]
    Skip {
        /// The number of the order with the document
        order: u64,
        /// The stage, counted from 1
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        stage: u32,
        #[command(flatten)]
        by: Giving,
    },
    /// Sets the maximum of a limit that all members share
    #[command(
        after_help = "Examples:\n  rulekeep fleet limit refunds/count/organisation 500 --sign ann.key --sign bob.key"
    )]
    Limit {
        /// The counter: RULE/count/organisation, or RULE/sum of KEY/organisation
        counter: String,
        /// The maximum within the limit's window
        #[arg(value_parser = terms::millionths)]
        max: i64,
        #[command(flatten)]
        by: Giving,
    },
    /// Lets the governors of a group decide on LOW-risk reads for some time without a permit
    #[command(after_help = "Examples:\n  rulekeep fleet offline support 900 --sign ann.key --sign bob.key")]
    Offline {
        /// The group
        group: String,
        /// The time after the permit; 0 ends the rule
        seconds: u64,
        #[command(flatten)]
        by: Giving,
    },
    /// Revokes API keys at all members
    #[command(after_help = "Examples:\n  rulekeep fleet revoke key_01m89vy2x6z7e9r8r000000003 --sign ann.key")]
    Revoke {
        /// The IDs of the keys
        #[arg(required = true, value_name = "KEY_ID")]
        keys: Vec<String>,
        #[command(flatten)]
        by: Giving,
    },
    /// Ends the membership of a governor
    #[command(after_help = "Examples:\n  rulekeep fleet retire desk-1 --sign ann.key")]
    Retire {
        /// The governor's ID
        governor: String,
        #[command(flatten)]
        by: Giving,
    },
    /// Declares that a promoted or restored database has lost no grants of shared limits
    #[command(after_help = "Examples:\n  rulekeep fleet reopen --sign ann.key --sign bob.key")]
    Reopen(Giving),
    /// Lets a governor take part again after a fork, a restored folder or a cloned process
    #[command(after_help = "Examples:\n  rulekeep fleet readmit desk-1 --sign ann.key --sign bob.key")]
    Readmit {
        /// The governor's ID
        governor: String,
        #[command(flatten)]
        by: Giving,
    },
}

/// The organisation to found.
#[derive(clap::Args)]
pub(crate) struct Found {
    /// The organisation's name, which is that of its log's key
    #[arg(long)]
    name: String,
    /// The public key that signs its log
    #[arg(long, value_name = "KEY")]
    log: VerifierKey,
    /// The public key of an operator; can be given several times
    #[arg(long = "operator", value_name = "KEY", required = true)]
    operators: Vec<VerifierKey>,
    /// The number of operators who must sign an order
    #[arg(long, value_name = "N")]
    needed: usize,
    /// The number who must sign an order that may allow more than before
    #[arg(long, value_name = "N")]
    needed_to_loosen: usize,
    /// The term of a permit
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::times::duration)]
    permit: Duration,
    #[command(flatten)]
    by: Giving,
}

/// The signatures of an order, and where it goes.
#[derive(clap::Args)]
pub(crate) struct Giving {
    /// The key file of an operator who signs; can be given several times
    #[arg(long = "sign", value_name = "FILE", required = true)]
    signers: Vec<PathBuf>,
    /// Writes the order to this file, for more signatures, instead of giving it to the hub
    #[arg(long, value_name = "FILE", conflicts_with = "wait")]
    out: Option<PathBuf>,
    #[command(flatten)]
    trusted: Trusted,
    /// Waits until every member has the order in force or no permit; exits with 1 if one refuses it
    #[arg(long)]
    wait: bool,
    /// Prints the answer as JSON
    #[arg(long)]
    json: bool,
}

/// An order in a file, and its further signatures.
#[derive(clap::Args)]
pub(crate) struct SignOptions {
    /// The file, written anew if --out is not given
    file: PathBuf,
    /// Gives the order to the hub
    #[arg(long, conflicts_with = "out")]
    post: bool,
    #[command(flatten)]
    by: Giving,
}

/// Writes, signs and gives an order.
pub(super) fn give(verb: Verb) -> Result<ExitCode, Failed> {
    let (command, by) = verb.command()?;
    let founds = matches!(command, Command::Organisation(_)) && by.trusted.anchor()?.is_none();
    let chain = by.chain(founds)?;
    let order = Order::next(&chain, SystemClock.now(), command);
    order.check_document().map_err(|error| error.to_string())?;
    let signed = order.sign(&by.keys()?).map_err(|error| error.to_string())?;
    by.give(chain, &signed, by.out.as_ref())
}

/// Adds signatures to an order.
pub(super) fn sign(options: &SignOptions) -> Result<ExitCode, Failed> {
    let SignOptions { file, post, by } = options;
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut signed: SignedOrder = serde_json::from_str(&read(file)?).map_err(|error| wrong(&error))?;
    let order = signed.read().map_err(|error| wrong(&error))?;
    eprintln!("{}", output::fields(&json!(order)));
    by.keys()?.iter().for_each(|key| signed.add(key));
    if *post {
        return by.give(by.chain(order.seq == 1)?, &signed, None);
    }
    write(by.out.as_ref().unwrap_or(file), &signed)
}

impl Verb {
    fn command(self) -> Result<(Command, Giving), Failed> {
        Ok(match self {
            Self::Found(found) => found.command(),
            Self::Kill { agent, group, governors: groups, note, by, .. } => {
                let scope = match (agent, group) {
                    (Some(agent), _) => KillSwitchScope::agent(&agent),
                    (None, Some(group)) => KillSwitchScope::group(&group),
                    (None, None) => Ok(KillSwitchScope::All),
                };
                let scope = scope.map_err(|error| Failed::usage(&error.to_string()))?;
                (Command::Stop { scope, groups, note }, by)
            }
            Self::Lift { order, note, by } => (Command::Lift { order, note }, by),
            Self::Roll { file, plan, governors: groups, by } => {
                (Command::Policies(Policies { groups, document: read(&file)?, plan }), by)
            }
            Self::Skip { order, stage, by } => (Command::Skip { order, stage: stage as usize - 1 }, by),
            Self::Limit { counter, max, by } => (Command::Limit { counter, max }, by),
            Self::Offline { group, seconds, by } => (Command::Offline { group, seconds }, by),
            Self::Revoke { keys, by } => (Command::RevokeKeys { keys: BTreeSet::from_iter(keys) }, by),
            Self::Retire { governor, by } => (Command::Retire { governor }, by),
            Self::Reopen(by) => (Command::Reopen, by),
            Self::Readmit { governor, by } => (Command::Readmit { governor }, by),
        })
    }
}

impl Found {
    fn command(self) -> (Command, Giving) {
        let organisation = Organisation {
            name: self.name,
            log: self.log.to_string(),
            operators: self.operators.iter().map(ToString::to_string).collect(),
            needed: self.needed,
            needed_to_loosen: self.needed_to_loosen,
            permit_seconds: self.permit.as_secs(),
        };
        (Command::Organisation(organisation), self.by)
    }
}

impl Giving {
    fn keys(&self) -> Result<Vec<CheckpointKey>, Failed> {
        let keys: Result<_, _> = self.signers.iter().map(|file| read_key(file)).collect();
        Ok(keys.map_err(|error| error.to_string())?)
    }

    fn chain(&self, founds: bool) -> Result<Chain, Failed> {
        if founds { Ok(Chain::new(None)) } else { self.trusted.chain() }
    }

    /// Verifies the next order of a chain, and writes it to a file or gives it to the hub.
    fn give(&self, mut chain: Chain, signed: &SignedOrder, out: Option<&PathBuf>) -> Result<ExitCode, Failed> {
        match (chain.add(signed), out) {
            (Ok(_) | Err(OrderError::TooFewSignatures { .. }), Some(file)) => write(file, signed),
            (Ok(_), None) => self.post(signed),
            (Err(error @ OrderError::TooFewSignatures { .. }), None) => {
                Err(format!("{error}; others add theirs to a file, by --out and: rulekeep fleet sign").into())
            }
            (Err(error), _) => Err(error.to_string().into()),
        }
    }

    /// Gives an order to the hub, and shows how far it is carried out.
    fn post(&self, signed: &SignedOrder) -> Result<ExitCode, Failed> {
        let hub = &self.trusted.hub;
        let mut standing: Standing = hub.post("/fleet/v1/orders", &json!(signed).to_string())?;
        while self.wait && standing.open > 0 {
            std::thread::sleep(PAUSE);
            standing = hub.get(&format!("/fleet/v1/orders/{}", standing.seq), &[])?;
        }
        let digest = signed.digest().to_string();
        if self.json {
            output::print(&output::json(&Given { standing: &standing, digest }))?;
        } else {
            // The digest of the first order is the trust anchor.
            output::print(&if standing.seq == 1 { digest } else { described(&standing) })?;
        }
        Ok(if self.wait && !standing.refused.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// An order that was given to the hub.
#[derive(Serialize)]
struct Given<'a> {
    #[serde(flatten)]
    standing: &'a Standing,
    digest: String,
}

/// Describes a standing in one line.
fn described(standing: &Standing) -> String {
    let Standing { seq, acknowledged, ended, open, refused, bound, .. } = standing;
    let [acknowledged, ended, left] = [acknowledged, ended, open].map(|count| HumanCount(*count));
    let bound = bound.to_string();
    let until = format!(" until {}Z at the latest", bound.get(11..19).unwrap_or(&bound));
    let until = if *open > 0 { until } else { String::new() };
    let refused = if refused.is_empty() { String::new() } else { format!("; refused by {}", refused.join(", ")) };
    let line = format!("order {seq}: {acknowledged} acknowledged, {ended} ended, {left} open{until}{refused}");
    output::clean(&line)
}

/// Writes an order to a file, and prints its digest.
fn write(file: &PathBuf, signed: &SignedOrder) -> Result<ExitCode, Failed> {
    std::fs::write(file, format!("{}\n", json!(signed))).map_err(|error| format!("{}: {error}", file.display()))?;
    output::print(&signed.digest().to_string())?;
    Ok(ExitCode::SUCCESS)
}

const PAUSE: Duration = Duration::from_millis(500);
