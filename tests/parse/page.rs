//! Tests of docs/reference/parsing.md (its rows and its explanation) and of the context keys in docs/reference/context.md.

use rulekeep::RiskLevel;
use rulekeep::intent::Parser;
use serde_json::Map;

const PAGE: &str = include_str!("../../docs/reference/parsing.md");
const CONTEXT_PAGE: &str = include_str!("../../docs/reference/context.md");

fn blocks(language: &str) -> Vec<&'static str> {
    PAGE.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix(language)).collect()
}

#[test]
fn rows_of_the_page_load_and_similar_wording_reads_alike() {
    let rows = blocks("text\n").into_iter().find(|block| block.starts_with('#')).unwrap();
    let parser = Parser::with_rows(rows).unwrap();
    for (text, capability, least) in [
        ("Slew the gantry to bay 7", "device:execute", RiskLevel::High),
        ("yardctl purge south", "device:delete", RiskLevel::High),
        ("Defenestrate the old minutes", "document:delete", RiskLevel::Medium),
        // What the rows do not speak of stays.
        ("Delete all customer records", "customer:delete", RiskLevel::High),
        ("What is the weather in Oslo?", "information:read", RiskLevel::Low),
    ] {
        let parsed = parser.parse_text(&"a".parse().unwrap(), text, &Map::new()).unwrap();
        let found: Vec<&str> =
            parsed.intent.required_capabilities.iter().map(rulekeep::intent::Capability::as_str).collect();
        assert!(found.contains(&capability) && parsed.intent.risk_level >= least, "{text}: {found:?}");
    }
    let error = Parser::with_rows("#device:execute X").unwrap_err().to_string();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn the_explanation_of_the_page_is_what_comes_out() {
    assert!(PAGE.contains("risk_factors[1].found.as_deref(), Some(\"all\")"));
    let parser = Parser::new().unwrap();
    let explained =
        parser.explain_text(&"agent-1".parse().unwrap(), "Delete all customer records", &Map::new()).unwrap();
    let act = &explained.evidence[0];
    assert_eq!(act.operation.as_deref(), Some("Delete"));
    assert_eq!(act.risk_factors[1].found.as_deref(), Some("all"));
}

#[test]
fn every_context_key_of_the_page_can_come_out() {
    let parser = Parser::new().unwrap();
    let parsed = parser
        .parse_text(&"a".parse().unwrap(), "Send $20 to all 300 customers at bob@example.com", &Map::new())
        .unwrap();
    let table = CONTEXT_PAGE.split("## Keys that parsing adds").nth(1).unwrap();
    let table = table.split("##").next().unwrap();
    let keys: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .flat_map(|line| line.split('|').next().unwrap_or("").split(','))
        .map(|key| key.trim().trim_matches('`'))
        .collect();
    assert!(keys.len() >= 10, "{keys:?}");
    for key in keys {
        let intent = serde_json::to_value(&parsed.intent).unwrap();
        assert!(intent["context"].get(key).is_some(), "{key}: {intent}");
    }
}
