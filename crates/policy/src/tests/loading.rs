//! Documents that load, documents that are refused, and the messages.

use std::fmt::Write as _;

use super::*;
use rulekeep_types::{Error, Severity};

/// A document with everything that a rule can say.
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
#[expect(clippy::too_many_lines, reason = "a table")]
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
            "5:27 error unknown capability \"crm:export\"; declare your own words in the document's vocabulary (rule \"a\", match.capabilities)",
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
            "5:20 error an empty list matches nothing; omit the field to match anything (rule \"a\", match.agents)",
        ),
        (rule("effect = \"degrade\""), "2:1 error a rule with effect degrade needs a field \"to\" (rule \"a\", to)"),
        (
            rule("effect = \"escalate\""),
            "2:1 error a rule with effect escalate needs a field \"reviewer\" (rule \"a\", reviewer)",
        ),
        (
            rule("effect = \"deny\"\nreviewer = \"me\""),
            "5:12 error a rule with effect deny cannot have reviewer; it belongs to escalate (rule \"a\", reviewer)",
        ),
        (
            rule("effect = \"deny\"\nconstraints = { maxRecords = 1 }"),
            "5:15 error a rule with effect deny cannot have constraints; it belongs to allow or degrade (rule \"a\", constraints)",
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
            "3:6 error \"Ä\" is not a valid rule id: expected lower-case letters, digits and . _ - that start with a letter or digit (rule number 1, id)",
        ),
        (
            "name = \"t\"\n[[rule]]\neffect = \"allow\"".to_owned(),
            "2:1 error the field \"id\" is missing (rule number 1, id)",
        ),
        (
            rule("effect = \"allow\"\nmatch = { tiers = { min = \"T7\" } }"),
            "5:27 error unknown min \"T7\"; expected one of T0, T1, T2, T3, T4, T5 (rule \"a\", match.tiers.min)",
        ),
        (
            rule("effect = \"allow\"\nlimit = { count = 0, per = \"1h\" }"),
            "5:19 error expected a whole number from 1 to 1000000, found 0 (rule \"a\", limit.count)",
        ),
        (
            rule("effect = \"allow\"\nlimit = { sum = \"context.amount\", max = 5, per = \"1h\" }"),
            "5:17 error sum names a key of the context: write \"amount\" instead of \"context.amount\" (rule \"a\", limit.sum)",
        ),
        (
            rule("effect = \"allow\"\nlimit = { sum = \"double(context.amount)\", max = 5, per = \"1h\" }"),
            "5:17 error sum names a key of the context, not an expression: the context never has the key \"double(context.amount)\" (rule \"a\", limit.sum)",
        ),
        (
            rule(
                "effect = \"allow\"\nlet = { total = \"double(context.amount)\" }\nwhen = \"total < 9.0\"\nlimit = { sum = \"total\", max = 5, per = \"1h\" }",
            ),
            "7:17 error sum names a key of the context, and \"total\" is a name under let, which limits do not read; name the context key itself (rule \"a\", limit.sum)",
        ),
        (
            rule("effect = \"allow\"\nwhen = \"context.a == 1 and context.b == 2\""),
            "5:24 error expected an operator or the end, found \"and\"; did you mean &&? (rule \"a\", when)",
        ),
        (
            rule("effect = \"allow\"\nwhen = \"not context.a\""),
            "5:9 error unknown name \"not\"; did you mean !? (rule \"a\", when)",
        ),
        (rule("effect = \"allow\"\neffect = \"deny\""), "5:1 error this is not TOML: duplicate key \"effect\""),
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
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"",
            "1:1 warning the policy can grant nothing: no granting rule can match, or deny rules cover them all",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nconstraints = { maxRecord = 5 }",
            "5:17 warning \"maxRecord\" is a key of your own; did you mean \"maxRecords\"? (rule \"a\", constraints.maxRecord)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.actions = [\"refund_*\", \"Refund_*\"]",
            "5:17 warning no action can be \"Refund_*\": an action is snake_case that starts with a letter (rule \"a\", match.actions)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nlet = { most = \"5\", least = \"1\" }\nwhen = \"context.least < most\"",
            "5:21 warning nothing uses the name \"least\" (rule \"a\", let.least)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.labels = [\"!ci\"]",
            "5:17 warning \"!ci\" is matched literally and excludes nothing; to exclude it, write match.not.labels = [\"ci\"] (rule \"a\", match.labels)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.environment = [\"!production\"]",
            "5:22 warning \"!production\" is matched literally and excludes nothing; to exclude it, write match.not.environment = [\"production\"] (rule \"a\", match.environment)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.groups = [\"on call\"]",
            "5:17 warning \"on call\" has a space, which no label or group has (rule \"a\", match.groups)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.not.paths = [\"src/*\"]",
            "5:19 warning \"src/*\": a relative path only binds below the working folder that the request states (rule \"a\", match.not.paths)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.paths = [\" /srv/*\"]",
            "5:16 warning \" /srv/*\" begins or ends with a space, so it never matches (rule \"a\", match.paths)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\nmatch.context = [{ key = \"target\", matches = \"@ours$\" }]",
            "2:1 warning the key \"target\" is informational; list the permitted recipients under match.recipients (rule \"a\", match.context)",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nwhen = \"context.amount < 5.0\"",
            "2:1 warning the condition fails for a request without context.amount, which can cause POLICY_ERROR; test has(context.amount) first (rule \"a\")",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nwhen = \"has(context.record_count) && context.record_count < 5\"",
            "2:1 warning context.record_count is a key of your own; did you mean \"recordCount\"? (rule \"a\")",
        ),
        (
            "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"degrade\"\nto = [\"email:read\"]\nmatch.capabilities = [\"payment:*\"]",
            "5:6 warning this rule grants nothing of what it matches: list some of it under to, or use effect = \"deny\" (rule \"a\", to)",
        ),
    ] {
        assert!(problems(document).contains(&expected.to_owned()), "{document}: {:?}", problems(document));
        assert_eq!(PolicySet::from_toml(document).unwrap().warnings().len(), problems(document).len());
    }
    for asked in ["\\\"amount\\\" in context && context.amount < 5.0", "!has(context.amount) || context.amount < 5.0"] {
        let document = format!("name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nwhen = \"{asked}\"");
        assert_eq!(problems(&document), [] as [String; 0], "{document}");
    }
}

