//! Tests of policy cases through the public API: the output of a failing case, coverage, the changes to a rule that
//! are noticed, and errors in a document of cases.

use rulekeep::intent::Parser;
use rulekeep::policy::PolicyFormat;
use rulekeep::{Decision, Error, Intent, PolicySet};
use rulekeep_cli::policy::{CaseReport, PolicyCases};
use serde_json::{Map, Value};

const MAIL: &str = r#"
name = "mail"

[[rule]]
id = "send"
effect = "allow"
match = { capabilities = ["email:send"], tiers = { min = "T3" } }
constraints = { maxRecords = 10 }

[[rule]]
id = "ask"
effect = "escalate"
reviewer = "lead"
match = { capabilities = ["email:send"], risk = { min = "HIGH" } }
"#;

const SENDS: &str = r#"
[[case]]
name = "T3 sends"
agent = { tier = "T3" }
intent = { action = "send_mail", capabilities = ["email:send"], risk = "LOW" }
expect = { decision = "ALLOW", granted = ["email:send"], denied = [], constraints = { maxRecords = 10 }, rules = ["send"] }
"#;

const NEWCOMER: &str = r#"
[[case]]
name = "a newcomer does not send"
intent = { action = "send_mail", capabilities = ["email:send"], risk = "LOW" }
expect = { decision = "DENY" }
"#;

fn policies(text: &str) -> PolicySet {
    PolicySet::from_toml(text).unwrap()
}

fn reader(agent: &rulekeep::agent::AgentId, text: &str, context: &Map<String, Value>) -> Result<Intent, Error> {
    Parser::new()?.parse_text(agent, text, context).map(|parsed| parsed.intent)
}

fn run(rules: &str, cases: &str) -> CaseReport {
    PolicyCases::from_toml(cases).unwrap().run_with_mutants(&policies(rules), &reader)
}

#[test]
fn a_file_of_cases_that_hold_passes() {
    let report = run(MAIL, &format!("{SENDS}{NEWCOMER}"));
    assert!(report.passed(), "{report}");
    assert_eq!(report.cases[0].decision, Some(Decision::Allow));
    assert_eq!(report.cases[0].rules, ["send"]);
}

