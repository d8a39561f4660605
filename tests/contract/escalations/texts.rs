//! Two texts can be parsed to the same intent; an approval is for one of them.

use std::collections::BTreeSet;
use std::time::Duration;

use rulekeep::intent::InputText;
use rulekeep::preview::PreviewRequest;

use super::*;

const ASKED: &str = "Pay 40 EUR for invoice 8812";
const OTHER: &str = "Pay 40 EUR for invoice 8813";

/// An escalation of the text, approved; with what was parsed of it.
fn approved(governor: &Governor, text: &str) -> (EscalationId, Intent) {
    let asked = governor.enforce_input("clerk", text).unwrap();
    assert_eq!(asked.enforcement.decision, Decision::Escalate, "{}", asked.enforcement.reasoning);
    let id = EscalationId::of(asked.enforcement.proof_id);
    governor.escalations().approve(id, by("ann")).unwrap();
    (id, asked.parse.intent)
}

fn parsed(governor: &Governor, text: &str) -> Intent {
    governor.parse("clerk", text).unwrap().intent
}

/// All of an intent that policies see.
fn seen(intent: &Intent) -> Intent {
    let mut intent = intent.clone();
    (intent.id, intent.timestamp) = (None, None);
    intent
}

/// Unless somebody sets it otherwise, who decides sees what was asked, and nobody a secret in it.
#[test]
fn who_is_asked_sees_the_text_without_its_secrets() {
    let governor = builder().auto_register().open_in_memory().unwrap();
    let text = "Run mysql -h db -u root -pS3cretHorse -e 'DROP DATABASE shop' and sshpass -p ponyS7able ssh root@10.0.0.1 reboot";
    let call = serde_json::json!({ "name": "Bash", "arguments": { "command": "vault login hvxHorse77battery && rm -rf /srv" } });
    for (text, secrets) in [(text, ["S3cretHorse", "ponyS7able"]), (&*call.to_string(), ["hvxHorse77battery"; 2])] {
        governor.policies().load(PolicySet::from_toml(ASKS_ALL).unwrap()).unwrap();
        let asked = governor.enforce_input("clerk", text).unwrap().enforcement;
        assert_eq!(asked.decision, Decision::Escalate);
        let shown = governor.escalations().get(EscalationId::of(asked.proof_id)).unwrap();
        let whole = serde_json::to_string(&shown).unwrap();
        assert!(shown.input.is_some_and(|input| input.contains("***")) && shown.input_digest.is_some());
        for secret in secrets {
            assert!(!whole.contains(secret), "{whole}");
        }
        assert_eq!(governor.log().matches_input(&asked.proof_id, text).unwrap(), Some(true));
        assert_eq!(governor.log().matches_input(&asked.proof_id, "another").unwrap(), Some(false));
        // Where nobody is asked nothing of it is kept.
        governor.policies().load(PolicySet::from_toml("name = \"closed\"").unwrap()).unwrap();
        let denied = governor.enforce_input("clerk", text).unwrap().enforcement;
        let evidence = governor.log().evidence(&denied.proof_id).unwrap();
        assert!(evidence.input.is_none());
        for secret in secrets {
            assert!(!evidence.intent.to_string().contains(secret), "{}", evidence.intent);
        }
    }
}

const ASKS_ALL: &str = "name = \"asks\"\n[[rule]]\nid = \"all\"\neffect = \"escalate\"\nreviewer = \"ann\"";