#[test]
fn a_set_that_does_not_load_tells_the_place_of_every_problem() {
    let text = "name = \"finance\"\n\n[[rule]]\nid = \"a\"\neffect = \"alow\"\n\n[[rule]]\nid = \"b\"\neffect = \"deny\"\n\
                [rule.match]\nagents = [\"x\"]\ncapabilities = [\"payment:trasnfer\"]\n";
    let error = PolicySet::parse(text, PolicyFormat::Toml, "finance.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "policy \"finance.toml\" line 5 column 10: unknown effect \"alow\"; did you mean \"allow\"? (rule \"a\", effect); and 1 more"
    );
    let Error::InvalidPolicy { problems, .. } = error else { panic!("another error") };
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
    assert!(found[1].2.contains("the field \"id\" occurs twice"));
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

/// The warnings about rules, each given as the inside of a TOML table, without their places.
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
            "this rule is redundant: \"wide\" on line 2 covers it (rule \"narrow\")",
            "this escalate never decides anything: the deny \"wide\" on line 2 covers it (rule \"asks\")",
            "this rule is redundant: \"reads\" on line 15 covers it (rule \"again\")",
        ]
    );
    let first = "id = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"file:read\"]";
    let then = "id = \"d\"\neffect = \"deny\"\nmatch.capabilities = [\"file:read\"]";
    for rules in [[first, then, reads], [then, first, reads]] {
        assert_eq!(warnings(&rules).len(), 1, "whichever stands first: {:?}", warnings(&rules));
    }
    // A rule with limits, constraints or conditions of its own is not redundant.
    let limited = format!("{again}\nconstraints.maxRecords = 5");
    let conditional = format!("{wide}\nwhen = \"trust.score < 10\"");
    assert_eq!(warnings(&[&conditional, narrow, reads, &limited]), Vec::<String>::new());
}

