//! What a reader hands to the assessment: the acts that it found and the facts
//! that hold for the whole request.

use crate::model::{Classification, Operation, Resource, RiskLevel};

use super::sign::{Sign, Signs};

/// The form of the input, as `inputFormat` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    ToolCall,
    Shell,
    Sql,
    Http,
    Code,
}

impl Format {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ToolCall => "tool_call",
            Self::Shell => "shell",
            Self::Sql => "sql",
            Self::Http => "http",
            Self::Code => "code",
        }
    }
}

/// One thing that the request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    /// The verb of the action's name, in its base form.
    pub verb: String,
    /// The noun of the action's name.
    pub noun: String,
    pub resource: Resource,
    pub operation: Operation,
    /// What it shows beside the whole request's signs.
    pub signs: Signs,
    /// A level that the reader knows, where a table states it; the rubric's otherwise.
    pub risk: Option<RiskLevel>,
    /// How sure the reader is, from 0 to 1.
    pub sure: f64,
    /// Nothing in the input names the resource: it stands in, and gives way to what is named.
    pub guess: bool,
    /// The noun that comes next as its object, and by how much less it fits.
    pub rival: Option<(Box<str>, f32)>,
    /// What in the input gave it.
    pub found: Found,
    /// An operator said so: the rubric's floor does not apply.
    pub is_set: bool,
    /// Another act brings it along, as a meeting its invitations: never the primary one.
    pub is_entailed: bool,
}

/// The words or arguments that gave an act, as the reader saw them: for the explanation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What told the operation: a verb, a program with its flags, a tool's name.
    pub operation: Option<Box<str>>,
    /// What told the resource: a noun, a path, a table, an argument.
    pub resource: Option<Box<str>>,
}

/// Evidence is for people; the longest piece of the input that it quotes, in bytes.
const LONGEST_FOUND: usize = 120;

/// A piece of the input, cut to what a person reads.
fn quoted(text: &str) -> Option<Box<str>> {
    let text = text.trim();
    let end = (0..=text.len().min(LONGEST_FOUND)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).filter(|text| !text.is_empty()).map(Into::into)
}

impl Act {
    pub(crate) fn new(verb: &str, noun: &str, resource: Resource, operation: Operation, sure: f64) -> Self {
        Self {
            verb: verb.to_owned(),
            noun: noun.to_owned(),
            resource,
            operation,
            signs: Signs::default(),
            risk: None,
            sure,
            guess: false,
            rival: None,
            found: Found::default(),
            is_set: false,
            is_entailed: false,
        }
    }

    /// Code that is handed over to be run: arbitrary code.
    pub(crate) fn unseen_code() -> Self {
        Self { resource: Resource::Code, ..Self::unclear_execution("code").marked(Sign::Downloaded) }
    }

    /// An act that was not understood.
    pub(crate) fn unknown() -> Self {
        Self::new("unknown", "action", Resource::Unknown, Operation::Unknown, 0.2)
    }

    /// A command or program that cannot be read with certainty: never below `HIGH`.
    pub(crate) fn unclear_execution(noun: &str) -> Self {
        let mut act = Self::new("run", noun, Resource::System, Operation::Execute, 0.4);
        act.risk = Some(RiskLevel::High);
        act.signs.add(Sign::Unclear);
        act
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.resource == Resource::Unknown && self.operation == Operation::Unknown
    }

    pub(crate) fn marked(mut self, sign: Sign) -> Self {
        self.signs.add(sign);
        self
    }

    pub(crate) fn at_risk(mut self, risk: RiskLevel) -> Self {
        self.risk = Some(risk);
        self
    }

    /// Notes what told the operation, unless that is known already.
    pub(crate) fn told_by(mut self, found: &str) -> Self {
        if self.found.operation.is_none() {
            self.found.operation = quoted(found);
        }
        self
    }

    /// Notes what told the resource, unless that is known already.
    pub(crate) fn named_by(mut self, found: &str) -> Self {
        if self.found.resource.is_none() {
            self.found.resource = quoted(found);
        }
        self
    }
}

