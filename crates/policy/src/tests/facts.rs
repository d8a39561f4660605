//! Clauses over facts: an allow needs all values to match, a refusal any; an unread value matches no allow and every
//! refusal.

use serde_json::{Value, json};

use super::*;
use rulekeep_types::{Decision, Facts};

/// An intent with one act; `open` lists kinds of operands that were not read, or `runs` for code.
fn parsed(operands: &[(&str, &str)], open: &[&str]) -> Intent {
    let operand = |(kind, value): &(&str, &str)| json!({ "kind": kind, "role": "send_to", "value": value });
    let part = |kind: &&str| match *kind {
        "runs" => json!({ "cause": "execution", "found": "x", "kinds": ["path", "recipient", "host"] }),
        "builds" => json!({ "cause": "folder", "found": "x", "kinds": ["path", "recipient", "host"] }),
        kind => json!({ "cause": "text", "found": "x", "kinds": [kind] }),
    };
    let facts: Facts = serde_json::from_value(json!({
        "form": 2, "formats": ["tool_call", "shell"], "acts": [{
            "tool": "Bash",
            "does": [{ "action": "send_mail", "capability": "email:send", "risk": "MEDIUM" }],
            "operands": operands.iter().map(operand).collect::<Vec<_>>(),
            "open": open.iter().map(part).collect::<Vec<_>>(),
        }],
    }))
    .unwrap();
    let mut intent = intent("send_mail", &["email:send"]);
    intent.known = Some(facts.into());
    intent
}

fn rule(effect: &str, clause: &str) -> PolicySet {
    let all = "[[rule]]\nid = \"all\"\neffect = \"allow\"\n";
    let rest = if effect == "deny" { all } else { "" };
    let text = format!("name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"{effect}\"\nmatch = {{ {clause} }}\n{rest}");
    PolicySet::from_toml(&text).unwrap()
}

#[test]
fn an_allow_needs_every_value_and_a_deny_one() {
    let ours = ("recipient", "ann@ours.example");
    let theirs = ("recipient", "eve@evil.example");
    let file = ("path", "/srv/a");
    for (effect, clause, targets, unread, allowed) in [
        ("allow", "recipients = [\"*@ours.example\"]", &[ours][..], &[][..], true),
        ("allow", "recipients = [\"*@OURS.example\"]", &[ours, file], &[], true),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours, theirs], &[], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[], &[], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["recipient"], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["recipient"], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["path"], true),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["runs"], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["builds"], false),
        ("allow", "recipients = [\"*@ours.example\"], runs = \"folder\"", &[ours], &["builds"], true),
        ("allow", "recipients = [\"*@ours.example\"], runs = \"folder\"", &[ours], &["builds", "runs"], false),
        ("allow", "recipients = [\"*@ours.example\"], runs = \"folder\"", &[ours, theirs], &["builds"], false),
        ("allow", "recipients = [\"*@ours.example\"], runs = \"any\"", &[ours], &["builds", "runs"], true),
        ("allow", "targets = [\"*@ours.example\"]", &[ours, file], &[], false),
        ("allow", "context = [{ key = \"target\", matches = \"@ours[.]example$\" }]", &[ours, theirs], &[], false),
        ("allow", "tools = [\"bash\"]", &[], &[], true),
        ("allow", "formats = [\"tool_call\"]", &[], &[], false),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours, theirs], &[], false),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &[], true),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &["recipient"], false),
        ("deny", "formats = [\"shell\"]", &[], &[], false),
        ("deny", "formats = [\"sql\"]", &[], &[], true),
        ("deny", "tools = [\"other\"]", &[], &["recipient"], true),
        ("deny", "tools = [\"other\"]", &[], &["command"], false),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &["runs"], true),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &["path"], true),
        // Exclusions: an allow needs certainty that nothing matches; a refusal holds unless everything is known to
        // match.
        ("allow", "not.recipients = [\"*@evil.example\"]", &[ours], &[], true),
        ("allow", "not.recipients = [\"*@evil.example\"]", &[], &[], true),
        ("allow", "not.recipients = [\"*@evil.example\"]", &[ours, theirs], &[], false),
        ("allow", "not.recipients = [\"*@evil.example\"]", &[ours], &["recipient"], false),
        ("allow", "not = { formats = [\"sql\"], tools = [\"other\"] }", &[], &[], true),
        ("allow", "not = { formats = [\"sql\"], tools = [\"ba*\"] }", &[], &[], false),
        ("allow", "not.servers = [\"mail\"]", &[], &[], true),
        ("deny", "not.recipients = [\"*@ours.example\"]", &[ours], &[], true),
        ("deny", "not.recipients = [\"*@ours.example\"]", &[file], &[], true),
        ("deny", "not.recipients = [\"*@ours.example\"]", &[ours, theirs], &[], false),
        ("deny", "not.recipients = [\"*@ours.example\"]", &[ours], &["recipient"], false),
        ("deny", "not.tools = [\"Bash\"]", &[], &[], true),
        ("deny", "not.servers = [\"mail\"]", &[], &[], false),
        ("deny", "formats = [\"shell\"], not.labels = [\"ci\"]", &[], &[], false),
        ("deny", "formats = [\"shell\"], not.actions = [\"send_*\"]", &[], &[], true),
    ] {
        let decision = decide(&rule(effect, clause), &parsed(targets, unread)).decision;
        assert_eq!(decision == Decision::Allow, allowed, "{effect} {clause} {targets:?} {unread:?}: {decision}");
    }
}