#[test]
fn an_approval_is_for_the_text_that_was_asked() {
    for kept in [InputText::No, InputText::Asked, InputText::Digest, InputText::Whole] {
        let hand = Hand::at(NOON);
        let governor = with_clock(&hand).input_text(kept).open_in_memory().unwrap();
        governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
        let (id, intent) = approved(&governor, ASKED);
        let other = parsed(&governor, OTHER);
        assert_eq!(seen(&intent), seen(&other), "the test is of texts that are parsed to the same");

        let said = error(governor.escalations().claim(id, &other)).to_string();
        assert!(said.contains("another request text than this intent was parsed from"), "{said}");
        // Where from is not known.
        assert_eq!(code(governor.escalations().claim(id, &seen(&intent))), "CONFLICT");
        assert!(governor.escalations().claim(id, &parsed(&governor, ASKED)).is_ok(), "the same text, parsed again");

        let (id, intent) = approved(&governor, ASKED);
        assert!(governor.escalations().claim(id, &intent).is_ok(), "what was parsed then");
        // Whichever call parsed it.
        let parses: [fn(&Governor, &str) -> Intent; 3] = [
            |governor, text| {
                governor.policies().preview(PreviewRequest::input("clerk", text)).unwrap().parse.unwrap().intent
            },
            |governor, text| {
                governor.policies().explain(PreviewRequest::input("clerk", text)).unwrap().preview.parse.unwrap().intent
            },
            |governor, text| governor.tools().explain_parse("clerk", text).unwrap().parse.intent,
        ];
        for parse in parses {
            let (id, _) = ask(&governor, &parse(&governor, ASKED));
            governor.escalations().approve(id, by("ann")).unwrap();
            assert_eq!(code(governor.escalations().claim(id, &parse(&governor, OTHER))), "CONFLICT");
            assert!(governor.escalations().claim(id, &parse(&governor, ASKED)).is_ok());
        }
        // Parsed first and enforced then is held alike.
        let (id, _) = ask(&governor, &parsed(&governor, OTHER));
        governor.escalations().approve(id, by("ann")).unwrap();
        assert_eq!(code(governor.escalations().claim(id, &parsed(&governor, ASKED))), "CONFLICT");
        assert!(governor.escalations().claim(id, &parsed(&governor, OTHER)).is_ok());
    }
}

/// The id of a parse is no secret, and whoever enforces says it.
#[test]
fn an_id_that_is_put_on_another_intent_gives_it_no_text() {
    let governor = with_clock(&Hand::at(NOON)).input_text(InputText::Whole).open_in_memory().unwrap();
    for agent in ["clerk", "other"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    let harmless = parsed(&governor, "Summarize the meeting notes");
    let mut forged = payment(5_000);
    forged.id = harmless.id;
    let (id, verdict) = ask(&governor, &forged);
    assert_eq!(governor.escalations().get(id).unwrap().input, None, "the reviewer is shown what was not asked");
    assert_eq!(governor.log().evidence(&verdict.proof_id).unwrap().input, None);

    let paid = parsed(&governor, ASKED);
    let mut of_another = paid.clone();
    of_another.agent_id = "other".parse().unwrap();
    let verdict = governor.enforce(&of_another).unwrap();
    assert_eq!(governor.log().evidence(&verdict.proof_id).unwrap().input, None, "another agent's text");
    // What went through JSON in another language is the same.
    let back = serde_json::to_string(&paid).unwrap().replace("40.0", "40");
    let (id, _) = ask(&governor, &serde_json::from_str(&back).unwrap());
    assert_eq!(governor.escalations().get(id).unwrap().input.as_deref(), Some(ASKED));
}

type Edit = fn(&mut Intent);

/// The edits of an intent that an approval must not survive: at least one of every field that says what is asked.
const EDITS: &[(&str, Edit)] = &[
    ("agentId", |intent| intent.agent_id = "other".parse().unwrap()),
    ("parsedAction", |intent| intent.parsed_action = "read_invoice".parse().unwrap()),
    ("riskLevel lower", |intent| intent.risk_level = RiskLevel::Low),
    ("riskLevel higher", |intent| intent.risk_level = RiskLevel::Critical),
    ("requiredCapabilities fewer", |intent| drop(intent.required_capabilities.remove(0))),
    ("requiredCapabilities more", |intent| intent.required_capabilities.push("email:send".parse().unwrap())),
    ("requiredCapabilities other", |intent| intent.required_capabilities[0] = "document:read".parse().unwrap()),
    ("context emptied", |intent| intent.context.clear()),
    ("context extended", |intent| drop(intent.context.insert("note".to_owned(), "urgent".into()))),
];

#[test]
fn a_claim_with_any_field_edited_is_a_conflict() {
    let (governor, _) = governor();
    governor.agents().register(Agent::new("other").at_tier(Tier::T4)).unwrap();
    let (id, intent) = approved(&governor, ASKED);
    let again = parsed(&governor, ASKED);
    for original in [&intent, &again] {
        let is_refused = |what: &str, edit: &dyn Fn(&mut Intent)| {
            let mut edited = original.clone();
            edit(&mut edited);
            assert_eq!(code(governor.escalations().claim(id, &edited)), "CONFLICT", "{what}");
        };
        for (what, edit) in EDITS {
            is_refused(what, edit);
        }
        for value in [serde_json::json!(4_000), "USD".into(), "PUBLIC".into(), serde_json::json!({})] {
            for key in original.context.keys() {
                is_refused(key, &|intent| drop(intent.context.insert(key.clone(), value.clone())));
                is_refused(key, &|intent| drop(intent.context.remove(key)));
            }
        }
    }
    let object = serde_json::to_value(&intent).unwrap();
    let named = object.as_object().unwrap().keys().filter(|name| !["id", "timestamp"].contains(&name.as_str()));
    for field in named {
        assert!(EDITS.iter().any(|(what, _)| what.starts_with(field.as_str())), "no edit of the field {field}");
    }
    assert!(governor.escalations().claim(id, &again).is_ok(), "the same text, parsed again");
}

#[test]
fn a_wait_for_an_intent_made_less_claims_the_whole_parse() {
    let (governor, _) = governor();
    let mut less = parsed(&governor, ASKED);
    less.context.clear();
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| governor.escalations().enforce_or_wait(&less, Duration::from_secs(60)));
        let pending = || governor.escalations().pending().unwrap().into_iter().next();
        let asked = std::iter::repeat_with(pending).inspect(|_| std::thread::yield_now()).flatten().next().unwrap();
        governor.escalations().approve(asked.id, by("ann")).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(waiting.unwrap().decision, Decision::Allow);
}

