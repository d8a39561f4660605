//! Properties that hold for any rules and any request.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use super::twin::{self, Answer};
use super::*;
use rulekeep_types::{Capability, Constraints, Decision, risk_floor};

const AGENTS: &[&str] = &["support-1", "support-22", "sales-1", "bot"];
const AGENT_GLOBS: &[&str] = &["support-1", "support-*", "s*", "*-1", "bot", "*", "s??es-*"];
const LABELS: &[&str] = &["support", "sales", "beta"];
const LABEL_GLOBS: &[&str] = &["support", "s*", "beta", "*", "?eta"];
const ACTIONS: &[&str] = &["send_email", "send_mail", "refund_order", "read_email"];
const ACTION_GLOBS: &[&str] = &["send_email", "send_*", "sen*", "*_email", "refund_?rder", "read_email", "*"];
const CAPABILITIES: &[&str] =
    &["email:read", "email:send", "payment:read", "payment:transfer", "unknown:unknown", "crm:export", "erp:export"];
const CAPABILITY_PATTERNS: &[&str] =
    &["email:read", "email:send", "payment:*", "*:read", "*:*", "payment:transfer", "crm:export", "crm:*", "*:export"];
const RISKS: &[&str] = &["LOW", "MEDIUM", "HIGH", "CRITICAL"];
const TIERS: &[&str] = &["T0", "T1", "T2", "T3", "T4", "T5"];

/// A clause that is absent half of the time.
fn list(words: &'static [&'static str]) -> impl Strategy<Value = Option<Value>> {
    prop::option::weighted(0.5, subsequence(words, 1..=words.len().min(3)).prop_map(|words| json!(words)))
}

fn range(words: &'static [&'static str]) -> impl Strategy<Value = Option<Value>> {
    let ends = (0..words.len(), 0..words.len(), 0..3_u8).prop_map(|(a, b, form)| {
        let (min, max) = (words[a.min(b)], words[a.max(b)]);
        match form {
            0 => json!({ "min": min }),
            1 => json!({ "max": max }),
            _ => json!({ "min": min, "max": max }),
        }
    });
    prop::option::weighted(0.4, ends)
}

fn clauses() -> impl Strategy<Value = Value> {
    let context = prop::option::weighted(
        0.15,
        select(vec![("target", r"@example\.com$"), ("target", "^a"), ("amount", "^[0-9]{1,2}$")])
            .prop_map(|(key, matches)| json!([{ "key": key, "matches": matches }])),
    );
    let rare = |words: &'static [&'static str]| {
        prop::option::weighted(0.15, subsequence(words, 1..=words.len()).prop_map(|words| json!(words)))
    };
    (
        list(AGENT_GLOBS),
        list(LABEL_GLOBS),
        rare(LABEL_GLOBS),
        list(ACTION_GLOBS),
        list(CAPABILITY_PATTERNS),
        range(RISKS),
        range(TIERS),
        rare(&["PUBLIC", "RESTRICTED"]),
        rare(&["production", "staging"]),
        context,
    )
        .prop_map(
            |(agents, labels, groups, actions, capabilities, risk, tiers, classification, environment, context)| {
                let fields = [
                    ("agents", agents),
                    // Agents, labels and actions together would hardly ever match.
                    ("labels", if classification.is_some() { labels } else { None }),
                    ("groups", groups),
                    ("actions", actions),
                    ("capabilities", capabilities),
                    ("risk", risk),
                    ("tiers", tiers),
                    ("classification", classification),
                    ("environment", environment),
                    ("context", context),
                ];
                Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
            },
        )
}

fn constraints() -> impl Strategy<Value = Option<Value>> {
    let hosts = || subsequence(vec!["a", "b", "c"], 0..=3);
    prop::option::of(
        (1..5_u32, hosts(), any::<bool>(), hosts())
            .prop_map(|(most, hosts, only, redact)| json!({ "maxRecords": most, "allowedHosts": hosts, "readOnly": only, "redactFields": redact })),
    )
}