#[test]
fn what_is_not_known_of_a_built_intent_counts_against_it() {
    for (effect, clause, context, allowed) in [
        ("allow", "not.environment = [\"production\"]", json!({ "environment": "dev" }), true),
        ("allow", "not.environment = [\"production\"]", json!({ "environment": "Production" }), false),
        ("allow", "not.environment = [\"production\"]", json!({}), false),
        ("deny", "not.environment = [\"dev\"]", json!({}), false),
        ("deny", "not.environment = [\"dev\"]", json!({ "environment": "dev" }), true),
        ("allow", "not.formats = [\"shell\"]", json!({}), false),
        ("deny", "not.formats = [\"sql\"]", json!({}), false),
        ("allow", "not.hosts = [\"evil.example\"]", json!({ "target": "ours.example" }), true),
        ("allow", "not.hosts = [\"evil.example\"]", json!({ "target": ["ours.example", "evil.example"] }), false),
        ("allow", "not.hosts = [\"evil.example\"]", json!({ "target": { "a": 1 } }), false),
        ("deny", "not.context = [{ key = \"team\", matches = \"^ours$\" }]", json!({ "team": "ours" }), true),
        ("deny", "not.context = [{ key = \"team\", matches = \"^ours$\" }]", json!({ "team": ["ours", "x"] }), false),
        ("allow", "not.context = [{ key = \"team\", matches = \"^theirs$\" }]", json!({ "team": "ours" }), true),
        ("allow", "not.context = [{ key = \"team\", matches = \"^theirs$\" }]", json!({}), false),
        ("allow", "not.agents = [\"agent-*\"]", json!({}), true),
    ] {
        let mut asked = intent("send_mail", &["email:send"]);
        asked.context = context.as_object().unwrap().clone();
        let decision = decide(&rule(effect, clause), &asked).decision;
        assert_eq!(decision == Decision::Allow, allowed, "{effect} {clause} {context}: {decision}");
    }
}

#[test]
fn a_rule_with_an_exclusion_covers_no_other_and_says_why() {
    let covered = "name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"\n";
    let warned = |more: &str| PolicySet::from_toml(&format!("{covered}{more}")).unwrap().warnings().len();
    assert_eq!((warned("") > 0, warned("match.not.labels = [\"ci\"]")), (true, 0));
    let policies = rule("deny", "not.tools = [\"bash\"]");
    let why = &policies.traces(&request(&parsed(&[], &[]), Tier::T3, RiskLevel::Medium))[0].why;
    assert!(why.contains("it is, or may be, what not.facts.tool names"), "{why}");
    let digest = |text: &str| rule("deny", text).digest();
    assert_ne!(digest("not.tools = [\"a\"]"), digest("tools = [\"a\"]"));
}