#[test]
fn unmatchable_rules_and_tiers_without_a_grant_are_told() {
    let never =
        "id = \"n\"\neffect = \"deny\"\nmatch = { capabilities = [\"health:read\"], classification = [\"PUBLIC\"] }";
    let high = "id = \"h\"\neffect = \"allow\"\nmatch = { capabilities = [\"web:read\"], tiers = { min = \"T2\" } }";
    assert_eq!(
        warnings(&[never, high]),
        [
            "no rule grants anything to agents at T0, T1 or escalates their requests",
            "this rule can never match: what it names is more sensitive than its classification range allows (rule \"n\")",
        ]
    );
}

#[test]
fn a_rule_whose_parts_exclude_each_other_is_told() {
    let left = |what: &str| format!("this rule can never match: its conditions and clauses leave no value for {what}");
    let excludes =
        |clause: &str| format!("this rule can never match: match.not.{clause} excludes all that match.{clause} names");
    for (rule, expected) in [
        ("when = \"now.getMonth() == 12\"", Some(left("now.getMonth() from 0 to 11"))),
        (
            "when = \"now.getHours('Europe/Berlin') >= 18 && now.getHours('Europe/Berlin') < 8\"",
            Some(left("now.getHours(\"Europe/Berlin\") from 0 to 23")),
        ),
        ("when = \"now.getHours('Europe/Berlin') >= 18 && now.getHours('UTC') < 8\"", None),
        ("when = \"now.getHours() >= 18 || now.getHours() < 8\"", None),
        ("when = \"duration('40h').getHours() > 23\"", None),
        ("when = \"now.getDayOfWeek() in [7, 8]\"", Some(left("now.getDayOfWeek() from 0 to 6"))),
        ("when = \"!(now.getDayOfWeek() in [0, 1, 2, 3, 4, 5, 6])\"", Some(left("now.getDayOfWeek() from 0 to 6"))),
        ("when = \"trust.score > 1000\"", Some(left("trust.score from 0 to 1000"))),
        ("when = \"trust.score > 10\"\nunless = \"trust.score >= 11\"", Some(left("trust.score from 0 to 1000"))),
        ("when = \"trust.score > 10\"\nunless = \"trust.score >= 12\"", None),
        ("when = \"trust.tier < 'T2'\"\nmatch.tiers.min = \"T2\"", Some(left("trust.tier"))),
        ("when = \"trust.tier <= 'T2'\"\nmatch.tiers.min = \"T2\"", None),
        ("unless = \"intent.risk != 'LOW'\"\nmatch.risk.min = \"HIGH\"", Some(left("intent.risk"))),
        ("when = \"agent.id == 'b'\"\nmatch.agents = [\"a\"]", Some(left("agent.id"))),
        ("when = \"agent.id == 'b'\"\nmatch.agents = [\"a*\", \"c\"]", None),
        (
            "let.n = \"double(context.n)\"\nwhen = \"has(context.n) && n > 5.0 && n < 4.5\"",
            Some(left("double(context.n)")),
        ),
        ("let.n = \"double(context.n)\"\nwhen = \"has(context.n) && n > 4.5 && n < 5.0\"", None),
        ("when = \"!has(context.n) && context.n == 1\"", Some(left("has(context.n)"))),
        ("when = \"!has(context.n) || context.n == 1\"", None),
        ("when = \"has(context.e) && context.e == 'a' && context.e == 'b'\"", Some(left("context.e"))),
        ("when = \"has(context.e) && context.e != 'a' && context.e != 'b'\"", None),
        ("when = \"has(context.e) && context.e >= 'a' && context.e < 'a'\"", Some(left("context.e"))),
        (
            "when = \"has(context.e) && (context.e == 'a' || context.e == 'b') && context.e == 'c'\"",
            Some(left("context.e")),
        ),
        ("when = \"has(context.e) && (context.e == 'a' || context.f) && context.e == 'c'\"", None),
        ("when = \"has(context.e) && context.e > 1 && context.e < 2\"", None),
        ("when = \"has(context.e) && int(context.e) > 1 && int(context.e) < 2\"", Some(left("int(context.e)"))),
        ("match = { agents = [\"a\", \"b*\"], not.agents = [\"a\", \"b*\", \"c\"] }", Some(excludes("agents"))),
        ("match = { agents = [\"a\", \"b*\"], not.agents = [\"b*\"] }", None),
        ("match = { not.agents = [\"*\"] }", Some(excludes("agents"))),
        ("match = { not.labels = [\"*\"] }", None),
        ("match = { labels = [\"x\"], not.labels = [\"*\"] }", Some(excludes("labels"))),
        ("match = { environment = [\"Prod\"], not.environment = [\"prod\"] }", Some(excludes("environment"))),
    ] {
        for effect in ["allow", "deny"] {
            let rule = format!("id = \"one\"\neffect = \"{effect}\"\n{rule}");
            let found = warnings(&[&rule, &ANYTHING.replace("web", "file")]);
            let told: Vec<&String> = found.iter().filter(|message| message.contains("can never match")).collect();
            let expected: Vec<String> = expected.iter().map(|expected| format!("{expected} (rule \"one\")")).collect();
            assert_eq!(told, expected.iter().collect::<Vec<_>>(), "{rule}");
        }
    }
    for (clause, names) in
        [("commands", "git *"), ("paths", "/srv/a/*"), ("tools", "Bash"), ("recipients", "ann@a.example")]
    {
        for (effect, is_told) in [("allow", true), ("deny", false)] {
            let wide = format!("{}*", &names[..3]);
            let rule =
                format!("effect = \"{effect}\"\nmatch = {{ {clause} = [\"{names}\"], not.{clause} = [\"{wide}\"] }}");
            let found = of_two(&rule, "effect = \"allow\"\nmatch.capabilities = [\"task:read\"]");
            assert_eq!(found.iter().any(|told| told.contains(&excludes(clause))), is_told, "{rule}: {found:?}");
        }
    }
}