fn rule(effects: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let to = subsequence(vec!["email:read", "payment:read", "*:send"], 1..=2);
    let condition = || prop::option::weighted(0.15, select(super::twin::CONDITIONS));
    let conditions = (condition(), condition());
    let asks = (select(&["lead", "boss"][..]), prop::option::of(1..=3_u8), prop::option::of(select(&["1h", "2d"][..])));
    let rest = (constraints(), conditions, asks);
    (select(effects), clauses(), to, rest).prop_map(|(effect, clauses, to, (constraints, when, asks))| {
        let mut rule = json!({ "effect": effect, "match": clauses });
        for (name, condition) in [("when", when.0), ("unless", when.1)] {
            if let Some(condition) = condition {
                rule[name] = json!(condition);
            }
        }
        match effect {
            "escalate" => {
                let (reviewer, approvals, expires) = asks;
                rule["reviewer"] = json!(reviewer);
                if let Some(approvals) = approvals {
                    rule["approvals"] = json!(approvals);
                }
                if let Some(expires) = expires {
                    rule["expires"] = json!(expires);
                }
            }
            "degrade" => rule["to"] = json!(to),
            _ => {}
        }
        if let (Some(constraints), "allow" | "degrade") = (constraints, effect) {
            rule["constraints"] = constraints;
        }
        rule
    })
}

fn document(mut rules: Vec<Value>) -> Value {
    let prefix = if rules.iter().any(|rule| rule.get("id").is_some()) { "new" } else { "r" };
    for (index, rule) in rules.iter_mut().enumerate() {
        // A rule with an id keeps it, so that sets can be compared; an added rule gets an unused id.
        if rule.get("id").is_none() {
            rule["id"] = json!(format!("{prefix}{index}"));
        }
    }
    json!({ "name": "random", "vocabulary": ["crm:export"], "rule": rules })
}

fn rules() -> impl Strategy<Value = Value> {
    prop::collection::vec(rule(&["allow", "allow", "allow", "deny", "escalate", "degrade"]), 0..14).prop_map(document)
}

/// The owned data of a request.
#[derive(Debug, Clone)]
struct Asked {
    intent: Intent,
    risk: RiskLevel,
    tier: Tier,
    traits: AgentTraits,
}

impl Asked {
    fn request(&self) -> PolicyRequest<'_> {
        PolicyRequest { traits: &self.traits, ..request(&self.intent, self.tier, self.risk) }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let context = prop::collection::vec(
        select(vec![
            ("dataClassification", json!("restricted")),
            ("dataClassification", json!("PUBLIC")),
            ("environment", json!("Production")),
            ("environment", json!(null)),
            ("target", json!("a@example.com")),
            ("target", json!("b")),
            ("target", json!({ "to": "b" })),
            ("amount", json!(12)),
            ("amount", json!(1200)),
        ]),
        0..3,
    );
    (
        select(AGENTS),
        select(ACTIONS),
        subsequence(CAPABILITIES, 1..=4),
        select(RiskLevel::ALL),
        select(Tier::ALL),
        subsequence(LABELS, 0..=2),
        subsequence(LABELS, 0..=2),
        context,
    )
        .prop_map(|(agent, action, capabilities, risk, tier, labels, groups, context)| {
            let mut intent = Intent::new(agent, action, RiskLevel::Low, capabilities).unwrap();
            intent.context = context.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>();
            let labels_of = |words: Vec<&str>| words.into_iter().map(label).collect();
            let mut traits = AgentTraits::default();
            (traits.labels, traits.groups) = (labels_of(labels), labels_of(groups));
            Asked { intent, risk, tier, traits }
        })
}

fn load(document: &Value) -> PolicySet {
    PolicySet::from_json(&document.to_string()).unwrap()
}

/// Everything that a caller can obtain, with or without an approval.
fn within_reach(verdict: &PolicyVerdict) -> Vec<String> {
    words(verdict.on_approval.as_ref().map_or(&verdict.granted, |approval| &approval.granted))
}

fn constraints_within_reach(verdict: &PolicyVerdict) -> &Constraints {
    verdict.on_approval.as_ref().map_or(&verdict.constraints, |approval| &approval.constraints)
}