#[test]
fn of_an_intent_that_was_built_the_target_of_its_context_counts() {
    let policies = rule("allow", "targets = [\"*@ours.example\"]");
    for (target, allowed) in [
        (json!("ann@ours.example"), true),
        (json!(["ann@ours.example", "eve@evil.example"]), false),
        (json!({ "a": 1 }), false),
        (Value::Null, false),
    ] {
        let asked = intent("send_mail", &["email:send"]).with_context("target", target.clone());
        assert_eq!(decide(&policies, &asked).decision == Decision::Allow, allowed, "{target}");
    }
}

#[test]
fn an_explanation_names_the_values_that_did_not_match() {
    let policies = rule("allow", "recipients = [\"*@ours.example\"]");
    let asked = parsed(&[("recipient", "eve@evil.example")], &[]);
    let why = &policies.traces(&request(&asked, Tier::T3, RiskLevel::Medium))[0].why;
    assert!(why.contains("facts.recipients is \"eve@evil.example\""), "{why}");
}

#[test]
fn a_condition_reads_the_facts_in_the_context() {
    let theirs = ("recipient", "eve@evil.example");
    for (condition, decision) in [
        ("context.facts.targets.exists(t, t.value.endsWith('@evil.example'))", Decision::Deny),
        ("context['facts'].tool == 'Bash' && 'facts' in context && has(context.facts)", Decision::Deny),
        ("size(context) == 1 && context.all(key, key == 'facts')", Decision::Deny),
        ("has(context.facts.amounts)", Decision::Allow),
        ("intent.actions == ['send_mail'] && intent.actions.exists(action, action == 'send_mail')", Decision::Deny),
    ] {
        let text = format!(
            "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nwhen = {condition:?}\n"
        );
        let policies = PolicySet::from_toml(&text).unwrap();
        let verdict = policies.evaluate(&request(&parsed(&[theirs], &[]), Tier::T4, RiskLevel::Low)).unwrap();
        assert_eq!(verdict.decision, decision, "{condition}");
    }
}

/// An intent of commands: each with its layers, its normal form and its capability.
fn run(acts: &[(&[&str], &str, &str)]) -> Intent {
    let capabilities: Vec<&str> = acts.iter().map(|(.., capability)| *capability).collect();
    let act = |(layers, normal, capability): &(&[&str], &str, &str)| {
        let doing = json!({ "action": "run_it", "capability": capability, "risk": "MEDIUM" });
        json!({ "tool": "Bash", "commands": layers, "command": normal, "does": [doing] })
    };
    let acts: Vec<Value> = acts.iter().map(act).collect();
    let facts: Facts = serde_json::from_value(json!({ "form": 2, "formats": ["shell"], "acts": acts })).unwrap();
    let mut intent = intent("run_it", &capabilities);
    intent.known = Some(facts.into());
    intent
}

#[test]
fn a_deny_of_commands_binds_every_form_an_allow_the_written() {
    let push: &[&str] = &["git push"];
    for (layers, normal, is_denied, is_allowed) in [
        (push, "git push", true, true),
        (&["git push origin"], "git push origin", true, true),
        (&["git pushes"], "git pushes", false, false),
        (&["/tmp/git push"], "git push", true, false),
        (&["git -C /srv push"], "git push", true, false),
        (&["sudo git push", "git push"], "git push", true, false),
    ] {
        let asked = run(&[(layers, normal, "code:write")]);
        let denied = decide(&rule("deny", "commands = [\"git push *\"]"), &asked).decision == Decision::Deny;
        let allowed = decide(&rule("allow", "commands = [\"git push *\"]"), &asked).decision == Decision::Allow;
        assert_eq!((denied, allowed), (is_denied, is_allowed), "{layers:?}");
    }
}

#[test]
fn a_deny_of_a_command_binds_every_order_of_its_letters() {
    for (written, normal) in [("rm -rf a", "rm -fr a"), ("rm -fr a", "rm -fr a"), ("/bin/rm -fr a", "rm -fr a")] {
        let asked = run(&[(&[written], normal, "file:delete")]);
        for glob in ["rm -rf *", "rm -fr *"] {
            let decision = decide(&rule("deny", &format!("commands = [{glob:?}]")), &asked).decision;
            assert_eq!(decision, Decision::Deny, "{glob} and {written}");
            let decision = decide(&rule("allow", &format!("not.commands = [{glob:?}]")), &asked).decision;
            assert_eq!(decision, Decision::Deny, "not {glob} and {written}");
        }
    }
}