#[test]
fn an_allow_of_other_operands_than_it_names_is_told() {
    for (clauses, expected) in [
        (
            "capabilities = [\"web:read\"], paths = [\"/srv/*\"]",
            Some("paths say nothing about web:read; name hosts or urls"),
        ),
        ("capabilities = [\"file:*\"], hosts = [\"a.example\"]", Some("hosts say nothing about file:*; name paths")),
        ("capabilities = [\"web:read\", \"file:read\"], paths = [\"/srv/*\"]", None),
        ("capabilities = [\"web:read\"], paths = [\"/srv/*\"], hosts = [\"a.example\"]", None),
        ("capabilities = [\"web:read\"], targets = [\"a.example\"]", None),
        ("capabilities = [\"*:read\"], paths = [\"/srv/*\"]", None),
        ("paths = [\"/srv/*\"]", None),
    ] {
        for (effect, expected) in [("allow", expected), ("deny", None)] {
            let found = of_two(
                &format!("effect = \"{effect}\"\nmatch = {{ {clauses} }}"),
                "effect = \"deny\"\nmatch.agents = [\"x\"]",
            );
            let told = found.iter().find(|told| told.contains("that a caller builds"));
            assert_eq!(told.is_some(), expected.is_some(), "{clauses}: {found:?}");
            assert!(told.is_none_or(|told| told.contains(expected.unwrap())), "{told:?}");
        }
    }
}

