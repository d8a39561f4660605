//! What loads, what does not, and what the messages say.

use std::fmt::Write as _;

use super::*;
use crate::model::{Error, Severity};

/// The sketch of the schema, with everything that a rule can say.
const COMPLETE: &str = r#"
name = "support"
description = "Everything that a rule can say."
vocabulary = ["crm:export"]

[[rule]]
id = "refunds-need-a-person"
effect = "escalate"
reviewer = "finance-lead"
reason = "Refunds move money."
[rule.match]
agents = ["support-*"]
labels = ["support"]
actions = ["refund_*"]
capabilities = ["payment:*"]
risk = { min = "LOW", max = "HIGH" }
tiers = { min = "T3", max = "T5" }
classification = ["RESTRICTED"]
environment = ["production"]
[[rule.match.context]]
key = "target"
matches = '@example\.com$'

[[rule]]
id = "reports-only"
effect = "degrade"
to = ["payment:read"]
[rule.match]
capabilities = ["payment:*"]
[rule.constraints]
maxRecords = 100
timeoutMs = 30000

[[rule]]
id = "export"
effect = "allow"
match.capabilities = ["crm:export", "crm:*"]
"#;

#[test]
fn a_complete_document_loads() {
    let policies = PolicySet::from_toml(COMPLETE).unwrap();
    assert_eq!((policies.name(), policies.len()), ("support", 3));
    assert_eq!(policies.warnings(), []);
    assert_eq!(policies.sources().collect::<Vec<_>>(), [(COMPLETE, PolicyFormat::Toml)]);
    let debug = format!("{policies:?}");
    assert!(debug.contains("support") && !debug.contains("finance-lead"), "{debug}");
}

#[test]
fn each_problem_has_its_place_and_says_what_was_meant() {
    let rule = |lines: &str| format!("name = \"t\"\n[[rule]]\nid = \"a\"\n{lines}\n");
    for (document, expected) in [
        (rule("effect = \"alow\""), "4:10 error unknown effect \"alow\"; did you mean \"allow\"? (rule \"a\", effect)"),
        (
            rule("effect = \"allow\"\nreasn = \"x\""),
            "5:1 error unknown field \"reasn\"; did you mean \"reason\"? (rule \"a\", reasn)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { capabilities = [\"payment:trasnfer\"] }"),
            "5:27 error unknown capability \"payment:trasnfer\"; did you mean \"payment:transfer\"? (rule \"a\", match.capabilities)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { capabilities = [\"crm:export\"] }"),
            "5:27 error unknown capability \"crm:export\"; a word of your own must stand in the document's vocabulary (rule \"a\", match.capabilities)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { capability = [\"email:read\"] }"),
            "5:11 error unknown field \"capability\"; did you mean \"capabilities\"? (rule \"a\", match.capability)",
        ),
        (
            rule("effect = \"allow\"\n[[rule.match.context]]\nkey = \"ü\"\nmatches = \"(\""),
            "7:11 error invalid regular expression \"(\": unclosed group (rule \"a\", match.context.matches)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { tiers = { min = \"T4\", max = \"T2\" } }"),
            "5:39 error min T4 is above max T2: nothing can match (rule \"a\", match.tiers)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { risk = { min = \"high\" } }"),
            "5:26 error unknown min \"high\"; did you mean \"HIGH\"? (rule \"a\", match.risk.min)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { agents = [] }"),
            "5:20 error an empty list names nothing; leave the field out to mean anything (rule \"a\", match.agents)",
        ),
        (rule("effect = \"degrade\""), "2:1 error a rule that says degrade needs a field \"to\" (rule \"a\", to)"),
        (
            rule("effect = \"escalate\""),
            "2:1 error a rule that says escalate needs a field \"reviewer\" (rule \"a\", reviewer)",
        ),
        (
            rule("effect = \"deny\"\nreviewer = \"me\""),
            "5:12 error a rule that says deny has no reviewer; it goes with escalate (rule \"a\", reviewer)",
        ),
        (
            rule("effect = \"deny\"\nconstraints = { maxRecords = 1 }"),
            "5:15 error a rule that says deny has no constraints; it goes with allow or degrade (rule \"a\", constraints)",
        ),
        (
            rule("effect = \"allow\"\nconstraints = { maxRecords = -1 }"),
            "5:30 error maxRecords expects a whole number from 0 (rule \"a\", constraints.maxRecords)",
        ),
        (
            rule("effect = \"allow\"\nreason = \"a\\u0007b\""),
            "5:10 error expected a text without control characters (rule \"a\", reason)",
        ),
        (
            rule("effect = \"allow\"\n[[rule]]\nid = \"a\"\neffect = \"deny\""),
            "5:1 error another rule has the id \"a\", on line 2 (rule \"a\", id)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"Ä\"\neffect = \"allow\"".to_owned(),
            "3:6 error \"Ä\" is no rule id: expected lower-case letters, digits and . _ - that start with a letter or digit (rule number 1, id)",
        ),
        (
            "name = \"t\"\n[[rule]]\neffect = \"allow\"".to_owned(),
            "2:1 error the field \"id\" is missing (rule number 1, id)",
        ),
        ("rule = 7\nname = \"t\"".to_owned(), "1:8 error expected a list, found a number"),
        ("[[rule]]\nid = \"a\"\neffect = \"allow\"".to_owned(), "1:1 error the field \"name\" is missing"),
    ] {
        assert_eq!(problems(&document), [expected], "{document}");
    }
}

