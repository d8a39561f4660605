//! Any text parses or is refused without a panic, twice with the same result.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use serde_json::Map;

static PARSER: LazyLock<(Parser, AgentId)> =
    LazyLock::new(|| (Parser::new().expect("the built-in lexicon reads"), "fuzz".parse().expect("a good id")));

fuzz_target!(|input: &str| {
    let (parser, agent) = &*PARSER;
    let first = parser.parse_text(agent, input, &Map::new()).ok();
    let second = parser.parse_text(agent, input, &Map::new()).ok();
    assert_eq!(first, second);
});