#[test]
fn a_deny_covers_the_operands_within_its_globs() {
    for (deny, allow, is_covered) in [
        ("paths = [\"/srv/*\"]", "paths = [\"/srv/a/*\", \"/srv/b\"]", true),
        ("paths = [\"/SRV/*\"]", "paths = [\"/srv/a/*\"]", true),
        ("paths = [\"/srv/a/*\"]", "paths = [\"/srv/*\"]", false),
        // A tree that is read is outside a glob without a folder.
        ("paths = [\"*.env\"]", "paths = [\"/srv/*.env\"]", false),
        ("recipients = [\"*@a.example\"]", "recipients = [\"ann@a.example\"]", true),
        ("tools = [\"*\"]", "tools = [\"Bash\"]", true),
        ("tools = [\"*\"]", "agents = [\"a\"]", false),
    ] {
        let of = |effect: &str, clauses: &str| {
            format!("effect = \"{effect}\"\nmatch = {{ {clauses}, capabilities = [\"*:read\"] }}")
        };
        let found = of_two(&of("deny", deny), &of("allow", allow));
        let told = found.iter().any(|told| told.starts_with("this allow never grants anything: the deny \"one\""));
        assert_eq!(told, is_covered, "{deny} over {allow}: {found:?}");
    }
    let degrade = "effect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:*\"]";
    let allow = "effect = \"allow\"\nmatch.capabilities = [\"file:write\"]";
    let told = "this allow never decides anything: the degrade \"one\" on line 2 covers it (rule \"two\")";
    assert_eq!(of_two(degrade, allow), [told]);
    assert_eq!(of_two(degrade, &format!("{allow}\nconstraints.maxUses = 2")), Vec::<String>::new());
}

#[test]
fn environments_are_found_by_what_commands_name() {
    let rules = "[[rule]]\nid = \"a\"\neffect = \"allow\"\n";
    let base = "name = \"t\"\n[environments]\nProduction = [\"prod\", \"prod-*\"]\nstaging = [\"stage\"]\n";
    let set = PolicySet::from_toml(&format!("{base}{rules}")).unwrap();
    let of = |set: &PolicySet, named: &[&str]| {
        let facts = serde_json::json!({ "form": 2, "acts": [{ "environments": named }] });
        set.environment_of(&serde_json::from_value(facts).unwrap()).map(|one| one.map(str::to_owned))
    };
    assert_eq!(of(&set, &["PROD-eu", "prod"]), Ok(Some("production".to_owned())));
    assert!(of(&set, &["stage", "PROD-eu"]).unwrap_err().contains("production and staging; run one command for each"));
    for mixed in [["stage", ""], ["stage", "preprod"]] {
        assert!(of(&set, &mixed).unwrap_err().contains("staging and one that is not named or not listed"), "{mixed:?}");
    }
    assert_eq!((of(&set, &["preprod", ""]), of(&set, &[])), (Ok(None), Ok(None)));
    assert_eq!(set.digest(), PolicySet::from_toml(&format!("name = \"t\"\n{rules}")).unwrap().digest());
    // A later document's table could make an earlier allow match more.
    let team = PolicySet::from_toml("name = \"u\"\n[environments]\nstaging = [\"*\"]\n").unwrap();
    let both = PolicySet::layered(&[set, team]).unwrap();
    assert_eq!(of(&both, &["other"]), Ok(None));
    assert!(
        both.warnings().iter().any(|warning| warning.message.contains("environments are those of the first document"))
    );
    for (table, message) in [
        ("environments = [\"a\"]", "expected a table of lists of names"),
        ("environments.production = []", "an empty list"),
        ("environments.production = \"prod\"", "expected a list"),
    ] {
        let found = problems(&format!("name = \"t\"\n{table}\n{rules}"));
        assert!(found.iter().any(|problem| problem.contains(message)), "{table}: {found:?}");
    }
}