#[test]
fn an_allow_is_asked_for_the_acts_of_each_capability() {
    let (push, ls): (&[&str], &[&str]) = (&["git push"], &["ls"]);
    let asked = run(&[(push, "git push", "code:write"), (ls, "ls", "file:read")]);
    let one = "id = \"a\"\neffect = \"allow\"\nmatch.commands = [\"git push *\"]";
    let other = "id = \"b\"\neffect = \"allow\"\nmatch.commands = [\"ls *\"]";
    assert_eq!(decide(&toml(&[one, other]), &asked).decision, Decision::Allow);
    assert_eq!(decide(&toml(&[one]), &asked).decision, Decision::Degrade);
    let both_write = run(&[(push, "git push", "code:write"), (ls, "ls", "code:write")]);
    assert_eq!(decide(&toml(&[one, other]), &both_write).decision, Decision::Deny);
    let trace = toml(&[one]).traces(&request(&asked, Tier::T3, RiskLevel::Medium));
    assert_eq!((trace[0].matched, words(&trace[0].capabilities)), (true, vec!["code:write".to_owned()]));
}

#[test]
fn a_denial_for_what_was_not_read_says_how_to_write_it() {
    let denied = decide(&rule("deny", "recipients = [\"*@evil.example\"]"), &parsed(&[], &["recipient"]));
    assert!(denied.reasoning.contains("could not be read") && denied.rewrite.is_some(), "{}", denied.reasoning);
    let evil = ("recipient", "eve@evil.example");
    let denied = decide(&rule("deny", "recipients = [\"*@evil.example\"]"), &parsed(&[evil], &["recipient"]));
    assert!(denied.reasoning.contains("Rephrasing") && denied.rewrite.is_none(), "{}", denied.reasoning);
}

/// An intent of one act, given in JSON.
fn acts(capabilities: &[&str], acts: &Value) -> Intent {
    let facts: Facts = serde_json::from_value(json!({ "form": 2, "formats": ["tool_call"], "acts": acts })).unwrap();
    let mut intent = intent("do_it", capabilities);
    intent.known = Some(facts.into());
    intent
}

fn decision(effect: &str, clause: &str, asked: &Intent) -> Decision {
    decide(&rule(effect, clause), asked).decision
}

#[test]
fn an_escalation_of_what_was_not_read_asks_to_rewrite_it_first() {
    let policies = toml(&[
        "id = \"all\"\neffect = \"allow\"",
        "id = \"ask\"\neffect = \"escalate\"\nreviewer = \"ann\"\nmatch.recipients = [\"*@evil.example\"]",
    ]);
    let evil = ("recipient", "eve@evil.example");
    let unread = parsed(&[], &["recipient"]);
    let first = decide(&policies, &unread);
    assert_eq!((first.decision, first.granted.len()), (Decision::Deny, 0));
    assert!(first.rewrite.is_some() && first.reasoning.contains("possibly subject to approval"), "{}", first.reasoning);
    let request = request(&unread, Tier::T3, RiskLevel::Medium);
    assert_eq!(policies.denial_class(&request, &first), rulekeep_types::DenialClass::Unread);
    let again = decide(&policies, &unread.clone().with_context("retryOf", json!("prf_1")));
    assert_eq!(again.decision, Decision::Escalate);
    assert_eq!(decide(&policies, &parsed(&[evil], &[])).decision, Decision::Escalate);
    assert_eq!(decide(&policies, &parsed(&[evil], &["recipient"])).decision, Decision::Escalate);
    assert_eq!(decide(&policies, &parsed(&[("recipient", "a@b.example")], &[])).decision, Decision::Allow);
}