#[test]
fn a_failing_case_says_what_was_expected_and_found() {
    let cases = r#"
[[case]]
name = "wrong in every way"
agent = { tier = "T4" }
intent = { action = "send_mail", capabilities = ["email:send"], risk = "LOW" }
[case.expect]
decision = "ESCALATE"
granted = []
denied = ["email:send"]
constraints = { maxRecords = 5, timeoutMs = 100 }
unconstrained = ["maxRecords"]
reviewer = "boss"
rules = ["ask"]
"#;
    let report = run(MAIL, cases);
    assert!(!report.passed());
    let text = report.failed().next().unwrap().to_string();
    for line in [
        "FAILED (line 2): \"wrong in every way\"",
        "decision: expected ESCALATE, found ALLOW",
        "granted: expected none, found email:send",
        "denied: expected email:send, found none",
        "constraints.maxRecords: expected 5, found 10",
        "constraints.timeoutMs: expected 100, found nothing",
        "constraints.maxRecords: expected nothing, found 10",
        "reviewer: expected boss, found nothing",
        "rules: expected ask, found send",
        "Allowed: email:send granted by rule \"send\" at line",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn coverage_is_what_can_be_counted_by_hand() {
    // "send" has two clauses and "ask" has two. T3 at LOW: "send" matches, and "ask" fails only because of its risk.
    let report = run(MAIL, SENDS);
    let [send, ask] = &report.coverage.rules[..] else { panic!("two rules") };
    let clauses = |rule: &rulekeep_cli::policy::RuleCoverage| -> Vec<(String, usize, usize)> {
        rule.clauses.iter().map(|clause| (clause.clause.clone(), clause.held, clause.failed)).collect()
    };
    assert_eq!((send.line, send.decided, ask.line, ask.decided), (4, 1, 10, 0));
    assert_eq!(clauses(send), [("capabilities".to_owned(), 1, 0), ("tiers".to_owned(), 1, 0)]);
    assert_eq!(clauses(ask), [("capabilities".to_owned(), 0, 0), ("risk".to_owned(), 0, 1)]);
    assert_eq!((report.coverage.rules_percent, report.coverage.clauses_percent), (50.0, 0.0));

    // The newcomer: "send" fails only because of its tier. One clause of four is seen to hold and to fail.
    let report = run(MAIL, &format!("{SENDS}{NEWCOMER}"));
    assert_eq!((report.coverage.rules_percent, report.coverage.clauses_percent), (50.0, 25.0));
}

#[test]
fn a_case_that_differs_in_two_ways_covers_no_clause() {
    let cases = r#"
[[case]]
name = "a newcomer reads"
intent = { action = "read_mail", capabilities = ["email:read"], risk = "LOW" }
expect = { decision = "DENY" }
"#;
    let report = run(MAIL, cases);
    let send = &report.coverage.rules[0];
    assert!(send.clauses.iter().all(|clause| clause.failed == 0), "{report}");
}

#[test]
fn a_mutant_survives_without_a_case_and_dies_with_it() {
    let survives = |report: &CaseReport, mutation: &str| {
        let mutants = report.mutants.as_ref().unwrap();
        mutants.survivors.iter().any(|one| one.rule == "send" && one.mutation == mutation)
    };
    let before = run(MAIL, SENDS);
    assert!(!survives(&before, "left out"));
    for mutation in ["without tiers", "tiers.min T2 instead of T3"] {
        assert!(survives(&before, mutation), "{mutation}: {before}");
    }
    let advice =
        before.mutants.as_ref().unwrap().survivors.iter().find(|one| one.mutation == "tiers.min T2 instead of T3");
    let advice = &advice.unwrap().advice;
    assert!(advice.contains("tier T2") && advice.contains("it is DENY, and ALLOW with the change"), "{advice}");

    let at_t2 = NEWCOMER.replace("intent =", "agent = { tier = \"T2\" }\nintent =");
    let after = run(MAIL, &format!("{SENDS}{at_t2}"));
    for mutation in ["without tiers", "tiers.min T2 instead of T3"] {
        assert!(!survives(&after, mutation), "{mutation}: {after}");
    }
}

#[test]
fn a_change_that_a_case_sees_and_does_not_expect_is_told_so() {
    let rules = MAIL.replace("constraints = { maxRecords = 10 }", "constraints = { maxRecords = 10 }\n\n[[rule]]\nid = \"less\"\neffect = \"allow\"\nmatch = { capabilities = [\"email:*\"] }\nconstraints = { maxRecords = 3 }\n");
    let cases = SENDS.replace(", constraints = { maxRecords = 10 }", "");
    let wrong = "\n[[equivalent]]\nrule = \"less\"\nmutation = \"left out\"\nreason = \"Mistaken.\"\n";
    let report = run(&rules, &format!("{cases}{wrong}"));
    let left_out =
        report.mutants.as_ref().unwrap().survivors.iter().find(|one| one.rule == "less" && one.mutation == "left out");
    assert_eq!(
        left_out.unwrap().advice,
        "case \"T3 sends\" is affected by it but expects nothing about constraints: add it there"
    );
}

#[test]
fn a_change_without_effect_can_be_declared_and_idle_ones_show() {
    let rules =
        format!("{MAIL}\n[[rule]]\nid = \"again\"\neffect = \"deny\"\nmatch = {{ capabilities = [\"web:read\"] }}\n");
    let declared = "\n[[equivalent]]\nrule = \"again\"\nmutation = \"left out\"\nreason = \"Nothing grants it.\"\n\n[[equivalent]]\nrule = \"send\"\nmutation = \"left out\"\nreason = \"Mistaken.\"\n";
    let report = run(&rules, &format!("{SENDS}{declared}"));
    let mutants = report.mutants.unwrap();
    assert_eq!(mutants.equivalent.len(), 1);
    assert_eq!(mutants.equivalent[0].advice, "Nothing grants it.");
    assert_eq!(
        mutants.idle_declarations,
        ["a case notices \"send\" left out, or no such mutant exists: drop its declaration"]
    );
}

#[test]
fn a_limit_is_seen_both_ways_when_a_case_says_what_was_used() {
    let rules = "name = \"m\"\n[[rule]]\nid = \"send\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\nlimit = { count = 3, per = \"1h\" }\n";
    let used_up = SENDS
        .replace("T3 sends", "used up")
        .replace("\"ALLOW\", granted = [\"email:send\"], denied = [], constraints = { maxRecords = 10 }", "\"DENY\"")
        .replace("expect =", "used = { send = 3 }\nexpect =");
    let cases = format!("{}{used_up}", SENDS.replace(", constraints = { maxRecords = 10 }", ""));
    let report = run(rules, &cases);
    assert!(report.passed(), "{report}");
    let limit = &report.coverage.rules[0].clauses[1];
    assert_eq!((limit.clause.as_str(), limit.held, limit.failed), ("limit", 1, 1));
    let survivors = &report.mutants.as_ref().unwrap().survivors;
    assert!(!survivors.iter().any(|one| one.mutation == "without limit"), "{report}");

    let mistyped = run(rules, &used_up.replace("send = 3", "sned = 3")).to_string();
    let told = "used.sned: expected a rule with a limit; did you mean \"send\"?, found nothing";
    assert!(mistyped.contains(told), "{mistyped}");
    let unknown = run(rules, &cases.replace("rules = [\"send\"]", "rules = [\"sned\"]")).to_string();
    let told = "rules: expected sned (there is no such rule; did you mean \"send\"?), found send";
    assert!(unknown.contains(told), "{unknown}");
}

#[test]
fn rules_of_every_layer_count_and_are_changed_where_they_stand() {
    let team = "name = \"team\"\n[[rule]]\nid = \"never-at-t5\"\neffect = \"deny\"\nmatch = { capabilities = [\"email:send\"], tiers = { min = \"T5\" } }\n";
    let layered = PolicySet::layered(&[policies(MAIL), policies(team)]).unwrap();
    let report = PolicyCases::from_toml(SENDS).unwrap().run_with_mutants(&layered, &reader);
    assert!(report.passed(), "{report}");
    let rules: Vec<&str> = report.coverage.rules.iter().map(|rule| rule.rule.as_str()).collect();
    assert_eq!(rules, ["send", "ask", "never-at-t5"]);
    let survivors = report.mutants.unwrap().survivors;
    let of_team: Vec<&str> =
        survivors.iter().filter(|one| one.rule == "never-at-t5").map(|one| one.mutation.as_str()).collect();
    assert_eq!(of_team, ["left out", "without capabilities", "tiers.min T4 instead of T5"], "the case stands at T3");
}

#[test]
fn defaults_fill_what_a_case_leaves_out_and_texts_are_read() {
    let cases = r#"
[defaults]
agent = { id = "desk", tier = "T3" }
intent = { action = "send_mail", capabilities = ["email:send"] }

[[case]]
name = "by default"
expect = { decision = "ALLOW" }

[[case]]
name = "at high risk"
intent = { risk = "HIGH" }
expect = { decision = "ESCALATE", reviewer = "lead" }

[[case]]
name = "in words"
input = "Send the agenda to ann@example.com"
expect = { decision = "ALLOW" }

[[case]]
name = "nothing to read"
input = " "
expect = { decision = "ALLOW" }
"#;
    let report = run(MAIL, cases);
    let failed: Vec<&str> = report.failed().map(|case| case.name.as_str()).collect();
    assert_eq!(failed, ["nothing to read"], "{report}");
    assert!(report.to_string().contains("input: expected a text that can be read, found input: is blank"), "{report}");
}

#[test]
fn both_formats_say_the_same() {
    let json = r#"{"case": [{"name": "T3 sends", "agent": {"tier": "T3"},
        "intent": {"action": "send_mail", "capabilities": ["email:send"], "risk": "LOW"},
        "expect": {"decision": "ALLOW", "constraints": {"maxRecords": 10.0}}}]}"#;
    let report = PolicyCases::from_json(json).unwrap().run(&policies(MAIL), &reader);
    assert!(report.passed(), "{report}");
    assert!(serde_json::to_value(&report).unwrap()["coverage"]["rulesPercent"].is_number());
}