#[test]
fn names_that_no_request_has_are_told() {
    for (clause, expected) in [
        ("formats = [\"bash\"]", Some("no request has such a format, so it never matches")),
        ("formats = [\"SQL\", \"tool_*\"]", None),
        ("commands = [\"git add . && git commit *\"]", Some("each command of a line is compared by itself")),
        ("commands = [\"git log > *\"]", Some("each command of a line is compared by itself")),
        ("commands = [\"rm 'a b'\"]", Some("commands are compared without quotes")),
        ("commands = [\"GIT_PAGER=x git *\"]", Some("without the variables")),
        ("commands = [\"git  push\"]", Some("one blank between words")),
        ("commands = [\"git push *\", \"npm run test:*\", \"make CC=gcc\", \"env A=1 ls\", \"[ -f *\"]", None),
    ] {
        let found =
            of_two(&format!("effect = \"deny\"\nmatch = {{ {clause} }}"), "effect = \"deny\"\nmatch.agents = [\"x\"]");
        assert_eq!(found.len(), usize::from(expected.is_some()), "{clause}: {found:?}");
        assert!(found.iter().all(|told| told.contains(expected.unwrap_or_default())), "{found:?}");
    }
}

const ANYTHING: &str = "id = \"rest\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]";

/// The warnings about two rules with the ids `one` and `two`.
fn of_two(one: &str, two: &str) -> Vec<String> {
    warnings(&[&format!("id = \"one\"\n{one}"), &format!("id = \"two\"\n{two}"), ANYTHING])
}

#[test]
fn a_deny_covers_whatever_lies_within_its_lists() {
    for (deny, allow, is_covered) in [
        ("agents = [\"a\", \"b\"]", "agents = [\"b\"]", true),
        ("agents = [\"a\"]", "agents = [\"a\", \"b\"]", false),
        ("agents = [\"*\"]", "groups = [\"g\"]", true),
        ("actions = [\"*\"]", "risk = { max = \"LOW\" }", true),
        ("agents = [\"bot-*\"]", "agents = [\"bot-1\", \"bot-eu-*\"]", true),
        ("agents = [\"bot-?\"]", "agents = [\"bot-*\"]", false),
        ("groups = [\"g\"]", "groups = [\"g\"], tiers = { min = \"T3\" }", true),
        ("groups = [\"g\"]", "labels = [\"g\"]", false),
        // An agent may have no label at all.
        ("labels = [\"*\"]", "agents = [\"a\"]", false),
        ("labels = [\"*\"]", "labels = [\"x\"]", true),
        ("actions = [\"send\", \"mail\"]", "actions = [\"mail\"], agents = [\"a\"]", true),
        ("environment = [\"test\", \"prod\"]", "environment = [\"prod\"]", true),
        ("environment = [\"prod\"]", "agents = [\"a\"]", false),
        ("classification = [\"RESTRICTED\"]", "classification = [\"RESTRICTED\"], agents = [\"a\"]", true),
        ("classification = [\"RESTRICTED\"]", "agents = [\"a\"]", false),
        ("context = [{ key = \"k\", matches = \"x\" }]", "context = [{ key = \"k\", matches = \"x\" }]", true),
        ("context = [{ key = \"k\", matches = \"x\" }]", "context = [{ key = \"k\", matches = \"xy\" }]", false),
        ("capabilities = [\"file:*\", \"web:*\"]", "capabilities = [\"file:read\", \"web:read\"]", true),
        ("capabilities = [\"file:*\"]", "capabilities = [\"file:read\", \"web:read\"]", false),
    ] {
        let capabilities = if deny.contains("capabilities") { "" } else { ", capabilities = [\"file:read\"]" };
        let deny = format!("effect = \"deny\"\nmatch = {{ {deny}{capabilities} }}");
        let allow = format!("effect = \"allow\"\nmatch = {{ {allow}{capabilities} }}");
        let found = of_two(&deny, &allow);
        let told =
            found.iter().any(|message| message.starts_with("this allow never grants anything: the deny \"one\""));
        assert_eq!(told, is_covered, "{deny} over {allow}: {found:?}");
        // A condition may make the deny not match.
        let conditional = of_two(&format!("{deny}\nwhen = \"trust.score < 10\""), &allow);
        assert!(!conditional.iter().any(|message| message.contains("never grants")), "{conditional:?}");
    }
}

