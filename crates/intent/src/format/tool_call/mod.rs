//! Structured tool calls, recognized by shape: MCP, `OpenAI`, Anthropic, Gemini, `LangChain`, a bare name with
//! arguments, and calls written as expressions.
//!
//! | file | subject |
//! |---|---|
//! | `json.rs` | JSON with borrowed strings and duplicate keys |
//! | `shape.rs` | finds the calls in a message |
//! | `expression.rs` | calls written as expressions |
//! | `arguments.rs` | the effect of a call's arguments |
//! | `deeds.rs` | the acts that words of keys, flags, values and names state |
//! | `money.rs` | the amount of a payment as a whole |
//! | `inspect.rs` | the content of strings, and of several strings together |
//! | `row.rs` | arguments with a role in the row of a host's tool |
//! | `effects.rs` | the effect of single arguments: permissions, links, verbs, places, controls |
//!
//! A call of a tool in the catalogue does what the catalogue says; its arguments are still read, and can only raise
//! the risk.

mod arguments;
mod cover;
mod deeds;
mod effects;
mod expression;
mod inspect;
mod json;
mod money;
mod row;
mod shape;

use crate::lexicon::Lexicon;
use crate::reading::{Act, Facts, Format, Reading};
use crate::risk;
use crate::sign::{Sign, Signs};
use rulekeep_types::{MAX_CONTEXT_DEPTH, Operation, json_depth};

use super::hosts::{self, Known, Through};
use super::tool::ToolTurn;
use super::tool_name;
use super::tools::tools;
use arguments::Arguments;
use expression::Expression;
use json::Json;
use shape::Call;
pub use shape::calls_of;

/// Reads a text that is a tool call, or was meant as one; `None` for other texts.
pub(super) fn read(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Option<Reading> {
    let text = unwrapped(text);
    if !text.starts_with(['{', '[', '"']) {
        return None;
    }
    let mut reader = Reader::new(lexicon, known);
    // The depth is computed from the brackets before a tree is built, so a hostile text needs no stack.
    if json_depth(text) > MAX_CONTEXT_DEPTH {
        reader.reading.push(Act::unclear_execution("tool"));
        return Some(reader.reading);
    }
    let (values, is_complete) = json::values(text);
    match (values.as_slice(), is_complete) {
        // JSON in a string: its content is meant.
        ([Json::Text(inner)], true) => {
            let inner = inner.trim();
            return inner.starts_with(['{', '[']).then(|| read(inner, lexicon, known)).flatten();
        }
        ([], true) => return None,
        ([_, ..], true) => reader.values(values),
        (_, false) => {
            let is_meant = text.starts_with(['{', '[']) && tools().marks_call(text);
            if !is_meant {
                return None;
            }
            // Another reader could understand more of it than this one.
            reader.values(values);
            reader.reading.push(Act::unclear_execution("tool").told_by(text));
        }
    }
    Some(reader.reading)
}

/// Reads `send_email(to="bob@example.com")`, or a list of such calls.
pub(super) fn read_expression(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Option<Reading> {
    let mut reader = Reader::new(lexicon, known);
    match expression::read(text) {
        Expression::None => return None,
        Expression::Broken => reader.reading.push(Act::unclear_execution("tool").told_by(text)),
        Expression::Calls(calls) => {
            for call in &calls {
                let call = Call { names: vec![call.name], arguments: vec![&call.arguments], ..Call::default() };
                reader.call(&call);
            }
        }
    }
    Some(reader.reading)
}

/// The text without the marks that models put around a call.
fn unwrapped(text: &str) -> &str {
    let trimmed = text.trim();
    for (open, close) in WRAPS {
        if let Some(inner) = trimmed.strip_prefix(open).map(str::trim) {
            let inner = inner.strip_suffix(close).unwrap_or(inner).trim();
            if inner.starts_with(['{', '[']) {
                return inner;
            }
        }
    }
    trimmed
}

/// Reads the calls of a message.
struct Reader<'l> {
    lexicon: &'l Lexicon,
    known: &'l ToolTurn<'l>,
    reading: Reading,
    /// The number of texts unpacked to get here: JSON in a string in JSON.
    unpacked: u8,
}

/// The meaning of a call's names.
#[derive(Default)]
struct Named<'n, 'l> {
    acts: Vec<Act>,
    through: Option<Through>,
    known: Option<&'static Known>,
    /// The first name; if it is a program's, the arguments are too.
    program: Option<&'n str>,
    /// For each tool, the arguments that request a trial, if a catalogue lists them.
    trials: Vec<&'l [Box<str>]>,
}

/// The server that a host's own tool asks, by its argument: `ListMcpResourcesTool {server}`.
fn asked_server<'j>(call: &Call<'j>) -> Option<&'j str> {
    let asks = call.names.iter().any(|name| name.to_ascii_lowercase().contains("mcp"));
    let mut fields = call.arguments.iter().filter(|_| asks).filter_map(|value| match value {
        Json::Fields(fields) => Some(fields),
        _ => None,
    });
    fields.find_map(|fields| fields.iter().find(|(key, _)| key == "server")?.1.as_text())
}