#[test]
fn a_malformed_document_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "line 1 column 1: the document has no cases"),
        ("[[case]]\nname = \"a\"\n", "line 1 column 1: the field \"expect\" is missing"),
        ("[[case]]\nnmae = \"a\"\n", "line 2 column 1: unknown field \"nmae\"; did you mean \"name\"?"),
        (
            "[[case]]\nname = \"a\"\nexpect = { decison = \"ALLOW\" }",
            "line 3 column 12: unknown field \"decison\"; did you mean \"decision\"?",
        ),
        (
            "[[case]]\nname = \"a\"\nexpect = { error = \"INTERNAL\" }",
            "line 3 column 20: expected \"POLICY_ERROR\", the one error that rules cause",
        ),
        (
            "[[case]]\nname = \"a\"\nexpect = { error = \"POLICY_ERROR\", reviewer = \"b\" }",
            "line 3 column 20: a case that expects an error cannot have reviewer: no decision is made",
        ),
        (
            "[[case]]\nname = \"a\"\nexpect = { decision = \"ALOW\" }",
            "line 3 column 23: unknown decision \"ALOW\"; did you mean \"ALLOW\"?",
        ),
        (
            "[[case]]\nname = \"a\"\nintent = { action = \"b\", capabilities = [\"email\"] }\nexpect = { decision = \"DENY\" }",
            "line 3 column 42: \"email\" is not a valid capability",
        ),
        (
            "[[case]]\nname = \"a\"\nexpect = { decision = \"DENY\" }",
            "line 1 column 1: a case needs a field \"intent\" or a field \"input\"",
        ),
        (
            "[[case]]\nname = \"a\"\ninput = \"x\"\nintent = { action = \"b\" }\nexpect = { decision = \"DENY\" }",
            "line 4 column 10: a case is an intent or an input, not both",
        ),
        (
            "[[case]]\nname = \"a\"\ninput = \"x\"\nagent = { tier = \"T3\", score = 1001 }\nexpect = { decision = \"DENY\" }",
            "line 4 column 32: expected a whole number from 0 to 1000",
        ),
        (
            "[[case]]\nname = \"a\"\ninput = \"x\"\nnow = \"soon\"\nexpect = { decision = \"DENY\" }",
            "line 4 column 7: \"soon\" is not a valid timestamp",
        ),
        (
            "[[case]]\nname = \"a\"\nintent = { action = \"b\", capabilities = [\"web:read\"], context = { environment = 1 } }\nexpect = { decision = \"DENY\" }",
            "line 3 column 10: intent context: environment: expected a string",
        ),
        ("[[case]]\nname = ", "line 2 column 8: this is not TOML"),
    ] {
        let Err(Error::InvalidPolicy { message, problems, .. }) =
            PolicyCases::parse(text, PolicyFormat::Toml, "c.toml")
        else {
            panic!("{text} loads")
        };
        let told = problems.iter().map(|one| format!("line {} column {}: {}", one.line, one.column, one.message));
        let told: Vec<String> = told.collect();
        assert!(told.iter().any(|one| one.starts_with(expected)), "{expected} is not in {told:#?}");
        // The first problem is reported; missing fields after a mistyped one are only a consequence.
        let first = problems.iter().find(|one| one.message.starts_with("unknown field")).unwrap_or(&problems[0]);
        let start = format!("cases \"c.toml\" line {} column {}: {}", first.line, first.column, first.message);
        assert!(message.starts_with(&start), "{message}");
    }
    let twice = format!("{SENDS}{SENDS}");
    let error = PolicyCases::from_toml(&twice).unwrap_err();
    assert!(
        error.to_string().contains("line 8 column 1: another case has the name \"T3 sends\", on line 2"),
        "{error}"
    );
}

