//! A suggestion as a policy document, each rule with the calls that support it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rulekeep::intent::Capability;
use rulekeep::{RiskLevel, Tier};

use super::merge::{self, Rule};
use super::{Call, Counts, Held, Support};
use crate::policy::{shown, toml_text};

/// The coverage of the document, as comments before it.
pub(super) fn coverage(held: &Held, counts: &Counts) -> String {
    let Held { covered, missed, .. } = held;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let share = *covered as f64 * 100.0 / counts.fine.max(1) as f64;
    let mut text = format!(
        "# Covers {covered} of {} requests at LOW and MEDIUM risk that were allowed or approved and did not fail ({share:.1} %).\n",
        counts.fine
    );
    let mut missed: Vec<(&String, &u64)> = missed.iter().collect();
    missed.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    if !missed.is_empty() {
        text.push_str("# Not covered, for it was too rare, not understood, or like something that was refused:\n");
    }
    for (what, count) in missed.iter().take(MOST_MISSED) {
        let _ = writeln!(text, "#   {count} times {}", shown(what));
    }
    if missed.len() > MOST_MISSED {
        let _ = writeln!(text, "#   and {} kinds more", missed.len() - MOST_MISSED);
    }
    text
}

/// Returns the document.
pub(super) fn document(rules: &[Rule], counts: &Counts, calls: &[Call]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, rules, counts, calls);
    text
}

fn write(text: &mut String, rules: &[Rule], counts: &Counts, calls: &[Call]) -> std::fmt::Result {
    let grave: Vec<&Call> = calls.iter().filter(|call| call.is_fine() && call.level() == RiskLevel::High).collect();
    writeln!(text, "# Derived from {} past decisions. What no rule names stays denied.", counts.decisions)?;
    if counts.critical > 0 {
        writeln!(
            text,
            "# {} requests at CRITICAL risk were fine; no rule allows such a request by habit.",
            counts.critical
        )?;
    }
    writeln!(text, "\nname = \"suggested\"")?;
    let of_rules = rules.iter().flat_map(|rule| &rule.capabilities);
    let own = of_rules.chain(grave.iter().flat_map(|call| &call.capabilities)).filter(|capability| is_own(capability));
    let own: BTreeSet<String> = own.cloned().collect();
    if !own.is_empty() {
        writeln!(text, "vocabulary = {}", list(&own))?;
    }
    for rule in rules {
        write_rule(text, rule)?;
    }
    let is_dark = |capability: &str| merge::is_unknown(capability);
    let everyday = calls.iter().filter(|call| call.is_fine() && call.risk <= RiskLevel::Medium);
    let dark: Vec<&Call> = everyday.filter(|call| call.capabilities.iter().any(|one| is_dark(one))).collect();
    write_asking(
        text,
        "high-risk",
        "HIGH risk is never allowed",
        "min = \"HIGH\", max = \"HIGH\"",
        &grave,
        calls,
        |_| true,
    )?;
    write_asking(
        text,
        "not-understood",
        "What is not understood is never allowed",
        "max = \"MEDIUM\"",
        &dark,
        calls,
        is_dark,
    )
}

