//! No text panics the parser, and invisible characters never lower the risk of the text they are hidden in.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use rulekeep::RiskLevel;
use serde_json::Map;

static PARSER: LazyLock<(Parser, AgentId)> =
    LazyLock::new(|| (Parser::new().expect("the built-in lexicon reads"), "fuzz".parse().expect("a good id")));

/// Characters that can be inserted anywhere without a change of meaning.
const HIDDEN: [char; 6] = ['\u{200b}', '\u{2060}', '\u{ad}', '\u{feff}', '\u{34f}', '\u{202e}'];

fn risk(text: &str) -> Option<RiskLevel> {
    let (parser, agent) = &*PARSER;
    parser.parse_text(agent, text, &Map::new()).ok().map(|parsed| parsed.intent.risk_level)
}

fuzz_target!(|input: (&str, u8, u16)| {
    let (text, which, place) = input;
    let Some(plain) = risk(text) else { return };
    // A text with hidden content of its own is not the plain text of this comparison.
    if !text.is_ascii() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return;
    }
    let at = usize::from(place) % (text.len() + 1);
    let hidden = HIDDEN[usize::from(which) % HIDDEN.len()];
    let disguised = format!("{}{hidden}{}", &text[..at], &text[at..]);
    if let Some(found) = risk(&disguised) {
        assert!(found >= plain, "{disguised:?}: {found:?}, plain {plain:?}");
    }
});