#[test]
fn texts_are_told_apart_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).open(folder.path()).unwrap();
    let governor = open();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let (by_intent, intent) = approved(&governor, ASKED);
    let (by_text, _) = approved(&governor, ASKED);
    governor.close().unwrap();

    let governor = open();
    for id in [by_intent, by_text] {
        assert_eq!(code(governor.escalations().claim(id, &parsed(&governor, OTHER))), "CONFLICT");
    }
    assert!(governor.escalations().claim(by_intent, &intent).is_ok());
    assert!(governor.escalations().claim(by_text, &parsed(&governor, ASKED)).is_ok());
}

#[test]
fn secrets_that_are_masked_tell_texts_apart_all_the_same() {
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).input_text(InputText::Whole).open_in_memory().unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let [asked, other] = ["4111111111111111", "5555555555554444"].map(|card| format!("Pay 40 EUR from card {card}"));
    let (id, _) = approved(&governor, &asked);
    let shown = governor.escalations().get(id).unwrap().input.unwrap();
    assert!(!shown.contains("4111111111111111") && shown.contains("Pay 40 EUR"), "{shown}");
    assert_eq!(code(governor.escalations().claim(id, &parsed(&governor, &other))), "CONFLICT");
    assert!(governor.escalations().claim(id, &parsed(&governor, &asked)).is_ok());
}

#[test]
fn a_reviewer_sees_the_text_where_it_is_kept_whole() {
    let mut shown = BTreeSet::new();
    for kept in [InputText::No, InputText::Digest, InputText::Whole] {
        let governor = with_clock(&Hand::at(NOON)).input_text(kept).open_in_memory().unwrap();
        governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
        let (id, _) = approved(&governor, ASKED);
        let escalation = governor.escalations().get(id).unwrap();
        assert_eq!(escalation.input.as_deref(), (kept == InputText::Whole).then_some(ASKED));
        shown.insert(serde_json::to_value(&escalation).unwrap().get("input").is_some());
    }
    assert_eq!(shown.len(), 2, "it is left out where there is none");
}