#[test]
fn the_recommended_set_passes_its_cases_and_misses_no_change() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let cases = PolicyCases::from_file(folder.join("recommended.cases.toml")).unwrap();
    let report = cases.run_with_mutants(&PolicySet::recommended().unwrap(), &reader);
    assert!(report.passed(), "{report}");
    let mutants = report.mutants.as_ref().unwrap();
    assert_eq!((report.coverage.rules_percent, report.coverage.clauses_percent), (100.0, 100.0), "{report}");
    assert!(mutants.survivors.is_empty() && mutants.idle_declarations.is_empty() && mutants.left_out == 0, "{report}");
}

#[test]
fn a_condition_is_seen_both_ways_and_its_loss_is_noticed() {
    let rules = "name = \"m\"\n[[rule]]\nid = \"send\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\nwhen = \"context.amount < most\"\nlet = { most = \"50\" }\n";
    let case = |name: &str, amount: u32, decision: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\nagent = {{ id = \"a\", tier = \"T3\" }}\nintent = {{ action = \"send_mail\", capabilities = [\"email:send\"], context = {{ amount = {amount} }} }}\nexpect = {{ decision = \"{decision}\" }}\n"
        )
    };
    let small = case("small", 20, "ALLOW");
    let one_way = run(rules, &small);
    assert!(one_way.passed(), "{one_way}");
    let survivors = |report: &CaseReport| -> Vec<String> {
        report.mutants.as_ref().unwrap().survivors.iter().map(|one| one.mutation.clone()).collect()
    };
    assert!(survivors(&one_way).contains(&"without when".to_owned()), "{one_way}");
    let both_ways = run(rules, &format!("{small}{}", case("large", 60, "DENY")));
    let when = both_ways.coverage.rules[0].clauses.iter().find(|clause| clause.clause == "when").unwrap();
    assert_eq!((when.held, when.failed), (1, 1));
    assert!(!survivors(&both_ways).contains(&"without when".to_owned()), "{both_ways}");
}