/// What holds for the whole request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub signs: Signs,
    /// The largest amount of money that the text names.
    pub amount: Option<f64>,
    pub currency: Option<&'static str>,
    /// How many records the text names.
    pub count: Option<u64>,
    /// The recipient, path, host or table that the text names first.
    pub target: Option<String>,
    /// The share of the words that are known, from 0 to 1; absent where the form has a grammar.
    pub known: Option<f64>,
    /// The class of the data that stands in the input itself.
    pub contents: Option<Classification>,
    /// What in the input showed a sign, where that is not the act's own words.
    pub shown: Vec<(Sign, Box<str>)>,
}

impl Facts {
    /// Notes what showed a sign. The sign itself is set where it belongs: in the facts or in an act.
    pub(crate) fn show(&mut self, sign: Sign, found: &str) {
        if self.shown.len() < MOST_SHOWN
            && !self.shown.iter().any(|(known, _)| *known == sign)
            && let Some(found) = quoted(found)
        {
            self.shown.push((sign, found));
        }
    }

    pub(crate) fn note_target(&mut self, target: &str) {
        if self.target.is_none() && !target.is_empty() {
            // Long enough for any address; a target is a key in a context, not a copy of the input.
            self.target = Some(target.chars().take(256).collect());
        }
    }

    pub(crate) fn note_count(&mut self, count: u64) {
        self.count = Some(self.count.map_or(count, |known| known.max(count)));
        if count > 1000 {
            self.signs.add(Sign::ManyRecords);
        }
    }

    pub(crate) fn note_amount(&mut self, amount: f64, currency: Option<&'static str>) {
        if amount.is_finite() && self.amount.is_none_or(|known| amount > known) {
            self.amount = Some(amount);
        }
        self.currency = self.currency.or(currency);
    }
}

/// Pieces of the input that are kept as evidence of signs.
const MOST_SHOWN: usize = 32;

/// What a reader found in the input.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub format: Format,
    pub acts: Vec<Act>,
    pub facts: Facts,
    /// Command lines that the text has run, until the driver reads them.
    pub commands: Vec<String>,
}

impl Reading {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, acts: Vec::new(), facts: Facts::default(), commands: Vec::new() }
    }

    /// Notes a command line that the text has run, for the driver to read.
    pub(crate) fn note_command(&mut self, command: &str) {
        if command.trim().is_empty() || self.commands.iter().any(|known| known == command) {
            return;
        }
        if self.commands.len() < MOST_COMMANDS {
            self.commands.push(command.to_owned());
        } else {
            self.push(Act::unclear_execution("command").told_by(command));
        }
    }

    /// Adds an act unless the same one stands already; a riskier twin wins.
    /// INVARIANT: at most [`MAX_ACTS`] acts are kept, so that assessment stays
    /// linear; what comes after them is kept as one unclear execution.
    pub(crate) fn push(&mut self, act: Act) {
        if let Some(twin) = self.acts.iter_mut().find(|known| {
            known.resource == act.resource
                && known.operation == act.operation
                && known.verb == act.verb
                && known.noun == act.noun
        }) {
            twin.signs = twin.signs.with(act.signs);
            twin.risk = twin.risk.max(act.risk);
            twin.is_set &= act.is_set;
            twin.is_entailed &= act.is_entailed;
            twin.found.operation = twin.found.operation.take().or(act.found.operation);
            twin.found.resource = twin.found.resource.take().or(act.found.resource);
            return;
        }
        match self.acts.len() {
            0..MAX_ACTS => self.acts.push(act),
            MAX_ACTS => self.acts.push(Act::unclear_execution("long_request")),
            _ => {}
        }
    }

    /// Takes in what another reader found in a part of the input.
    pub(crate) fn absorb(&mut self, other: Self) {
        for act in other.acts {
            self.push(act);
        }
        for command in &other.commands {
            self.note_command(command);
        }
        self.facts.signs = self.facts.signs.with(other.facts.signs);
        if let Some(amount) = other.facts.amount {
            self.facts.note_amount(amount, other.facts.currency);
        }
        if let Some(count) = other.facts.count {
            self.facts.note_count(count);
        }
        for (sign, found) in &other.facts.shown {
            self.facts.show(*sign, found);
        }
        if let Some(target) = other.facts.target {
            self.facts.note_target(&target);
        }
    }
}

/// Command lines of one text that are read.
const MOST_COMMANDS: usize = 32;
/// Most acts that one request is read into.
const MAX_ACTS: usize = 40;