#[test]
fn a_condition_that_never_holds_grants_nothing() {
    for condition in ["when = '1 == 2'", "when = 'false'", "unless = 'true'"] {
        let text = format!("name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\n{condition}");
        let found = problems(&text);
        let is_told = found.iter().any(|one| one.contains("whatever the request; the rule never matches (rule \"a\","));
        assert!(is_told, "{found:?}");
        assert!(!PolicySet::from_toml(&text).unwrap().grants_something(), "{condition}");
        // And it covers nothing.
        let never = of_two(&format!("effect = \"deny\"\n{condition}"), "effect = \"allow\"");
        assert!(!never.iter().any(|message| message.contains("the deny \"one\" on line 2 covers it")), "{never:?}");
    }
    let always = of_two("effect = \"deny\"\nwhen = 'true'", "effect = \"allow\"");
    assert!(always.iter().any(|message| message.contains("the deny \"one\" on line 2 covers it")), "{always:?}");
}

#[test]
fn a_degrade_that_leaves_nothing_is_told() {
    let degrade = "effect = \"degrade\"\nto = [\"payment:read\", \"file:read\"]\nmatch.capabilities = [\"payment:*\"]";
    let deny =
        "effect = \"deny\"\nmatch.capabilities = [\"*:read\"]\nmatch.agents = [\"*\"]\nmatch.risk = { min = \"LOW\" }";
    assert_eq!(
        of_two(degrade, deny)[..3],
        [
            "the policy can grant nothing: no granting rule can match, or deny rules cover them all",
            "this degrade grants nothing: the deny \"two\" on line 7 covers what remains (rule \"one\")",
            "file:read can never be granted: the rule does not match it (rule \"one\", to)",
        ]
    );
    let none = degrade.replace("\"payment:read\", ", "");
    let text = format!("name = \"t\"\n[[rule]]\nid = \"one\"\n{none}");
    assert!(problems(&text)[1].contains("this rule grants nothing of what it matches"));
    assert!(!PolicySet::from_toml(&text).unwrap().grants_something());
}

#[test]
fn a_tier_that_denies_close_is_told() {
    let allow = "effect = \"allow\"\nmatch = { capabilities = [\"web:*\", \"file:read\"] }";
    let deny = "effect = \"deny\"\nmatch.tiers = { max = \"T1\" }";
    assert_eq!(
        of_two(allow, deny),
        [
            "deny rules cover everything that rules grant to agents at T0, T1 or escalate",
            "this rule is redundant: \"one\" on line 2 covers it (rule \"rest\")"
        ]
    );
    let in_part = of_two(allow, &format!("{deny}\nmatch.capabilities = [\"web:*\"]"));
    assert!(!in_part.iter().any(|message| message.contains("deny rules cover")), "{in_part:?}");
}

#[test]
fn an_allow_that_always_asks_is_told() {
    let asks = "effect = \"escalate\"\nreviewer = \"lead\"\nmatch.capabilities = [\"payment:*\"]";
    let allow = "effect = \"allow\"\nmatch = { agents = [\"a\"], capabilities = [\"payment:transfer\"] }";
    assert_eq!(
        of_two(asks, allow),
        ["this allow never grants without an approval: the escalate \"one\" on line 2 covers it (rule \"two\")"]
    );
    // An approval is bound to these constraints.
    assert_eq!(of_two(asks, &format!("{allow}\nconstraints.maxAmount = 5")), Vec::<String>::new());
}

#[test]
fn a_rule_below_the_risk_of_what_it_names_is_told() {
    for (capability, most, least) in [
        ("payment:transfer", "LOW", Some("MEDIUM")),
        ("account:delete", "MEDIUM", Some("HIGH")),
        ("*:transfer", "LOW", Some("MEDIUM")),
        ("health:*", "LOW", Some("MEDIUM")),
        ("payment:transfer", "MEDIUM", None),
        ("credential:read", "LOW", None),
        ("*:delete", "LOW", None),
        ("*:*", "LOW", None),
    ] {
        let allow = format!(
            "effect = \"allow\"\nmatch = {{ capabilities = [\"{capability}\"], risk = {{ max = \"{most}\" }} }}"
        );
        let expected: Vec<String> = least
            .map(|least| {
                format!(
                    "this rule can match only when a tool's risk is overridden: its match implies risk \
                                  {least} or higher, and its range ends at {most} (rule \"one\")"
                )
            })
            .into_iter()
            .collect();
        let found = of_two(&allow, "effect = \"deny\"\nmatch.capabilities = [\"web:send\"]");
        let found: Vec<String> = found.into_iter().filter(|message| message.contains("can match only")).collect();
        assert_eq!(found, expected, "{capability} at {most}");
    }
}