impl<'l> Reader<'l> {
    fn new(lexicon: &'l Lexicon, known: &'l ToolTurn<'l>) -> Self {
        Self { lexicon, known, reading: Reading::new(Format::ToolCall), unpacked: 0 }
    }

    fn values(&mut self, values: Vec<Json<'_>>) {
        for value in values.into_iter().map(shape::unpacked) {
            let calls = shape::calls(&value);
            if calls.is_empty() {
                // JSON without a call: data of unknown purpose, which may contain a command.
                self.call(&Call { arguments: vec![&value], ..Call::default() });
            }
            for call in &calls {
                self.call(call);
            }
        }
    }

    /// Reads a call as a step: the tool by its names, then the arguments.
    fn call(&mut self, call: &Call<'_>) {
        let outer = self.reading.begin_step();
        let place = self.reading.steps.len().saturating_sub(1);
        let (act, known) = self.call_within(call);
        cover::note(call, &act, known, &mut self.reading);
        cover::complete(call, self.reading.steps.get_mut(place..).unwrap_or_default());
        if let Some(name) = call.names.first() {
            let (tool, server) = tool_name::split(name);
            let server = call.server.or(server).or_else(|| asked_server(call));
            for step in self.reading.steps.iter_mut().skip(place).filter(|step| step.tool.is_none()) {
                step.tool = Some(tool.to_owned());
                step.server = server.map(str::to_owned);
            }
        }
        self.reading.end_step(outer);
    }

    /// Reads a call. Returns what the tool does by its names and arguments, and the row of the tool.
    fn call_within(&mut self, call: &Call<'_>) -> (Act, Option<&'static Known>) {
        let mut named = self.named(call);
        let mut acts = std::mem::take(&mut named.acts).into_iter();
        let mut act = acts.next().unwrap_or_else(Act::unknown);
        for other in acts {
            self.reading.push(other);
        }
        if call.is_unclear {
            self.reading.push(Act::unclear_execution("tool"));
        }
        let as_named = act.clone();
        let trials = std::mem::take(&mut named.trials);
        let is_told = Arguments::new(self, &mut act, &named, trials).read(call);
        if is_told && call.names.len() == 1 && !act.is_set {
            // The tool does what it runs.
            return (act, named.known);
        }
        match named.through {
            Some(Through::Command | Through::Code | Through::Sql) if !is_told && !act.is_set => {
                act = act.at_risk(rulekeep_types::RiskLevel::High).marked(Sign::Unclear);
            }
            _ if act.is_unknown() => act.signs.add(Sign::Unclear),
            _ => {}
        }
        if act.is_set {
            act = self.raised(act, &as_named);
        }
        self.reading.push(act.clone());
        (act, named.known)
    }

    /// An operator's classification, raised if the arguments make the tool riskier than it is without them.
    fn raised(&self, act: Act, as_named: &Act) -> Act {
        let level = |act: &Act, facts: &Facts| {
            // Production raises any level, and does so later.
            let without = |signs: Signs| {
                let counts = |sign: &Sign| !matches!(sign, Sign::Production | Sign::PoisonedTool);
                signs.iter().filter(counts).fold(Signs::default(), |mut signs, sign| {
                    signs.add(sign);
                    signs
                })
            };
            let plain = Act { risk: None, learned: None, is_set: false, signs: without(act.signs), ..act.clone() };
            risk::assess(&plain, &Facts { signs: without(facts.signs), ..facts.clone() }).level
        };
        let told = level(&act, &self.reading.facts);
        let is_worse = told > level(as_named, &Facts::default());
        let set = act.risk;
        if is_worse { Act { risk: set.max(Some(told)), ..act } } else { act }
    }

    fn named<'n>(&mut self, call: &Call<'n>) -> Named<'n, 'l> {
        let mut all = Named::default();
        for name in &call.names {
            all.program = all.program.or(Some(name));
            if let Some(found) = self.known.find(name) {
                all.acts.extend(found.acts.iter().cloned());
                all.through = all.through.or(found.through);
                all.known = all.known.or(found.known);
                all.trials.push(&found.trials);
                continue;
            }
            if !self.known.is_empty() {
                self.reading.facts.signs.add(Sign::NotInCatalogue);
                self.reading.facts.show(Sign::NotInCatalogue, name);
                // It is unknown whether it has a trial.
                all.trials.push(&[]);
            }
            if let Some(known) = hosts::known(name, call.server).filter(|known| known.fits(|| call.keys())) {
                all.acts.push(known.act.clone().told_by(name));
                all.through = all.through.or(known.through);
                all.known = all.known.or(Some(known));
                continue;
            }
            let mut acts = tool_name::acts_of_called(name, self.lexicon);
            deeds::beyond_name(name, &mut acts);
            if acts.is_empty() {
                all.acts.push(Act::unknown().told_by(name));
            }
            all.acts.extend(acts);
        }
        all
    }
}

/// Returns whether an act changes something or passes it to somebody.
const fn changes(operation: Operation) -> bool {
    !matches!(operation, Operation::Read | Operation::Unknown)
}

/// Marks that models put around calls.
const WRAPS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<tool_use>", "</tool_use>"),
    ("<functioncall>", ""),
    ("[TOOL_CALLS]", ""),
    ("```json", "```"),
    ("```tool_call", "```"),
    ("```tool_code", "```"),
];