const SMALL: &str = "name = \"m\"\n[[rule]]\nid = \"send\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\nwhen = \"context.amount < 50\"\n[rule.examples]\nmatch = [{ context = { amount = 20 } }]\n";

fn sent(name: &str, context: &str, expect: &str) -> String {
    format!(
        "[[case]]\nname = \"{name}\"\nagent = {{ tier = \"T3\" }}\nintent = {{ action = \"send_mail\", capabilities = [\"email:send\"], context = {{ {context} }} }}\nexpect = {{ {expect} }}\n"
    )
}

#[test]
fn a_case_can_expect_that_a_condition_fails() {
    let fails = sent("no amount", "", "error = \"POLICY_ERROR\"");
    let report = run(SMALL, &fails);
    assert!(report.passed(), "{report}");
    assert_eq!(report.cases[0].decision, None);
    assert!(report.cases[0].reasoning.contains("amount < 50"), "{}", report.cases[0].reasoning);
    // Nothing was decided: the case covers nothing, but notices that the condition is gone.
    assert_eq!((report.coverage.rules_percent, report.coverage.clauses_percent), (0.0, 0.0));
    let mutants = report.mutants.as_ref().unwrap();
    assert!(!mutants.survivors.iter().any(|one| one.mutation == "without when"), "{report}");

    let decided = run(SMALL, &sent("an amount", "amount = 20", "error = \"POLICY_ERROR\""));
    let text = decided.failed().next().unwrap().to_string();
    assert!(text.contains("error: expected POLICY_ERROR, found ALLOW"), "{text}");
    let unexpected = run(SMALL, &sent("no amount", "", "decision = \"ALLOW\"")).to_string();
    assert!(unexpected.contains("decision: expected ALLOW, found POLICY_ERROR: "), "{unexpected}");
}

#[test]
fn requests_of_a_rules_own_examples_tell_a_change() {
    let report = run(SMALL, &sent("large", "amount = 60", "decision = \"DENY\""));
    let survivors = &report.mutants.as_ref().unwrap().survivors;
    let left_out = survivors.iter().find(|one| one.rule == "send" && one.mutation == "left out").unwrap();
    assert!(left_out.advice.contains("it is ALLOW, and DENY with the change"), "{}", left_out.advice);
    assert!(left_out.advice.contains("{\"amount\":20}"), "{}", left_out.advice);
}