#[test]
fn what_probably_was_not_meant_is_warned_of() {
    for (document, expected) in [
        ("name = \"t\"", "1:1 warning the policy has no rules: it denies everything"),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"",
            "1:1 warning the policy has no allow or degrade rule: it grants nothing",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"email:read\"]\n[[rule]]\nid = \"d\"\neffect = \"deny\"\nmatch.capabilities = [\"*:read\"]",
            "2:1 warning this allow never grants anything: the deny \"d\" on line 6 covers it (rule \"a\")",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"degrade\"\nto = [\"email:read\"]\nmatch.capabilities = [\"payment:*\"]",
            "5:6 warning email:read can never remain, for the rule does not match it (rule \"a\", to)",
        ),
    ] {
        assert_eq!(problems(document), [expected], "{document}");
        assert_eq!(PolicySet::from_toml(document).unwrap().warnings().len(), 1);
    }
}

#[test]
fn a_set_that_does_not_load_says_where_and_carries_every_problem() {
    let text = "name = \"finance\"\n\n[[rule]]\nid = \"a\"\neffect = \"alow\"\n\n[[rule]]\nid = \"b\"\neffect = \"deny\"\n\
                [rule.match]\nagents = [\"x\"]\ncapabilities = [\"payment:trasnfer\"]\n";
    let error = PolicySet::parse(text, PolicyFormat::Toml, "finance.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy \"finance.toml\" line 5: unknown effect \"alow\"; did you mean \"allow\"? (rule \"a\", effect); and 1 more"
    );
    let Error::Policy { problems, .. } = error else { panic!("another error") };
    let places: Vec<(usize, usize)> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(places, [(5, 10), (12, 17)]);
}

#[test]
fn json_problems_have_the_place_of_their_value() {
    let text = "{\"name\": \"ü\", \"rules\": [\n  {\"id\": \"a\", \"effect\": \"allow\", \"match\": {\"capabilities\": [\"email:sned\"]}},\n  {\"id\": \"b\", \"effect\": \"deny\", \"id\": \"c\"}\n]}";
    let found: Vec<_> = PolicySet::validate(text, PolicyFormat::Json)
        .into_iter()
        .map(|problem| (problem.line, problem.column, problem.message))
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, found[0].1), (2, 61));
    assert!(found[0].2.contains("did you mean \"email:send\"?"));
    assert_eq!((found[1].0, found[1].1), (3, 33));
    assert!(found[1].2.contains("the field \"id\" stands twice"));
}

#[test]
fn text_that_is_not_of_its_format_is_refused_with_its_place() {
    for (text, format, line) in [
        ("name = \"t\"\n[[rule]\n", PolicyFormat::Toml, 2),
        ("name = \"t\"\nname = \"u\"\n", PolicyFormat::Toml, 2),
        ("{\"name\": \"t\",\n \"rule\": [}", PolicyFormat::Json, 2),
        ("{\"name\": \"\\ud800\"}", PolicyFormat::Json, 1),
        ("", PolicyFormat::Json, 1),
        ("[1] 2", PolicyFormat::Json, 1),
    ] {
        let problems = PolicySet::validate(text, format);
        assert!(!problems.is_empty(), "{text:?} was accepted");
        assert_eq!(problems[0].line, line, "{text:?}: {problems:?}");
    }
}

#[test]
fn a_document_past_its_size_is_refused() {
    let text = format!("name = \"t\"\n#{}", "x".repeat(PolicySet::MAX_BYTES));
    let error = PolicySet::from_toml(&text).unwrap_err();
    assert!(error.to_string().contains("at most 4194304 bytes"), "{error}");
}

#[test]
fn a_regular_expression_past_its_size_is_refused() {
    let document = |pattern: &str| {
        format!(
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\n[[rule.match.context]]\nkey = \"k\"\nmatches = '{pattern}'"
        )
    };
    assert!(problems(&document(&"a{1000}".repeat(50)))[0].contains("takes more than"));
    assert!(problems(&document(&"a".repeat(2_000)))[0].contains("at most 1024 bytes"));
}

