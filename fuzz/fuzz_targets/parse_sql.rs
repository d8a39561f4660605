//! Any text parses as SQL without a panic, twice with the same result, by itself and as a tool's argument.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use serde_json::{Map, json};

static PARSER: LazyLock<(Parser, AgentId)> =
    LazyLock::new(|| (Parser::new().expect("the built-in lexicon reads"), "fuzz".parse().expect("a good id")));

fuzz_target!(|input: &str| {
    let (parser, agent) = &*PARSER;
    // As a tool's argument it is read as SQL, whatever it looks like.
    let call = json!({ "name": "run_sql", "arguments": { "sql": input } }).to_string();
    for text in [input, call.as_str()] {
        let first = parser.parse_text(agent, text, &Map::new()).ok();
        let second = parser.parse_text(agent, text, &Map::new()).ok();
        assert_eq!(first, second);
    }
});
