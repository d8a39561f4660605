//! Naming more never loosens a decision: a further recipient, path, amount or act.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use rulekeep::escalation::{EscalationId, Review};
use rulekeep::intent::Parser;
use rulekeep::policy::PolicyRequest;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Agent, Decision, Governor, Intent, PolicySet, Tier};
use serde_json::{Map, Value, json};

/// Rules over facts, each of which allows something that one more value must take away.
const OWN: &str = r#"
name = "own"
[[rule]]
id = "our-people"
effect = "allow"
match = { capabilities = ["*:send", "*:write"], recipients = ["*@ours.example"] }
[[rule]]
id = "our-folder"
effect = "allow"
match = { capabilities = ["*:read", "*:write"], paths = ["/srv/ours/*"] }
[[rule]]
id = "small-sums"
effect = "allow"
match = { capabilities = ["*:transfer"] }
when = "has(context.amount) && double(context.amount) <= 60.0"
"#;

/// Rules that take something away from what is allowed otherwise.
const DENIES: &str = r#"
name = "denies"
[[rule]]
id = "everything"
effect = "allow"
[[rule]]
id = "their-folder"
effect = "deny"
match = { paths = ["/srv/theirs/*", "/etc/*", "*/.ssh/*"] }
[[rule]]
id = "their-hosts"
effect = "deny"
match = { hosts = ["evil.example"] }
[[rule]]
id = "their-people"
effect = "deny"
match = { recipients = ["*@evil.example"] }
[[rule]]
id = "no-pushes"
effect = "deny"
match = { commands = ["git push*"] }
[[rule]]
id = "no-tools"
effect = "deny"
match = { tools = ["unpickle", "delete_*"] }
"#;

fn intent(text: &str) -> Intent {
    thread_local!(static PARSER: Parser = Parser::new().unwrap());
    PARSER.with(|parser| parser.parse_text(&"tester".parse().unwrap(), text, &Map::new()).unwrap().intent)
}

/// Whether a set allows it; a condition that cannot be told allows nothing.
fn allows(set: &PolicySet, intent: &Intent, tier: Tier) -> bool {
    let trust = TrustSnapshot::new(tier.middle(), tier);
    set.evaluate(&PolicyRequest::new(intent, trust)).is_ok_and(|verdict| verdict.decision == Decision::Allow)
}

fn recipient() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "ann@ours.example",
            "bob@ours.example",
            "Cid Lee <cid@OURS.example>",
            "eve@evil.example",
            "ann@ours.example.evil.example",
            "eve+ours.example@evil.example",
            "all@ours.example",
        ][..],
    )
}

fn path() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "/srv/ours/a.txt",
            "/srv/ours/b/c.md",
            "/srv/ours/../theirs/a.txt",
            "/etc/shadow",
            "/srv/ours/%2e%2e/x.txt",
            "/home/bob/.ssh/id_rsa",
            "/srv/ours/*.txt",
            "notes.txt",
            "/etc/cron.d/x",
            "$HOME/x",
        ][..],
    )
}

fn act() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "Read the file notes.txt",
            "Delete the file notes.txt",
            "List my calendar events",
            "Pay Bob 20 EUR",
            "Send an email to eve@evil.example",
            "Delete all customer records",
            "Grant Bob admin rights",
            "Show the weather in Oslo",
            "Run rm -rf /srv",
            "Create a note about lunch",
            "Refund order 17 with 90 EUR",
            "Restart the production database",
            "Export all customers",
            "Remind me to call Ann",
            "Search the web for cats",
        ][..],
    )
}

/// A command line, and the same with more words or commands.
fn grown_lines() -> impl Strategy<Value = (String, String)> {
    let command = select(
        &[
            "cat /srv/ours/a",
            "cat /srv/theirs/a",
            "cat ../theirs/a",
            "cp /srv/ours/a /srv/ours/b",
            "rm -rf /srv/ours/tmp",
            "rm -rf /srv",
            "grep -r key /srv/ours",
            "find /srv/ours -name a",
            "cd /srv/theirs && cat a",
            "curl -s https://good.example",
            "curl -s https://evil.example",
            "git push origin main",
            "git status",
            "mytool /srv/ours/a",
            "echo x > /srv/ours/a",
            "tee /srv/ours/a",
            "ls /srv/ours",
            "tar czf /srv/ours/x.tgz /srv/ours/src",
            "sed -i s/a/b/ /srv/ours/a",
            "sort -o /srv/ours/b /srv/ours/a",
        ][..],
    );
    let word = select(
        &[
            "/srv/ours/c",
            "/srv/theirs/c",
            "-v",
            "-r",
            "-o",
            "--all",
            "--",
            "$X",
            "*",
            "../x",
            "src",
            "https://evil.example",
            "-x/etc",
        ][..],
    );
    let more = (select(&[" | ", "; ", " && ", " || ", " & ", "\n"][..]), command.clone());
    let words = proptest::collection::vec(word, 1..3);
    let longer = prop_oneof![
        (command.clone(), words).prop_map(|(line, words)| (line.to_owned(), format!("{line} {}", words.join(" ")))),
        (command, more).prop_map(|(line, (link, more))| (line.to_owned(), format!("{line}{link}{more}"))),
    ];
    longer.prop_map(|(less, more)| {
        let call = |line: String| json!({ "tool": "bash", "arguments": { "command": line } }).to_string();
        (call(less), call(more))
    })
}

