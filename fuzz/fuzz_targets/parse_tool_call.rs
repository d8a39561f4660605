//! Any text parses as a tool call, or as the arguments of one, without a panic and twice with the same result. A
//! catalogue does not change whether it parses.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::intent::ParseResult;
use rulekeep::Governor;
use serde_json::json;

fn governor() -> Governor {
    Governor::builder().auto_register().open_in_memory().expect("a store in memory opens")
}

static PLAIN: LazyLock<Governor> = LazyLock::new(governor);
static WITH_TOOLS: LazyLock<Governor> = LazyLock::new(|| {
    let governor = governor();
    let tools = json!([{ "name": "send_email" }, { "name": "bash" }, { "name": "delete_file" }]);
    governor.tools().load(&tools, Some("srv")).expect("the tools load");
    governor
});

fuzz_target!(|input: &str| {
    let read = |governor: &Governor, text: &str| -> Option<ParseResult> { governor.parse("fuzz", text).ok() };
    let called = json!({ "name": "send_email", "arguments": input }).to_string();
    for text in [input, called.as_str()] {
        let (one, other) = (read(&PLAIN, text), read(&PLAIN, text));
        assert_eq!(one.as_ref().map(|parsed| (&parsed.intent.risk_level, &parsed.intent.required_capabilities)),
            other.as_ref().map(|parsed| (&parsed.intent.risk_level, &parsed.intent.required_capabilities)));
        assert_eq!(one.is_some(), read(&WITH_TOOLS, text).is_some());
    }
});