#[test]
fn an_exclusion_of_what_was_not_read_says_how_to_write_it() {
    let theirs = ("recipient", "eve@evil.example");
    for (clause, operands, open, is_unread) in [
        ("not.recipients = [\"*@ours.example\"]", &[][..], &["recipient"][..], true),
        ("not.recipients = [\"*@ours.example\"]", &[theirs], &[], false),
        ("not.recipients = [\"*@ours.example\"]", &[theirs], &["path"], false),
        ("not.commands = [\"git *\"]", &[], &["command"], true),
        ("not.commands = [\"git *\"]", &[], &["recipient"], false),
    ] {
        let denied = decide(&rule("deny", clause), &parsed(operands, open));
        assert_eq!((denied.decision, denied.rewrite.is_some()), (Decision::Deny, is_unread), "{clause} {open:?}");
    }
}

#[test]
fn a_restriction_says_whether_it_binds_trees_that_are_read() {
    let doing = json!({ "action": "search_it", "capability": "file:read", "risk": "LOW" });
    let tree = |role: &str| json!({ "kind": "path", "role": role, "value": "/srv", "tree": true });
    let asked = |role: &str| acts(&["file:read"], &json!([{ "does": [doing], "operands": [tree(role)] }]));
    for (clause, role, expected) in [
        ("paths = [\"*.env\"]", "read", Decision::Allow),
        ("paths = [\"*.env\"], trees = true", "read", Decision::Deny),
        ("paths = [\"*.env\"], trees = true", "named", Decision::Deny),
        ("paths = [\"*.env\"]", "remove", Decision::Deny),
        ("paths = [\"/etc/*\"], trees = true", "read", Decision::Allow),
    ] {
        assert_eq!(decision("deny", clause, &asked(role)), expected, "{clause} {role}");
    }
    let written = "name = \"t\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"\nmatch = { paths = [\"a\"], trees = 1 }";
    let error = PolicySet::from_toml(written).unwrap_err().to_string();
    assert!(error.contains("expected true or false, found a number"), "{error}");
    for (effect, clause, whom) in [("allow", "trees = true", "deny or"), ("deny", "runs = \"any\"", "allow")] {
        let written = format!(
            "name = \"t\"\n[[rule]]\nid = \"d\"\neffect = \"{effect}\"\nmatch = {{ paths = [\"a\"], {clause} }}"
        );
        let error = PolicySet::from_toml(&written).unwrap_err().to_string();
        assert!(error.contains(&format!("it belongs to {whom}")), "{error}");
    }
}

#[test]
fn a_link_binds_by_both_of_its_paths() {
    let doing = json!({ "action": "read_it", "capability": "file:read", "risk": "LOW" });
    let link = json!({ "kind": "path", "role": "read", "value": "/srv/a", "real": "/etc/a" });
    let asked = acts(&["file:read"], &json!([{ "does": [doing], "operands": [link] }]));
    for (effect, clause, expected) in [
        ("deny", "paths = [\"/srv/*\"]", Decision::Deny),
        ("deny", "paths = [\"/etc/*\"]", Decision::Deny),
        ("deny", "not.paths = [\"/srv/*\"]", Decision::Deny),
        ("deny", "not.paths = [\"/srv/*\", \"/etc/*\"]", Decision::Allow),
        ("allow", "paths = [\"/srv/*\"]", Decision::Deny),
        ("allow", "paths = [\"/srv/*\", \"/etc/*\"]", Decision::Allow),
    ] {
        assert_eq!(decision(effect, clause, &asked), expected, "{effect} {clause}");
    }
}

#[test]
fn an_unread_command_meets_every_deny_of_an_action() {
    let unread = json!({ "cause": "text", "found": "$CMD", "kinds": ["command", "path"] });
    let doing = json!({ "action": "run_it", "capability": "system:execute", "risk": "MEDIUM" });
    let asked = acts(&["system:execute"], &json!([{ "does": [doing], "open": [unread] }]));
    for clause in ["actions = [\"deploy_it\"]", "actions = [\"deploy_*\"]", "commands = [\"git push *\"]"] {
        assert_eq!(decision("deny", clause, &asked), Decision::Deny, "{clause}");
        let verdict = decide(&rule("deny", clause), &asked);
        assert!(verdict.rewrite.is_some_and(|rewrite| rewrite.part == "$CMD"), "{clause}");
    }
}

#[test]
fn an_allow_of_a_tool_covers_no_tool_of_a_server() {
    let doing = json!({ "action": "run_it", "capability": "file:read", "risk": "LOW" });
    let own = acts(&["file:read"], &json!([{ "tool": "read_file", "does": [doing] }]));
    let of_server = acts(&["file:read"], &json!([{ "tool": "read_file", "server": "files", "does": [doing] }]));
    for (effect, clause, decisions) in [
        ("allow", "tools = [\"read_file\"]", [Decision::Allow, Decision::Deny]),
        ("allow", "tools = [\"read_file\"], servers = [\"files\"]", [Decision::Deny, Decision::Allow]),
        ("allow", "tools = [\"mcp__files__read_file\"]", [Decision::Deny, Decision::Allow]),
        ("deny", "tools = [\"read_file\"]", [Decision::Deny, Decision::Deny]),
        ("deny", "servers = [\"files\"]", [Decision::Allow, Decision::Deny]),
    ] {
        let found = [&own, &of_server].map(|asked| decision(effect, clause, asked));
        assert_eq!(found, decisions, "{effect} {clause}");
    }
}

#[test]
fn an_allow_over_one_kind_grants_nothing_on_another() {
    let doing = |capability: &str| json!({ "action": "fetch_it", "capability": capability, "risk": "LOW" });
    let host = json!({ "kind": "host", "role": "read", "value": "docs.rs" });
    let file = json!({ "kind": "path", "role": "write", "value": "/srv/a" });
    let does = [doing("web:read"), doing("file:write")];
    let asked = acts(&["web:read", "file:write"], &json!([{ "does": does, "operands": [host, file] }]));
    for (clause, granted) in [
        ("hosts = [\"docs.rs\"]", vec!["web:read"]),
        ("paths = [\"/srv/*\"]", vec!["file:write"]),
        ("hosts = [\"docs.rs\"], paths = [\"/srv/*\"]", vec!["web:read", "file:write"]),
        ("hosts = [\"evil.example\"], paths = [\"/srv/*\"]", vec![]),
    ] {
        assert_eq!(words(&decide(&rule("allow", clause), &asked).granted), granted, "{clause}");
    }
}

#[test]
fn another_reading_of_a_request_meets_clauses_over_its_operands() {
    let doing = json!({ "action": "read_it", "capability": "file:read", "risk": "LOW" });
    let file =
        |value: &str| json!([{ "does": [doing], "operands": [{ "kind": "path", "role": "read", "value": value }] }]);
    let mut policies = "name = \"t\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"\n".to_owned();
    policies += "match = { capabilities = [\"file:delete\"], paths = [\"/srv/*\"] }\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n";
    let policies = PolicySet::from_toml(&policies).unwrap();
    for (path, expected) in [("/srv/a", Decision::Deny), ("/tmp/a", Decision::Allow)] {
        // The reading replaces the capability of the act.
        assert_eq!(decide(&policies, &acts(&["file:delete"], &file(path))).decision, expected, "{path}");
    }
}

#[test]
fn a_built_intent_leads_up_no_further_than_a_clause_says() {
    let built = |target: &str| intent("read_it", &["file:read"]).with_context("target", json!(target));
    for (target, denied, allowed) in [
        ("/srv/a", true, true),
        ("/srv/../etc/passwd", true, false),
        // Compared as sent.
        ("../srv/a", false, false),
        ("/tmp/a", false, false),
        ("", false, false),
    ] {
        let found = (
            decision("deny", "paths = [\"/srv/*\"]", &built(target)) == Decision::Deny,
            decision("allow", "paths = [\"/srv/*\"]", &built(target)) == Decision::Allow,
        );
        assert_eq!(found, (denied, allowed), "{target}");
    }
}

#[test]
fn a_limit_adds_up_the_amounts_that_its_rule_grants() {
    let pays = |capability: &str, amounts: Value| json!({ "does": [{ "action": "do_it", "capability": capability, "risk": "HIGH" }], "amounts": amounts });
    let euros = |value: f64, count: u64| json!([{ "value": value, "count": count, "currency": "EUR" }]);
    let dollars = json!([{ "value": 1.0, "count": 1, "currency": "USD" }]);
    let limited = toml(&[
        "id = \"pay\"\neffect = \"allow\"\nmatch.capabilities = [\"payment:transfer\"]\nlimit = { sum = \"amount\", max = 100, per = \"1h\" }",
        "id = \"mail\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]",
    ]);
    let pay = "payment:transfer";
    for (paid, charged) in [
        (json!([pays(pay, euros(5.5, 2)), pays(pay, euros(1.0, 1))]), Some(12_000_000)),
        (json!([pays(pay, euros(5.0, 1)), pays("email:send", euros(900.0, 1))]), Some(5_000_000)),
        (json!([pays(pay, euros(5.0, 1)), pays("email:send", json!([]))]), Some(5_000_000)),
        (json!([pays(pay, euros(5.0, 1)), pays(pay, json!([]))]), None),
        (json!([pays(pay, euros(5.0, 1)), pays(pay, dollars)]), None),
        (json!([pays(pay, euros(-5.0, 1))]), None),
        (json!([pays(pay, euros(5.0, u64::MAX))]), None),
    ] {
        let capabilities: &[&str] = if paid.to_string().contains("email") { &[pay, "email:send"] } else { &[pay] };
        let verdict = decide(&limited, &acts(capabilities, &paid));
        let found = (verdict.decision == Decision::Allow).then(|| verdict.charges[0].amount);
        assert_eq!(found, charged, "{paid}");
    }
}

#[test]
fn what_runs_is_kept_from_each_path_that_a_rule_denies() {
    let policy = "name = \"t\"\n\
        [[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch.paths = [\"secrets\", \"a:b/*\"]\n\
        [[rule]]\nid = \"b\"\neffect = \"deny\"\nmatch.targets = [\"keys/*\", \"orders\", \"db:5432\"]\nmatch.agents = [\"desk-*\"]\n\
        [[rule]]\nid = \"c\"\neffect = \"deny\"\nmatch.paths = [\"src/*\"]\nmatch.capabilities = [\"file:write\"]\n\
        [[rule]]\nid = \"d\"\neffect = \"allow\"\nmatch.paths = [\"docs/*\"]\n";
    let set = PolicySet::from_toml(policy).unwrap();
    let denied = |agent: &str| -> Vec<(String, bool)> {
        let agent = agent.parse().unwrap();
        set.denied_paths(Some(&agent)).map(|denied| (denied.pattern, denied.is_readable)).collect()
    };
    let paths = |all: &[(&str, bool)]| all.iter().map(|(path, read)| ((*path).to_owned(), *read)).collect::<Vec<_>>();
    let all = [("secrets", false), ("a:b/*", false), ("keys/*", false), ("src/*", true)];
    assert_eq!(denied("desk-1"), paths(&all));
    assert_eq!(denied("other"), paths(&[all[0], all[1], all[3]]));
}

#[test]
fn a_refusal_says_how_a_tool_that_cannot_be_read_is_made_known() {
    let asked = |capability: &str, commands: &Value| {
        let mut intent = intent("unknown_action", &[capability]);
        let does = json!([{ "action": "unknown_action", "capability": capability, "risk": "MEDIUM" }]);
        let acts = json!([{ "tool": "xyzzy", "does": does, "commands": commands }]);
        intent.known = Some(serde_json::from_value::<Facts>(json!({ "form": 2, "acts": acts })).unwrap().into());
        intent
    };
    let advice = "The tool \"xyzzy\" cannot be read: load its definition or match it by `tools`.";
    for effect in ["deny", "escalate\"\nreviewer = \"lead", "allow"] {
        let policies =
            PolicySet::from_toml(&format!("name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"{effect}\"")).unwrap();
        let told = |intent: &Intent| decide(&policies, intent).reasoning.ends_with(advice);
        assert_eq!(told(&asked("unknown:unknown", &json!([]))), effect != "allow", "{effect}");
        assert!(!told(&asked("email:send", &json!([]))));
        // The command is unknown, not the tool.
        assert!(!told(&asked("unknown:unknown", &json!(["xyzzy a"]))));
    }
    let by_tool = rule("allow", "tools = [\"xyzzy\"]");
    assert_eq!(decide(&by_tool, &asked("unknown:unknown", &json!([]))).decision, Decision::Allow);
}
