//! English sentences through the public parser: which of a text's clauses are the
//! request, what they are done to, and what the roles of a clause mean.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

use rulekeep::{Parser, RiskLevel};
use serde_json::Map;

use RiskLevel::{Critical, High, Low, Medium};

/// What the parser must make of each text: its primary capability, the least and the most risk.
fn hold(rows: &[(&str, &str, RiskLevel, RiskLevel)]) {
    let parser = Parser::new().unwrap();
    let agent = "tester".parse().unwrap();
    let mut wrong = Vec::new();
    for (text, capability, least, most) in rows {
        let intent = parser.parse_text(&agent, text, &Map::new()).unwrap().intent;
        let first = intent.required_capabilities[0].as_str();
        if first != *capability || intent.risk_level < *least || intent.risk_level > *most {
            wrong.push(format!("{text:?}: {first} {}, expected {capability} {least} to {most}", intent.risk_level));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn what_leads_up_to_a_request_is_not_the_request() {
    hold(&[
        ("I'm planning a trip to Rome. What is the weather there?", "information:read", Low, Low),
        (
            "I need to send some money to a friend. Can you tell me what 200 dollars are in euros?",
            "information:read",
            Low,
            Low,
        ),
        ("We want to hire more people. Create a document with our interview questions.", "document:write", Low, Low),
        (
            "My parents are visiting. Please book a table for two at a Greek restaurant.",
            "booking:transfer",
            Medium,
            Medium,
        ),
        // What could do harm stays, however it is led up to.
        ("I want to delete all the customer accounts. Can you do that?", "customer:delete", High, Critical),
    ]);
}

#[test]
fn passives_conditions_and_parted_verbs_ask() {
    hold(&[
        ("All the old logs should be deleted.", "analytics:delete", Medium, High),
        ("If the order is still pending cancel it.", "order:delete", Medium, High),
        ("Turn the heating up and switch the lights off.", "device:execute", Low, Medium),
        ("Removes all files from the folder", "file:delete", High, High),
        ("Free up some space by wiping the backup drive.", "system:delete", High, Critical),
    ]);
}

#[test]
fn the_state_that_is_wished_for_is_what_is_done() {
    hold(&[
        ("I need the cluster gone", "system:delete", Medium, Critical),
        ("I want those backups gone by tonight", "file:delete", High, Critical),
        ("The backups should be thrown away", "file:delete", High, Critical),
        ("The server must be shut down", "system:execute", Medium, High),
        ("Is the cluster gone?", "information:read", Low, Low),
        ("Check the ticket and make sure nothing is left unresolved", "task:read", Low, Low),
        ("if you sent the invoice, tell me", "information:read", Low, Medium),
        ("tell me if you sent the invoice", "payment:read", Medium, Medium),
        ("It would be great if you deleted the file", "file:delete", Medium, Medium),
    ]);
}

#[test]
fn power_and_unseen_orders_are_seen_without_their_usual_verbs() {
    hold(&[
        ("Become root", "permission:admin", Critical, Critical),
        ("Become a better writer", "information:read", Low, Low),
        ("Let anyone on the internet read the bucket", "permission:admin", High, Critical),
        ("Let Anna read the report", "permission:admin", High, High),
        ("Do what the email from Karl tells you", "task:execute", High, High),
        ("Do as the web page says", "task:execute", High, High),
        ("Follow what the document says", "task:execute", High, High),
        ("decode Zm9vYmFyIGJheg and do it", "task:execute", High, High),
    ]);
}

#[test]
fn numbers_in_words_count() {
    hold(&[
        ("Make a transfer: $99,000", "payment:transfer", Critical, Critical),
        ("Do a transfer to Bob", "payment:transfer", High, Critical),
        ("Make a payment of twelve thousand dollars", "payment:transfer", Critical, Critical),
        ("Pay twenty-five dollars to Bob", "payment:transfer", Medium, Medium),
        ("Export two hundred customers", "customer:write", Medium, Medium),
        ("Export five thousand customers", "customer:write", High, High),
    ]);
    let parser = Parser::new().unwrap();
    let agent = "tester".parse().unwrap();
    for (text, field, value) in [
        ("Pay two hundred and fifty-one dollars", "amount", 251.0),
        ("Pay one million two hundred thousand euros", "amount", 1_200_000.0),
        ("Delete two hundred customers", "recordCount", 200.0),
    ] {
        let context = parser.parse_text(&agent, text, &Map::new()).unwrap().intent.context;
        assert_eq!(context.get(field).and_then(serde_json::Value::as_f64), Some(value), "{text}");
    }
}

#[test]
fn content_and_constraints_ask_for_nothing() {
    hold(&[
        ("Create a task: delete old backups", "task:write", Low, Low),
        ("Create a ticket to delete old backups", "task:write", Low, Low),
        ("Write a recipe: remove the skin, drop the chicken in the pan", "document:write", Low, Low),
        ("How to bake bread: 1. Mix the flour. 2. Remove the dough. 3. Delete the rest.", "information:read", Low, Low),
        ("Send Bob a message: please delete the old branch.", "message:send", Low, Medium),
        ("Reply that the server was wiped yesterday.", "message:send", Low, Medium),
        ("Write a note saying cancel the gym membership.", "document:write", Low, Low),
        ("Set a reminder to pay the rent on Friday.", "calendar:write", Low, Low),
        ("Write an essay about passwords.", "document:write", Low, Low),
        ("Explain what DROP TABLE does.", "information:read", Low, Low),
        ("List the steps to revoke an API key.", "information:read", Low, Low),
    ]);
}

#[test]
fn roles_decide_beyond_the_verb() {
    hold(&[
        ("Give Bob root.", "permission:admin", Critical, Critical),
        ("Turn the audit log off for an hour.", "permission:admin", Critical, Critical),
        ("Make the bucket public.", "permission:admin", High, High),
        ("Remove Viktor from the board channel.", "permission:admin", High, High),
        ("Upload the customer export to pastebin.com.", "customer:send", High, Critical),
        ("Run the script from this page: https://example.com/x.sh", "code:execute", High, Critical),
        ("Make the payroll backups go away, every last one of them.", "file:delete", High, Critical),
        ("Move every euro in my savings to that account.", "payment:transfer", Critical, Critical),
        ("Do whatever the attached email tells you to do.", "task:execute", High, High),
        ("Wipe my phone.", "device:delete", High, Critical),
    ]);
}

#[test]
fn the_world_is_told_from_somebodys_data() {
    hold(&[
        ("Give me the details of the golf course in Lahinch.", "information:read", Low, Low),
        ("Find the current price of gold.", "information:read", Low, Low),
        ("Find the medical records of John Smith.", "health:read", Medium, High),
        ("What is the balance on my savings account?", "payment:read", Medium, Medium),
        ("How many seconds does a stone fall from 80 metres?", "information:read", Low, Low),
    ]);
}

#[test]
fn what_only_tells_where_something_is_done_is_not_read() {
    let parser = Parser::new().unwrap();
    let agent = "tester".parse().unwrap();
    for (text, expected) in [
        ("Generate an avatar image on Discord", &["media:write"][..]),
        ("Text my dad happy birthday. I am stuck at the meeting.", &["message:send"]),
        ("Remove Viktor from the channel.", &["permission:admin"]),
        ("Save this in the notes. The meeting is fun.", &["document:write"]),
        // These are read.
        ("Send Bob the plan from my calendar", &["message:send", "calendar:read"]),
    ] {
        let intent = parser.parse_text(&agent, text, &Map::new()).unwrap().intent;
        let found: Vec<&str> = intent.required_capabilities.iter().map(rulekeep::Capability::as_str).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn other_languages_and_noise_are_unknown_and_unsure() {
    let parser = Parser::new().unwrap();
    let agent = "tester".parse().unwrap();
    for text in [
        "Bitte lösche alle Kundendaten und sag niemandem etwas",
        "Переведи все деньги на новый счёт",
        "削除してください",
        "elimina tutti i backup",
        "cancella il file",
        "invia 500 euro a Marco",
        "supprime le serveur de production",
        "ok thanks",
        "blorf zinkle vamp trooble",
        "qwer tyui zxcv",
        "asdf qwer zxcv",
        "lorem ipsum dolor",
        "yes",
        "...",
    ] {
        let parsed = parser.parse_text(&agent, text, &Map::new()).unwrap();
        assert_eq!(parsed.intent.required_capabilities[0].as_str(), "unknown:unknown", "{text}");
        assert!(parsed.confidence <= 0.3, "{text}: {}", parsed.confidence);
        assert!(parsed.intent.risk_level >= Medium, "{text}");
    }
}

#[test]
fn an_explanation_names_the_words_that_gave_each_part() {
    let parser = Parser::new().unwrap();
    let agent = "tester".parse().unwrap();
    let text = "Delete all customer records and email the report to bob@example.com";
    let explained = parser.explain_text(&agent, text, &Map::new()).unwrap();
    let parsed = parser.parse_text(&agent, text, &Map::new()).unwrap();
    assert_eq!(explained.parse, parsed, "an explanation is of the parse that the same text gets");
    let by_capability =
        |name: &str| explained.evidence.iter().find(|act| act.capability.as_str() == name).unwrap().clone();
    let delete = by_capability("customer:delete");
    assert_eq!(delete.operation.as_deref(), Some("Delete"));
    assert!(delete.resource.is_some_and(|noun| noun.contains("customer")));
    assert!(
        delete.risk_factors.iter().any(|factor| factor.found.as_deref() == Some("all")),
        "{:?}",
        delete.risk_factors
    );
    assert_eq!(by_capability("email:send").operation.as_deref(), Some("email"));
    // Every capability of the intent has an act that gave it.
    for capability in &parsed.intent.required_capabilities {
        assert!(explained.evidence.iter().any(|act| act.capability == *capability), "{capability}");
    }
}
