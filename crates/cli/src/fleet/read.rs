//! Members, copied records and bundles.

use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::checkpoint::VerifierKey;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, RiskLevel};
use rulekeep_fleet::bundle::Bundle;
use rulekeep_fleet::cosignature::WitnessKey;
use rulekeep_fleet::hub::{MemberInfo, Members};
use serde::Serialize;
use serde_json::{Value, json};

use super::link::{Hub, read};
use crate::operate::{Failed, upper};
use crate::output::{self, Column, cell};

/// The list of members.
#[derive(clap::Args)]
pub(crate) struct Who {
    #[command(flatten)]
    hub: Hub,
    /// Prints the answer as JSON
    #[arg(long)]
    json: bool,
}

/// The members whose logs to show.
#[derive(clap::Args)]
pub(crate) struct Coverage {
    /// One governor (default: all)
    governor: Option<String>,
    #[command(flatten)]
    who: Who,
}

/// The records to find.
#[derive(clap::Args)]
pub(crate) struct Query {
    /// Filters such as agent=ID, governor=ID, decision=deny, risk=high, from=1d, to=TIME and limit=N
    #[arg(default_value = "")]
    filters: String,
    #[command(flatten)]
    hub: Hub,
}

/// The record to prove.
#[derive(clap::Args)]
pub(crate) struct BundleOptions {
    /// The record's ID
    record: String,
    /// The governor that decided, where several have copied a record with this ID
    #[arg(long, value_name = "GOVERNOR")]
    governor: Option<String>,
    #[command(flatten)]
    hub: Hub,
}

/// The bundle to verify, and the keys to trust.
#[derive(clap::Args)]
pub(crate) struct Verify {
    /// The bundle
    file: PathBuf,
    /// The public key of the organisation's log
    #[arg(long, value_name = "KEY")]
    organisation: VerifierKey,
    /// The public key of an operator at the time of the enrolment; can be given several times
    #[arg(long = "operator", value_name = "KEY", required = true)]
    operators: Vec<VerifierKey>,
    /// The public key of a witness; can be given several times
    #[arg(long = "witness", value_name = "KEY")]
    witnesses: Vec<WitnessKey>,
    /// The number of these witnesses that must have cosigned (default: all)
    #[arg(long, value_name = "N")]
    needed: Option<usize>,
}

/// The columns of a table of members.
type Columns = [Column<MemberInfo>];

const WHO: &Columns = &[
    ("governor", |member| cell(&member.id)),
    ("groups", |member| cell(&member.groups)),
    ("order", |member| cell(&member.order)),
    ("permit until", |member| cell(&time(member.permit_until))),
    ("anchored", |member| cell(&member.anchored)),
    ("copied", |member| cell(&member.copied)),
    ("seen", |member| cell(&time(member.seen_at))),
    ("trouble", |member| cell(&trouble(member))),
];
const COVERAGE: &Columns = &[
    ("governor", |member| cell(&member.id)),
    ("anchored", |member| cell(&member.anchored)),
    ("at", |member| cell(&time(member.anchored_at))),
    ("copied", |member| cell(&member.copied)),
    ("missing", |member| cell(&missing(member))),
    ("seen", |member| cell(&time(member.seen_at))),
    ("trouble", |member| cell(&trouble(member))),
];

/// Lists the members.
pub(super) fn who(options: &Who) -> Result<ExitCode, Failed> {
    let members = options.members()?;
    options.show(&members, &members.members, WHO)
}

/// Shows how much of each log is anchored and copied.
pub(super) fn coverage(options: &Coverage) -> Result<ExitCode, Failed> {
    let mut members = options.who.members()?.members;
    if let Some(wanted) = &options.governor {
        members.retain(|member| member.id == *wanted);
        if members.is_empty() {
            return Err(format!("no governor {wanted} is enrolled").into());
        }
    }
    let rows: Vec<Value> = members.iter().map(row).collect();
    options.who.show(&rows, &members, COVERAGE)?;
    let is_in_trouble = members.iter().any(|member| !member.trouble.is_empty());
    Ok(if is_in_trouble { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Who {
    fn members(&self) -> Result<Members, Failed> {
        self.hub.get("/fleet/v1/members", &[])
    }

    fn show(&self, answer: &impl Serialize, members: &[MemberInfo], columns: &Columns) -> Result<ExitCode, Failed> {
        if self.json {
            output::print(&output::json(answer))?;
        } else if members.is_empty() {
            eprintln!("none");
        } else {
            output::print(&output::table(members, columns))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(member: &MemberInfo) -> Value {
    json!({
        "governor": member.id, "groups": member.groups, "order": member.order, "anchored": member.anchored,
        "copied": member.copied, "missing": missing(member), "trouble": trouble(member),
        "permitUntil": time(member.permit_until), "anchoredAt": time(member.anchored_at), "seenAt": time(member.seen_at),
    })
}

fn time(millis: i64) -> Option<Timestamp> {
    (millis > 0).then(|| Timestamp::from_millis(millis))
}

const fn missing(member: &MemberInfo) -> u64 {
    member.anchored.saturating_sub(member.copied)
}

fn trouble(member: &MemberInfo) -> String {
    match member.refused.last_key_value() {
        _ if member.is_retired => "retired".to_owned(),
        Some((order, why)) if member.trouble.is_empty() => format!("order {order} is not in force: {why}"),
        _ => member.trouble.clone(),
    }
}

/// Prints copied records.
pub(super) fn query(options: &Query) -> Result<ExitCode, Failed> {
    let filters: Result<Vec<_>, _> = options.filters.split_whitespace().map(filter).collect();
    let filters = filters.map_err(|error| Failed::usage(&error))?;
    let found: Vec<Value> = options.hub.get("/fleet/v1/records", &filters)?;
    for record in found {
        if !output::print(&output::json(&record))? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a filter as a parameter of the hub's call.
fn filter(text: &str) -> Result<(&str, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let read = match name {
        "agent" | "governor" if !value.is_empty() => value.to_owned(),
        "decision" => upper::<Decision>(value)?.to_string(),
        "risk" => upper::<RiskLevel>(value)?.to_string(),
        "from" => return Ok(("since", crate::times::from(value)?.as_millis().to_string())),
        "to" => return Ok(("until", crate::times::to(value)?.as_millis().to_string())),
        "limit" => value.parse::<u32>().map_err(|error| format!("{text}: {error}"))?.to_string(),
        _ => return Err(format!("{text:?}: expected {FILTERS}")),
    };
    Ok((name, read))
}

/// Prints a bundle.
pub(super) fn bundle(options: &BundleOptions) -> Result<ExitCode, Failed> {
    let of: Vec<_> = options.governor.iter().map(|governor| ("governor", governor.clone())).collect();
    let bundle: Value = options.hub.get(&format!("/fleet/v1/bundles/{}", options.record), &of)?;
    output::print(&output::json(&bundle))?;
    Ok(ExitCode::SUCCESS)
}

/// Verifies a bundle.
pub(super) fn verify(options: &Verify) -> Result<ExitCode, Failed> {
    let Verify { file, organisation, operators, witnesses, needed } = options;
    let text = read(file)?;
    let verified = Bundle::parse(&text)
        .and_then(|bundle| bundle.verify(organisation, operators, witnesses, needed.unwrap_or(witnesses.len())));
    let verified = verified.map_err(|error| format!("{}: {error}", file.display()))?;
    output::print(&output::clean(&verified.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

const FILTERS: &str = "agent=, governor=, decision=, risk=, from=, to= or limit= with a value";
