//! The request of `rulekeep policy explain`: a text, a tool call in any format, or an intent.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::PathBuf;

use clap::Args;
use rulekeep::Intent;
use rulekeep::intent::{Capability, Cause, MAX_INPUT_BYTES, ParseExplanation};
use serde_json::Value;

/// The request to explain, in one of three forms.
#[derive(Args, Default)]
#[group(required = true, multiple = false)]
pub(super) struct Asked {
    /// A text as an agent sends it: natural language, a command line, a query, a call; `-` reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    input: Option<String>,
    /// A tool call as JSON: `{"tool", "arguments", "server"?}`, the parameters of `tools/call`, or a whole JSON-RPC
    /// message; `-` reads standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    tool: Option<String>,
    /// A file with an intent: `{"agentId": "a", "parsedAction": "send_mail", "riskLevel": "LOW",`
    /// `"requiredCapabilities": ["email:send"], "context": {}}`
    #[arg(long, value_name = "FILE")]
    intent: Option<PathBuf>,
}

/// A request in the form that a governor accepts.
pub(super) enum Request {
    Text(String),
    Intent(Box<Intent>),
}

impl Asked {
    pub(super) fn read(self) -> Result<Request, Box<dyn Error>> {
        if let Some(text) = self.input {
            return Ok(Request::Text(given(text)?));
        }
        if let Some(text) = self.tool {
            let text = given(text)?;
            check_call(&text)?;
            return Ok(Request::Text(text));
        }
        let file = self.intent.ok_or("expected a request")?;
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| told(&error))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| told(&error))?;
        Ok(Request::Intent(Box::new(Intent::from_json(&value).map_err(|error| told(&error))?)))
    }
}

/// Returns the text itself, or standard input for `-`. One byte more than the limit makes the parser refuse it.
fn given(text: String) -> Result<String, Box<dyn Error>> {
    if text != "-" {
        return Ok(text);
    }
    let mut bytes = Vec::new();
    io::stdin().take(MAX_INPUT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_INPUT_BYTES {
        return Err(
            rulekeep::Error::PayloadTooLarge { what: "input", size: bytes.len(), limit: MAX_INPUT_BYTES }.into()
        );
    }
    String::from_utf8(bytes).map_err(|error| format!("standard input: expected UTF-8: {error}").into())
}

/// Checks that a JSON text is a tool call that names its tool; otherwise it would be parsed as text.
fn check_call(text: &str) -> Result<(), Box<dyn Error>> {
    const EXPECTED: &str = "expected a tool call: {\"tool\": \"send_email\", \"arguments\": {...}}, {\"name\", \"arguments\"}, or a \
                            JSON-RPC message of the method tools/call; any other text goes with --input";
    let refused = |why: &dyn std::fmt::Display| format!("--tool: {why}; {EXPECTED}");
    let value: Value = serde_json::from_str(text).map_err(|error| refused(&error))?;
    let is_named =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let named = match value.get("method").and_then(Value::as_str) {
        Some("tools/call") => value.get("params").is_some_and(|params| is_named(params, "name")),
        Some(other) => return Err(refused(&format!("the method {other:?} calls no tool")).into()),
        None => is_named(&value, "tool") || is_named(&value, "name"),
    };
    if named { Ok(()) } else { Err(refused(&"it names no tool").into()) }
}

/// Shows the parse of a request to people. Texts of the request are quoted, so that they cannot control the terminal.
pub(super) fn told(explained: &ParseExplanation) -> String {
    let (mut text, parse) = (String::new(), &explained.parse);
    let intent = &parse.intent;
    let capabilities: Vec<&str> = intent.required_capabilities.iter().map(Capability::as_str).collect();
    let (action, risk) = (&intent.parsed_action, intent.risk_level);
    // Writing to a string cannot fail.
    let mut line = |indent: &str, name: &str, value: &str| {
        let _ = writeln!(text, "{indent}{name}: {value}");
    };
    line(
        "",
        "read as",
        &format!("{action}, {}, risk {risk}, confidence {:.2}", capabilities.join(" "), parse.confidence),
    );
    let facts = intent.facts();
    for (name, value) in [("tool", facts.tool()), ("server", facts.server())] {
        if let Some(value) = value {
            line("  ", name, &format!("{value:?}"));
        }
    }
    for operand in facts.acts.iter().flat_map(|act| &act.operands) {
        let tree = if operand.tree { ", and all below" } else { "" };
        line("  ", operand.kind.as_str(), &format!("{:?} ({}{tree})", operand.value, operand.role));
    }
    for open in facts.acts.iter().flat_map(|act| &act.open) {
        line(
            "  ",
            match open.cause {
                Cause::Text => "not read",
                Cause::Unnamed => "not named",
                Cause::Folder | Cause::Execution => "not shown",
            },
            &format!("{:?}", open.found),
        );
    }
    for act in &explained.evidence {
        let quoted = |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), |text| format!("{text:?}"));
        let factors: Vec<String> = act
            .risk_factors
            .iter()
            .map(|factor| match &factor.found {
                Some(found) => format!("{} {found:?}", factor.factor),
                None => factor.factor.to_owned(),
            })
            .collect();
        let (operation, resource) = (quoted(&act.operation), quoted(&act.resource));
        let guessed = if act.guessed { " (guessed)" } else { "" };
        let why =
            format!("operation {operation}, resource {resource}{guessed}, {}: {}", act.risk_level, factors.join(", "));
        line("  ", act.capability.as_str(), &why);
    }
    for other in &parse.alternatives {
        line("  ", "could also mean", &format!("{} ({:.2})", other.parsed_action, other.confidence));
    }
    text.push('\n');
    text
}