#[test]
fn files_load_by_their_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, COMPLETE).unwrap();
    assert_eq!(PolicySet::from_file(&path).unwrap().len(), 3);

    let other = folder.path().join("mine.yaml");
    std::fs::write(&other, COMPLETE).unwrap();
    let error = PolicySet::from_file(&other).unwrap_err();
    assert_eq!(error.to_string(), "policy \"mine.yaml\": expected a file that ends in .toml or .json");
    assert_eq!(PolicySet::from_file(folder.path().join("none.json")).unwrap_err().code(), "POLICY_ERROR");
}

#[test]
fn the_digest_tells_rules_apart_and_nothing_else() {
    let base = "name = \"a\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch = { agents = [\"x\", \"y\"] }\nconstraints = { n = 1 }";
    let same = "# a comment\nname = \"b\"\ndescription = \"d\"\n[[rule]]\neffect = \"allow\"\nid = \"r\"\nconstraints = { n = 1.0 }\n[rule.match]\nagents = [\"y\", \"x\", \"y\"]";
    let other = base.replace("\"y\"", "\"z\"");
    let digest = |text: &str| PolicySet::from_toml(text).unwrap().digest();
    assert_eq!(digest(base), digest(same));
    assert_ne!(digest(base), digest(&other));
}

#[test]
fn ten_thousand_plainly_written_rules_fit_a_document() {
    let mut text = "name = \"many\"\n".to_owned();
    for number in 0..10_000 {
        writeln!(
            text,
            "[[rule]]\nid='r{number}'\neffect='allow'\nmatch={{actions=['do_{number}'],capabilities=['email:read']}}"
        )
        .unwrap();
    }
    assert!(text.len() <= PolicySet::MAX_BYTES);
    assert_eq!(PolicySet::from_toml(&text).unwrap().len(), 10_000);
}

#[test]
fn a_document_full_of_mistakes_is_answered_briefly() {
    let mut text = "name = \"many\"\n".to_owned();
    for number in 0..5_000 {
        writeln!(text, "[[rule]]\nid=\"r{number}\"\neffect=\"allwo\"\nmatch={{capabilities=[\"emial:raed\"]}}")
            .unwrap();
    }
    let found = PolicySet::validate(&text, PolicyFormat::Toml);
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|problem| problem.severity == Severity::Error));
}

/// The warnings of rules, each the inside of a TOML table, without their places.
fn warnings(rules: &[&str]) -> Vec<String> {
    let tables: Vec<String> = rules.iter().map(|rule| format!("[[rule]]\n{rule}\n")).collect();
    PolicySet::validate(&format!("name = \"t\"\n{}", tables.concat()), PolicyFormat::Toml)
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

#[test]
fn a_rule_that_another_covers_is_told() {
    let wide = "id = \"wide\"\neffect = \"deny\"\nmatch = { capabilities = [\"payment:*\"] }";
    let narrow = "id = \"narrow\"\neffect = \"deny\"\nmatch = { agents = [\"a\"], capabilities = [\"payment:read\"] }";
    let asks = "id = \"asks\"\neffect = \"escalate\"\nreviewer = \"lead\"\nmatch.capabilities = [\"payment:transfer\"]";
    let reads = "id = \"reads\"\neffect = \"allow\"\nmatch.capabilities = [\"*:read\"]";
    let again = "id = \"again\"\neffect = \"allow\"\nmatch = { agents = [\"a\"], capabilities = [\"web:read\"] }";
    assert_eq!(
        warnings(&[wide, narrow, asks, reads, again]),
        [
            "this rule says nothing that \"wide\" on line 2 does not say (rule \"narrow\")",
            "this escalate never decides anything: the deny \"wide\" on line 2 covers it (rule \"asks\")",
            "this rule says nothing that \"reads\" on line 15 does not say (rule \"again\")",
        ]
    );
    let first = "id = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"file:read\"]";
    let then = "id = \"d\"\neffect = \"deny\"\nmatch.capabilities = [\"file:read\"]";
    for rules in [[first, then, reads], [then, first, reads]] {
        assert_eq!(warnings(&rules).len(), 1, "whichever stands first: {:?}", warnings(&rules));
    }
    // Limits, constraints and conditions of its own are something to say.
    let limited = format!("{again}\nconstraints.maxRecords = 5");
    let conditional = format!("{wide}\nwhen = \"trust.score < 10\"");
    assert_eq!(warnings(&[&conditional, narrow, reads, &limited]), Vec::<String>::new());
}

#[test]
fn a_rule_that_no_request_can_match_and_a_tier_without_a_grant_are_told() {
    let never =
        "id = \"n\"\neffect = \"deny\"\nmatch = { capabilities = [\"health:read\"], classification = [\"PUBLIC\"] }";
    let high = "id = \"h\"\neffect = \"allow\"\nmatch = { capabilities = [\"web:read\"], tiers = { min = \"T2\" } }";
    assert_eq!(
        warnings(&[never, high]),
        [
            "no rule grants anything to agents at T0, T1, nor asks a person for them",
            "this rule can never match: what it names is more sensitive than its classification (rule \"n\")",
        ]
    );
}
