//! `rulekeep policy replay` and `shadow`: a candidate set on past decisions, and beside the set in force.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rulekeep::document::File;
use rulekeep::preview::{Replay, ReplayChange, ShadowDifference, ShadowReport};
use rulekeep::system::Timestamp;
use rulekeep::{Governor, PolicySet};
use rulekeep_server::calls::policies::{Shadow, Shadowed};
use serde::Serialize;
use serde_json::json;

use super::past::Store;
use rulekeep_server::calls::request::StoredIntent;

/// The arguments of `rulekeep policy replay`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    store: Store,
    /// The candidate: .toml or .json
    policy: PathBuf,
    /// Prints the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The arguments of `rulekeep policy shadow`.
#[derive(Args)]
pub struct ShadowArguments {
    /// Sets this document as the shadow of the set in force; without it, shows the results of the current shadow
    #[arg(value_name = "POLICY", conflicts_with = "clear")]
    policy: Option<PathBuf>,
    /// Removes the shadow set
    #[arg(long)]
    clear: bool,
    /// Prints the report as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A decision that would change, with data from its record.
#[derive(Serialize)]
struct Changed<'a> {
    agent: String,
    /// The action; `None` if the evidence can no longer be read.
    action: Option<String>,
    at: Timestamp,
    #[serde(flatten)]
    change: &'a ReplayChange,
}

/// A replay whose changes have data from their records.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    #[serde(flatten)]
    replay: &'a Replay,
    // These take the place of the replay's own, because an object keeps the last of two values.
    changes: &'a [Changed<'a>],
    hanging_changes: &'a [Changed<'a>],
}

/// Replays a log. Returns whether no decision would change.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let candidate = PolicySet::from_file(&arguments.policy)?;
    let governor = arguments.store.open()?;
    let replay = governor.policies().replay(&candidate, &arguments.store.range.to_replay(), |_| {})?;
    let [changes, hanging] =
        [&replay.changes, &replay.counter_dependent_changes].map(|list| looked_up(&governor, list));
    let (changes, hanging) = (changes?, hanging?);
    governor.close()?;
    if arguments.json {
        let report = Report { replay: &replay, changes: &changes, hanging_changes: &hanging };
        super::print_json(&json!(report))?;
    } else {
        super::print(told(&replay, &changes, &hanging)?)?;
    }
    Ok(replay.changed == 0 && hanging.is_empty())
}

fn looked_up<'a>(governor: &Governor, list: &'a [ReplayChange]) -> Result<Vec<Changed<'a>>, rulekeep::Error> {
    let one = |change: &'a ReplayChange| {
        let record = governor.log().record(&change.proof_id)?;
        let evidence = governor.log().evidence(&change.proof_id).ok();
        let action = StoredIntent::read(evidence.as_ref().map(|evidence| &evidence.intent)).parsed_action;
        Ok(Changed { agent: record.entity_id.to_string(), action, at: record.timestamp, change })
    };
    list.iter().map(one).collect()
}

fn told(replay: &Replay, changes: &[Changed<'_>], hanging: &[Changed<'_>]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for (list, note) in [(changes, ""), (hanging, "  (depends on rate-limit counters)")] {
        for Changed { agent, action, at, change } in list {
            let ReplayChange { was, now, rules, was_rules, differs, proof_id, .. } = change;
            let action = action.as_deref().unwrap_or("(erased)");
            let differs = if differs.contains(&"decision") {
                String::new()
            } else {
                format!(", other {}", differs.join(" and "))
            };
            writeln!(
                text,
                "{at}  {agent}  {action}  {was} ({}) -> {now} ({}){differs}  {proof_id}{note}",
                named(was_rules),
                named(rules)
            )?;
        }
    }
    writeln!(text, "{} of {} decisions would differ", replay.changed, replay.records)?;
    let listed = u64::try_from(changes.len()).unwrap_or(u64::MAX);
    for (count, what) in [
        (
            replay.changed.saturating_sub(listed),
            "more changes are not listed; narrow the range with --from, --to and --agent",
        ),
        (replay.counter_dependent, "decisions depend on rate-limit counters, which are not replayed"),
        (replay.answered, "decisions depend on a reviewer's answer, which was kept as it is"),
        (replay.barred, "denials by the kill switch, a suspension or a mandate were left out: no policy made them"),
        (replay.failed, "decisions fail on a condition of the candidate"),
        (
            replay.not_replayable + replay.erased,
            "decisions cannot be replayed: their evidence was erased or has another format",
        ),
    ] {
        if count > 0 {
            writeln!(text, "{count} {what}")?;
        }
    }
    Ok(text)
}

/// Sets a shadow policy set in a running service, removes it, or reports its results. `make` makes the service's call.
/// The exit code is 1 if the shadow set would have decided differently or fails.
///
/// # Errors
///
/// Returns a message if the document does not load or the call fails.
pub fn run_shadow(
    arguments: &ShadowArguments,
    make: &dyn Fn(Shadow) -> Result<Shadowed, String>,
) -> Result<bool, Box<dyn Error>> {
    let call = match &arguments.policy {
        _ if arguments.clear => Shadow { clear: Some(true), ..Shadow::default() },
        Some(path) => {
            let File { name, format, text } = File::read(path, "policy", PolicySet::MAX_BYTES, super::too_large)?;
            // Problems are reported with the name of the file.
            PolicySet::parse(&text, format, &name)?;
            Shadow { text: Some(text), format: Some(format), ..Shadow::default() }
        }
        None => Shadow::default(),
    };
    let report = make(call)?;
    if arguments.json {
        super::print_json(&json!(report))?;
    } else {
        super::print(told_shadow(report.shadow.as_ref())?)?;
    }
    Ok(report.shadow.is_none_or(|shadow| shadow.differed == 0 && shadow.failed == 0))
}

fn told_shadow(shadow: Option<&ShadowReport>) -> Result<String, std::fmt::Error> {
    let Some(ShadowReport { decided, differed, failed, differences, .. }) = shadow else {
        return Ok("no shadow policy set is loaded; name a document to load one\n".to_owned());
    };
    let mut text = String::new();
    for ShadowDifference { agent_id, was, shadow, proof_id, rules, .. } in differences {
        writeln!(text, "{agent_id}  {was} -> {shadow} ({})  {proof_id}", named(rules))?;
    }
    writeln!(text, "{differed} of {decided} decisions would have differed; {failed} fail on a condition")?;
    Ok(text)
}

fn named(rules: &[Arc<str>]) -> String {
    if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") }
}
