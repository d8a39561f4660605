//! Any command line parses without a panic, and a command appended to it is never lost unless the line leaves
//! something open.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use rulekeep::RiskLevel;
use serde_json::Map;

static PARSER: LazyLock<(Parser, AgentId)> =
    LazyLock::new(|| (Parser::new().expect("the built-in lexicon reads"), "fuzz".parse().expect("a good id")));

fuzz_target!(|line: &str| {
    let (parser, agent) = &*PARSER;
    // The prompt marks it as a command line.
    let risk = |line: &str| {
        parser.parse_text(agent, &format!("$ {line}"), &Map::new()).ok().map(|parsed| parsed.intent.risk_level)
    };
    risk(line);
    // Plain words open no quotation, comment or here-document.
    let is_plain = line
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b'/' | b'-' | b'|' | b';'));
    if is_plain && line.len() < 1000 {
        assert!(risk(&format!("{line} ; rm -rf /srv")).is_none_or(|risk| risk >= RiskLevel::High), "{line:?}");
    }
});