fn write_rule(text: &mut String, rule: &Rule) -> std::fmt::Result {
    writeln!(text)?;
    write_support(text, &rule.support)?;
    writeln!(text, "[[rule]]\nid = {}\neffect = \"allow\"", toml_text(&rule.id))?;
    if rule.patterns.is_empty() {
        writeln!(text, "when = {}", toml_text(NO_TARGET))?;
    }
    writeln!(text, "[rule.match]\nagents = {}", list(&rule.agents))?;
    if rule.least_tier > Tier::T0 {
        writeln!(text, "tiers = {{ min = \"{}\" }}", rule.least_tier.as_str())?;
    }
    writeln!(text, "risk = {{ max = \"{}\" }}", rule.most_risk)?;
    writeln!(text, "capabilities = {}", list(&rule.capabilities))?;
    if !rule.form.formats.is_empty() {
        writeln!(text, "formats = {}", list(&rule.form.formats.iter().cloned().collect()))?;
    }
    if let Some(server) = &rule.form.server {
        writeln!(text, "servers = [{}]", toml_text(server))?;
    }
    let named: BTreeSet<String> = rule.whats.iter().filter(|what| !what.is_empty()).cloned().collect();
    if !named.is_empty() {
        writeln!(text, "{} = {}", if rule.form.is_action { "actions" } else { "tools" }, list(&named))?;
    }
    if rule.form.runs {
        writeln!(text, "runs = \"any\"")?;
    }
    let globs: Option<BTreeSet<String>> = rule.patterns.iter().map(super::targets::Pattern::glob).collect();
    match globs {
        Some(globs) if globs.is_empty() => {}
        Some(globs) => writeln!(text, "targets = {}", list(&globs))?,
        None => {
            let all: Vec<String> = rule.patterns.iter().map(super::targets::Pattern::regex).collect();
            let regex = format!("(?is)^(?:{})$", all.join("|"));
            writeln!(text, "context = [{{ key = \"facts.targets\", matches = {} }}]", toml_text(&regex))?;
        }
    }
    Ok(())
}

/// Writes a rule that keeps a reviewer deciding on requests that were fine but are not to be allowed by habit.
fn write_asking(
    text: &mut String,
    name: &str,
    why: &str,
    risk: &str,
    of: &[&Call],
    all: &[Call],
    is_asked: impl Fn(&str) -> bool,
) -> std::fmt::Result {
    if of.is_empty() {
        return Ok(());
    }
    let mut support = Support::default();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for call in of {
        support.add(call);
        let asked = call.capabilities.iter().filter(|capability| is_asked(capability));
        asked.for_each(|capability| *counts.entry(capability).or_default() += 1);
    }
    writeln!(text, "\n# {why} by habit: a person goes on to decide.")?;
    write_support(text, &support)?;
    let counted: Vec<String> = counts.iter().map(|(capability, count)| format!("{capability} {count}")).collect();
    writeln!(text, "# Needed: {}.", counted.join(", "))?;
    writeln!(text, "[[rule]]\nid = \"{name}-needs-a-person\"\neffect = \"escalate\"\nreviewer = \"agent-owner\"")?;
    writeln!(text, "[rule.match]\nagents = {}\nrisk = {{ {risk} }}", list(&merge::agents(of.iter().copied(), all)))?;
    writeln!(text, "capabilities = {}", list(&counts.into_keys().cloned().collect()))
}

fn write_support(text: &mut String, support: &Support) -> std::fmt::Result {
    let Support { calls, approved, agents, days, first, last, examples } = support;
    let named: Vec<String> = agents.iter().take(5).map(|agent| shown(agent)).collect();
    let more = agents.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    writeln!(text, "# {calls} uses ({approved} approved by a person) by {}{more},", named.join(", "))?;
    let told = |time: &Option<rulekeep::system::Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    writeln!(text, "# on {} days from {} to {},", days.len(), told(first), told(last))?;
    let examples: Vec<String> = examples.iter().map(ToString::to_string).collect();
    writeln!(text, "# for example {}.", examples.join(", "))
}

/// Returns whether a capability is not in the taxonomy.
fn is_own(capability: &str) -> bool {
    capability.parse::<Capability>().is_ok_and(|known| known.resource().is_none() || known.operation().is_none())
}

fn list(texts: &BTreeSet<String>) -> String {
    let one_line = format!("[{}]", texts.iter().map(|text| toml_text(text)).collect::<Vec<_>>().join(", "));
    if one_line.len() <= MAX_LINE {
        return one_line;
    }
    let lines: Vec<String> = texts.iter().map(|text| format!("    {},\n", toml_text(text))).collect();
    format!("[\n{}]", lines.concat())
}

const MAX_LINE: usize = 100;
const MOST_MISSED: usize = 10;
/// No target is named, and none is in the parts that could not be read.
const NO_TARGET: &str = r#"!has(context.target) && (!has(context.facts) || !has(context.facts.targets) && (!has(context.facts.unread) || context.facts.unread.all(u, !(u.kind in ["target", "text"]))))"#;