#[test]
fn degrade_remainders_and_negative_examples_reveal_a_change() {
    let rules = "name = \"m\"\n[[rule]]\nid = \"less\"\neffect = \"degrade\"\nto = [\"customer:read\"]\nmatch.capabilities = [\"customer:*\"]\nunless = \"now.getDayOfWeek() == 0\"\n[rule.examples]\nnot_match = [{ now = \"2026-11-22T09:00:00Z\" }]\n";
    let report = run(rules, &sent("sends", "", "decision = \"DENY\""));
    let survivors = &report.mutants.as_ref().unwrap().survivors;
    for mutation in ["left out", "without unless"] {
        let advice = &survivors.iter().find(|one| one.mutation == mutation).unwrap().advice;
        assert!(advice.starts_with("add a case with ") && advice.contains("customer:read"), "{mutation}: {advice}");
    }
}

#[test]
fn a_refuted_declaration_is_told_and_its_change_survives() {
    // Only what another rule grants shows that the deny would deny more.
    let rules = "name = \"m\"\n[[rule]]\nid = \"no-sending\"\neffect = \"deny\"\nmatch = { capabilities = [\"email:send\"], labels = [\"out\"] }\n[[rule]]\nid = \"booking\"\neffect = \"allow\"\nmatch = { capabilities = [\"booking:write\"], groups = [\"desk\"] }\n";
    let cases = format!(
        "{}\n[[equivalent]]\nrule = \"no-sending\"\nmutation = \"without capabilities\"\nreason = \"No request that was tried tells it.\"\n",
        sent("sends", "", "decision = \"DENY\"")
    );
    let report = run(rules, &cases);
    let mutants = report.mutants.as_ref().unwrap();
    assert_eq!((mutants.refuted, mutants.equivalent.len()), (1, 0), "{report}");
    let refuted = mutants.survivors.iter().find(|one| one.mutation == "without capabilities").unwrap();
    let told = "it is declared equivalent, but it is not: drop the declaration and add a case with ";
    assert!(refuted.advice.starts_with(told) && refuted.advice.contains("booking:write"), "{}", refuted.advice);
}

#[test]
fn a_case_below_the_risk_of_what_it_asks_is_warned_of() {
    let report = run(MAIL, &SENDS.replace("email:send", "payment:transfer").replace("ALLOW", "DENY"));
    let warning = report.cases[0].warning.as_deref().unwrap();
    assert!(warning.starts_with("the case states risk LOW, but a governor rates the request "), "{warning}");
    assert!(report.to_string().contains("warning (line 2): \"T3 sends\": the case states"), "{report}");
}

#[test]
fn what_differs_by_its_kind_alone_is_told_with_it() {
    let rules = MAIL.replace("maxRecords = 10", "seats = \"50\"");
    let report = run(&rules, &SENDS.replace("maxRecords = 10", "seats = 50")).to_string();
    assert!(report.contains("constraints.seats: expected 50 (a number), found \"50\" (a string)"), "{report}");
}

/// The cases are those of the library and of the server.
#[test]
fn the_first_rules_of_everybody_bind_in_a_file_of_cases() {
    let file: Value = serde_json::from_str(include_str!("../../../../tests/data/newcomer.json")).unwrap();
    let mut written = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let text = case["input"].as_str().map_or_else(|| case["input"].to_string(), str::to_owned);
        let mut expect = serde_json::json!({ "decision": case["decision"] });
        if let Some(rule) = case["rule"].as_str().filter(|_| case["decision"] == "ALLOW") {
            expect["rules"] = serde_json::json!([rule]);
        }
        let tier = case["tier"].as_str().unwrap_or("T4");
        let mut one =
            serde_json::json!({ "name": case["name"], "agent": { "tier": tier }, "input": text, "expect": expect });
        if let Some(context) = case.get("context") {
            one["context"] = context.clone();
        }
        written.push(one);
    }
    let cases = toml::to_string(&serde_json::json!({ "case": written })).unwrap();
    let report = PolicyCases::from_toml(&cases).unwrap().run(&policies(file["policies"].as_str().unwrap()), &reader);
    assert!(report.passed(), "{report}");
}