fn constraints_of(document: &Value, id: &str) -> Constraints {
    let rules = document["rule"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["id"] == id).unwrap();
    rule.get("constraints").map_or_else(Constraints::new, |own| serde_json::from_value(own.clone()).unwrap())
}

/// The rules with a warning about the rule as a whole.
fn idle_rules(document: &Value) -> Vec<String> {
    let problems = PolicySet::validate(&document.to_string(), PolicyFormat::Json);
    let told = problems.iter().filter(|problem| !problem.message.contains(" grants nothing"));
    told.filter_map(|problem| {
        let (_, rule) = problem.message.split_once("(rule \"")?;
        Some(rule.strip_suffix("\")")?.to_owned())
    })
    .collect()
}

fn is_within(less: &[String], more: &[String]) -> bool {
    less.iter().all(|one| more.contains(one))
}

proptest! {
    #[test]
    fn the_index_and_a_plain_scan_of_all_rules_agree(document in rules(), asked in prop::collection::vec(asked(), 1..5)) {
        let policies = load(&document);
        for asked in &asked {
            let verdict = policies.decide(&asked.request());
            prop_assert_eq!(Answer::of(&verdict), twin::decide(&document, &asked.request()), "{}", verdict.reasoning);
        }
    }

    #[test]
    fn granted_and_denied_part_what_is_required_in_its_order(document in rules(), asked in asked()) {
        let verdict = load(&document).decide(&asked.request());
        let is_granted = |capability: &&Capability| verdict.granted.contains(capability);
        let (granted, denied): (Vec<_>, Vec<_>) = asked.intent.required_capabilities.iter().partition(is_granted);
        prop_assert_eq!(words(&verdict.granted), words(&granted));
        prop_assert_eq!(words(&verdict.denied), words(&denied));
        prop_assert_eq!(verdict.granted.is_empty(), matches!(verdict.decision, Decision::Deny | Decision::Escalate));
        prop_assert_eq!(verdict.denied.is_empty(), verdict.decision == Decision::Allow);
        prop_assert!(!verdict.granted.is_empty() || verdict.constraints.is_empty());
        prop_assert_eq!(verdict.reviewer.is_some(), verdict.decision == Decision::Escalate);
        prop_assert!(!verdict.reasoning.contains(char::is_control));
    }

    #[test]
    fn a_matching_deny_is_never_outvoted(document in rules(), asked in asked()) {
        let policies = load(&document);
        let verdict = policies.decide(&asked.request());
        let traces = policies.traces(&asked.request());
        for trace in traces.iter().filter(|trace| trace.matched && trace.effect == crate::Effect::Deny) {
            for capability in &trace.capabilities {
                prop_assert!(verdict.denied.contains(capability));
                prop_assert!(verdict.decision != Decision::Escalate && verdict.decision != Decision::Allow);
            }
        }
    }

    #[test]
    fn removing_an_allow_never_grants_more(
        document in rules(),
        allow in rule(&["allow"]),
        place in any::<prop::sample::Index>(),
        asked in asked(),
    ) {
        let fewer = document["rule"].as_array().unwrap().clone();
        let mut all = fewer.clone();
        all.insert(place.index(fewer.len() + 1), allow);
        let before = load(&self::document(all)).decide(&asked.request());
        let after = load(&self::document(fewer)).decide(&asked.request());
        prop_assert!(is_within(&within_reach(&after), &within_reach(&before)));
    }

    #[test]
    fn adding_a_deny_never_grants_more(document in rules(), deny in rule(&["deny"]), asked in asked()) {
        let mut more = document["rule"].as_array().unwrap().clone();
        more.push(deny);
        let policies = load(&document);
        let before = policies.decide(&asked.request());
        let after = load(&self::document(more)).decide(&asked.request());
        prop_assert!(is_within(&within_reach(&after), &within_reach(&before)));
        // What is still granted is no looser: the constraints of every matching rule are kept.
        let is_within_reach = |one: &Capability| within_reach(&after).contains(&one.to_string());
        for trace in policies.traces(&asked.request()).iter().filter(|trace| trace.matched) {
            if trace.capabilities.iter().any(is_within_reach) {
                let mut kept = constraints_within_reach(&after).clone();
                kept.tighten(&constraints_of(&document, &trace.rule));
                prop_assert_eq!(&kept, constraints_within_reach(&after), "{}", trace.rule);
            }
        }
    }

    #[test]
    fn a_rule_that_is_called_idle_can_be_taken_out(document in rules(), asked in prop::collection::vec(asked(), 1..5)) {
        for id in idle_rules(&document) {
            let mut others = document["rule"].as_array().unwrap().clone();
            others.retain(|rule| rule["id"] != *id);
            let (with, without) = (load(&document), load(&self::document(others)));
            for asked in &asked {
                // As a governor would ask: never below the risk floor of the capabilities.
                let floor = risk_floor(&asked.intent.parsed_action, &asked.intent.required_capabilities);
                let request = PolicyRequest { risk: asked.risk.max(floor), ..asked.request() };
                let (before, after) = (with.decide(&request), without.decide(&request));
                prop_assert_eq!(before.decision, after.decision, "{}", id);
                prop_assert_eq!(before.granted, after.granted);
                prop_assert_eq!(before.constraints, after.constraints);
                prop_assert_eq!(&before.reviewer, &after.reviewer);
                prop_assert!(crate::Need::asks_alike(&before.needs, &after.needs));
                prop_assert_eq!(before.expires, after.expires);
                prop_assert_eq!(before.on_approval, after.on_approval);
            }
        }
    }

    #[test]
    fn shuffling_rules_changes_nothing(
        (document, shuffled) in rules().prop_flat_map(|document| {
            let rules = document["rule"].as_array().unwrap().clone();
            (Just(document), Just(rules).prop_shuffle())
        }),
        asked in asked(),
    ) {
        let before = load(&document).decide(&asked.request());
        let after = load(&self::document(shuffled)).decide(&asked.request());
        prop_assert_eq!(twin::needs(&before), twin::needs(&after));
        prop_assert_eq!(before.expires, after.expires);
        prop_assert_eq!(before.decision, after.decision);
        prop_assert_eq!(before.granted, after.granted);
        prop_assert_eq!(before.denied, after.denied);
        prop_assert_eq!(before.constraints, after.constraints);
        prop_assert_eq!(before.on_approval, after.on_approval);
        prop_assert_eq!(before.rules_total, after.rules_total);
    }

    #[test]
    fn the_same_request_gets_the_same_verdict(document in rules(), asked in asked()) {
        let (first, second) = (load(&document), load(&document));
        prop_assert_eq!(first.decide(&asked.request()), second.decide(&asked.request()));
    }

    #[test]
    fn the_same_rules_have_one_digest_in_both_formats(document in rules()) {
        let written = toml::to_string(&document).unwrap();
        let (json, toml) = (load(&document), PolicySet::from_toml(&written).unwrap());
        prop_assert_eq!(json.digest(), toml.digest());
        prop_assert_eq!(json.len(), toml.len());
    }

    #[test]
    fn explain_and_evaluate_tell_the_same(document in rules(), asked in asked()) {
        let policies = load(&document);
        let verdict = policies.decide(&asked.request());
        let traces = policies.traces(&asked.request());
        prop_assert_eq!(traces.len(), policies.len());
        for trace in &traces {
            prop_assert!(trace.matched || !trace.decided, "{trace:?}");
            prop_assert_eq!(trace.failed.is_some(), !trace.matched);
        }
        for id in verdict.rules.iter().map(ToString::to_string) {
            prop_assert!(traces.iter().any(|trace| trace.rule == id && trace.decided));
        }
    }

    #[test]
    fn no_text_makes_loading_panic(text in "\\PC{0,200}", structured in "[\\[\\]{}=\"'a-z.,:# \n0-9]{0,200}") {
        for text in [text, structured] {
            for format in [PolicyFormat::Toml, PolicyFormat::Json] {
                let problems = PolicySet::validate(&text, format);
                prop_assert_eq!(PolicySet::parse(&text, format, "random").is_err(), problems.iter().any(|problem| {
                    problem.severity == rulekeep_types::Severity::Error
                }));
            }
        }
    }
}