#[test]
fn a_rule_with_words_of_its_own_says_something() {
    let wide = "effect = \"deny\"\nreason = \"Closed.\"\nmatch.capabilities = [\"file:*\"]";
    let narrow = "effect = \"deny\"\nmatch.capabilities = [\"file:read\"]";
    for own in ["reason = \"Read the wiki.\"", "severity = \"CRITICAL\""] {
        assert_eq!(of_two(wide, &format!("{own}\n{narrow}")), Vec::<String>::new(), "{own}");
    }
    let idle = "this rule is redundant: \"one\" on line 2 covers it (rule \"two\")";
    for same in ["", "reason = \"Closed.\"\n"] {
        assert_eq!(of_two(wide, &format!("{same}{narrow}")), [idle]);
    }
    // Of two equal rules, the one with a reason of its own is kept.
    let twin = "effect = \"deny\"\nmatch.capabilities = [\"file:*\"]";
    assert_eq!(of_two(twin, wide), ["this rule is redundant: \"two\" on line 6 covers it (rule \"one\")"]);
    let (first, second) = (
        "effect = \"allow\"\nreason = \"Ours.\"\nmatch.capabilities = [\"file:read\"]",
        "effect = \"allow\"\nmatch.capabilities = [\"file:*\"]",
    );
    assert_eq!(of_two(first, second), Vec::<String>::new());
}

#[test]
fn warnings_of_layers_name_their_document() {
    let set = |text: &str, name: &str| PolicySet::parse(text, PolicyFormat::Toml, name).unwrap();
    let base = "name = \"base\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"files\"\neffect = \"allow\"\nmatch.capabilities = [\"file:read\"]";
    let team = "name = \"team\"\n[[rule]]\nid = \"no-files\"\neffect = \"deny\"\nmatch.capabilities = [\"file:*\"]\n[[rule]]\nid = \"web\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]";
    let both = PolicySet::layered(&[set(base, "p.toml"), set(team, "p.toml")]).unwrap();
    let told: Vec<&str> = both.warnings().iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "p.toml (document 1): this rule is redundant: \"all\" on line 2 covers it (rule \"files\")",
            "the allow \"web\" at p.toml (document 2) line 6 grants nothing by itself: an earlier document does not name its capabilities under delegates",
            "the allow \"files\" at p.toml (document 1) line 5 never grants anything: the deny \"no-files\" at p.toml (document 2) line 2 covers it",
        ]
    );
    let error = PolicySet::layered(&[set(base, "toml"), set(base, "toml")]).unwrap_err();
    let expected = "the rule at document 2 line 2 has the id \"all\", which the rule at document 1 line 2 has too";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_sum_over_a_key_that_a_name_is_made_of_counts() {
    let text = "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nlet = { amount = \"double(context.amount)\" }\nwhen = \"has(context.amount) && amount < 9.0\"\nlimit = { sum = \"amount\", max = 5, per = \"1h\" }";
    assert_eq!(problems(text), [] as [String; 0]);
}

#[test]
fn the_schema_that_an_editor_uses_is_no_part_of_a_document() {
    let with = r#"{"$schema": "policy.schema.json", "name": "t", "rule": [{"id": "a", "effect": "allow"}]}"#;
    let without = with.replace("\"$schema\": \"policy.schema.json\", ", "");
    let digest = |text: &str| PolicySet::from_json(text).unwrap().digest();
    assert_eq!(digest(with), digest(&without));
    assert!(PolicySet::from_json(&with.replace("\"policy.schema.json\"", "1")).is_err());
}