/// A request, and the same with something more in it.
fn grown() -> impl Strategy<Value = (String, String)> {
    let call = |tool: &str, arguments: Value| json!({ "tool": tool, "arguments": arguments }).to_string();
    let mails =
        (proptest::collection::vec(recipient(), 1..4), recipient(), 0_usize..3).prop_map(move |(to, more, place)| {
            let with = |to: &[&str], cc: Option<&str>| {
                let mut arguments = json!({ "to": to, "subject": "Lunch", "body": "At noon?" });
                if let Some(cc) = cc {
                    arguments[["cc", "bcc", "reply_to"][place]] = json!([cc]);
                }
                call("send_email", arguments)
            };
            (with(&to, None), with(&to, Some(more)))
        });
    let paths =
        (select(&["read_file", "write_file", "move_file"][..]), proptest::collection::vec(path(), 1..3), path())
            .prop_map(move |(tool, paths, more)| {
                let with = |paths: &[&str]| call(tool, json!({ "paths": paths, "content": "x" }));
                let all: Vec<&str> = paths.iter().copied().chain([more]).collect();
                (with(&paths), with(&all))
            });
    let amounts = (select(&[5.0, 20.0, 50.0, 90.0, 20_000.0][..]), select(&[5.0, 20.0, 50.0][..]), select(&["EUR", "USD"][..]))
        .prop_map(move |(first, more, currency)| {
            let one = |amount: f64, currency: &str| json!({ "tool": "pay_bill", "arguments": { "amount": amount, "currency": currency } });
            (one(first, "EUR").to_string(), json!([one(first, "EUR"), one(more, currency)]).to_string())
        });
    let acts = (act(), act(), select(&[". ", " and then ", "; ", ".\n"][..])).prop_map(|(first, more, link)| {
        (first.to_owned(), format!("{first}{link}{}{}", more[..1].to_lowercase(), &more[1..]))
    });
    let nested = (
        select(&["unpickle", "apply", "graphql", "frobnicate", "delete_file", "run_job", "sync_all"][..]),
        select(&["also", "next", "then", "extra", "calls"][..]),
        any::<bool>(),
    )
        .prop_map(move |(tool, key, is_reading)| {
            let mut arguments = json!({ "path": "/srv/theirs/a", "data": "gASV" });
            let less = call(tool, arguments.clone());
            let inner = if is_reading { "read_file" } else { "get_weather" };
            arguments[key] = json!({ "tool": inner, "arguments": { "path": "/srv/ours/a" } });
            (less, call(tool, arguments))
        });
    prop_oneof![mails, paths, amounts, acts, nested, grown_lines()]
}

#[test]
fn naming_more_never_turns_a_refusal_into_an_allow() {
    let cases = std::env::var("RULEKEEP_FACT_CASES").map_or(10_000, |cases| cases.parse().unwrap());
    let sets =
        [PolicySet::recommended().unwrap(), PolicySet::from_toml(OWN).unwrap(), PolicySet::from_toml(DENIES).unwrap()];
    let tier = select(&[Tier::T0, Tier::T1, Tier::T2, Tier::T3, Tier::T4, Tier::T5][..]);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    runner
        .run(&(grown(), tier), |((less, more), tier)| {
            let (small, large) = (intent(&less), intent(&more));
            // `git status` names nothing, so no rule over paths grants it; with a folder it shows that one alone.
            let narrows = less.contains("git status") && small.facts().acts.iter().all(|act| act.operands.is_empty());
            for set in &sets {
                if narrows && set.name() == "own" {
                    continue;
                }
                let loosens = !allows(set, &small, tier) && allows(set, &large, tier);
                prop_assert!(!loosens, "{} at {tier}:\n{less}\n{:?}\n{more}\n{:?}", set.name(), small, large);
            }
            Ok(())
        })
        .unwrap();
}

/// What a reviewer sees is what was decided on: the same facts, and under any rules the same decision.
#[test]
fn a_reviewers_view_determines_targets_and_amounts() {
    let asks = "name = \"asks\"\n[[rule]]\nid = \"all\"\neffect = \"escalate\"\nreviewer = \"ann\"";
    let governor = Governor::builder().policies(PolicySet::from_toml(asks).unwrap()).open_in_memory().unwrap();
    let sets = [PolicySet::recommended().unwrap(), PolicySet::from_toml(OWN).unwrap()];
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(300) });
    let number = std::cell::Cell::new(0);
    runner
        .run(&grown(), |(_, text)| {
            // An agent has so many open questions at the most.
            let agent = format!("tester-{}", number.replace(number.get() + 1));
            governor.agents().register(Agent::new(&agent).at_tier(Tier::T4)).unwrap();
            let asked = governor.enforce_input(&agent, &*text).unwrap();
            let id = EscalationId::of(asked.enforcement.proof_id);
            let shown = governor.escalations().get(id).unwrap();
            prop_assert_eq!(shown.input.as_deref(), Some(&*text));
            let seen = Intent::from_json(&shown.intent.unwrap()).unwrap();
            prop_assert_eq!(seen.facts(), asked.parse.intent.facts(), "{}", text);
            for set in &sets {
                prop_assert_eq!(allows(set, &seen, Tier::T4), allows(set, &asked.parse.intent, Tier::T4), "{}", text);
            }
            governor.escalations().reject(id, Review::by("ann")).unwrap();
            Ok(())
        })
        .unwrap();
}
