//! Checking a call against the mandate.

use serde_json::{Map, Value};

use crate::model::{Capability, Operation, Resource, RiskLevel};

use super::argument::{Argument, Arguments, MOST_EMBEDDED, Part, Weight, embedded, is_host};
use super::memory::{MOST_ORIGINS, Memory, Place};
use super::purpose::{self, Asked, Fit, Purpose};
use super::text::{self, Shape};
use super::words::Words;

/// A call, as parsed.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and none follows from the others")]
pub(crate) struct Deed<'a> {
    /// The tool, or the action if no tool is named.
    pub(crate) tool: &'a str,
    /// The capabilities that the call needs, the primary one first.
    pub(crate) capabilities: &'a [Capability],
    /// The call only reads.
    pub(crate) is_read: bool,
    pub(crate) risk: RiskLevel,
    /// The tool's relevance to the request; `None` for a tool that is not in the catalog.
    pub(crate) fit: Option<Fit>,
    /// The arguments of a tool call.
    pub(crate) arguments: Option<&'a Map<String, Value>>,
    /// The text of a request in natural language or another form.
    pub(crate) text: Option<&'a str>,
    /// The targets that the parser found in the call, with their parts.
    pub(crate) targets: Vec<(Part, String)>,
    /// The tool's definition addresses the agent instead of describing the tool.
    pub(crate) is_poisoned: bool,
    /// A part of the call could not be parsed.
    pub(crate) is_unread: bool,
    /// The same effect was already allowed under the task.
    pub(crate) is_repeated: bool,
    /// Returns the part of an argument, by its key, if the vocabulary of tools knows it.
    pub(crate) known: &'a dyn Fn(&str) -> Option<Part>,
    /// Returns whether the tool's schema lists a value for an argument, so that the value is a choice and not a
    /// target.
    pub(crate) offers: &'a dyn Fn(&str, &str) -> bool,
}

/// A reason against a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The key of the argument at fault.
    pub(crate) argument: Option<String>,
    /// The value of the argument.
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The words do not ask for the call.
    Foreign,
    /// The words may or may not ask for the call.
    Unsure,
    /// A critical value has no legitimate source: it is not in the words, not trusted, and not from an entry they
    /// name.
    Source,
    /// Observed content would be sent to somebody whom neither the words nor a trusted value name.
    Exfiltration,
    /// A part of the call could not be read.
    Unread,
    /// The words ask for the call once, and it was already made.
    Repeated,
    /// An effect leaves the work area, and the words do not name it.
    Leaves,
    /// Something is removed that the task did not create, and the words do not ask for a removal.
    Removes,
}

/// The origin of a value that has no legitimate source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The value is from an observed result.
    Observed(Place),
    /// The origin of the value is unknown.
    Nowhere,
}

/// The result of checking a call. The call is inside the mandate if there are no faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) faults: Vec<Fault>,
    /// The call has an effect outside the work area, so it may carry out an order of somebody else.
    pub(crate) leaves: bool,
}

impl FaultKind {
    /// Returns whether a call with this fault is denied. For the other kinds a reviewer is asked.
    pub(crate) const fn refuses(self) -> bool {
        matches!(self, Self::Foreign | Self::Exfiltration)
    }
}

impl Finding {
    pub(crate) fn is_inside(&self) -> bool {
        self.faults.is_empty()
    }

    /// The fault because of which the call is denied, if any.
    pub(crate) fn refusal(&self) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.kind.refuses())
    }

    /// Adds the faults of another finding.
    pub(crate) fn join(&mut self, other: Self) {
        self.leaves |= other.leaves;
        for fault in other.faults {
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
    }
}

/// Checks a call against the user's words.
pub(crate) fn check(words: &Words, asked: &Asked, memory: &Memory, deed: &Deed<'_>) -> Finding {
    let finding = Finding { leaves: !deed.is_read, ..Finding::default() };
    let mut checking = Checking { words, memory, deed, is_own_text: false, finding };
    let purpose = if deed.is_read {
        purpose::of_read(asked, deed.capabilities, deed.risk, deed.fit)
    } else {
        purpose::of_effect(asked, deed.capabilities, deed.risk, deed.fit)
    };
    match purpose {
        Purpose::Serves if !deed.is_poisoned => {}
        Purpose::Serves | Purpose::Unsure => checking.note(FaultKind::Unsure, None),
        Purpose::Foreign => {
            checking.note(FaultKind::Foreign, None);
            return checking.finding;
        }
    }
    let arguments = deed.arguments.map(|arguments| Arguments::read(arguments, deed.known)).unwrap_or_default();
    if memory.has_lists() {
        let is_text = |argument: &&Argument<'_>| !matches!(argument.part, Part::Party | Part::Id | Part::Option);
        checking.is_own_text = arguments.all.iter().filter(is_text).all(|argument| words.mention(&argument.value));
    }
    if deed.is_read {
        checking.look(&arguments);
    } else {
        checking.effect(&arguments);
    }
    checking.finding
}

struct Checking<'a> {
    words: &'a Words,
    memory: &'a Memory,
    deed: &'a Deed<'a>,
    /// The texts that the call carries are the user's. Only asked where a service listed channels or users.
    is_own_text: bool,
    finding: Finding,
}

impl Checking<'_> {
    /// Checks a read: it must not carry observed content away, nor access an address that nobody named.
    fn look(&mut self, arguments: &Arguments<'_>) {
        let goes_out = self.deed.capabilities.iter().any(|capability| {
            matches!(
                capability.resource(),
                None | Some(Resource::Web | Resource::Network | Resource::Information | Resource::Unknown)
            )
        }) || arguments.all.iter().any(|argument| argument.part == Part::Place);
        self.program(arguments);
        for argument in &arguments.all {
            let is_address = argument.part == Part::Place || is_host(&argument.value);
            if is_address && !self.is_legitimate(argument) {
                self.note(FaultKind::Source, Some(argument));
            }
        }
        for argument in arguments.all.iter().filter(|argument| argument.part == Part::Code) {
            self.embedded(argument);
        }
        if goes_out {
            self.keep_in(&arguments.all.iter().collect::<Vec<_>>());
        }
        if goes_out && arguments.is_cut {
            self.note(FaultKind::Unread, None);
        }
        self.targets(|part| part == Part::Place);
    }

    fn effect(&mut self, arguments: &Arguments<'_>) {
        let does = |operations: &[Operation]| {
            self.deed
                .capabilities
                .iter()
                .any(|one| one.operation().is_none_or(|operation| operations.contains(&operation)))
        };
        let is_grave = does(&[Operation::Delete, Operation::Send, Operation::Transfer, Operation::Admin]);
        let sends = does(&[Operation::Send, Operation::Transfer]);
        let deletes = does(&[Operation::Delete]);
        let pays = self
            .deed
            .capabilities
            .iter()
            .any(|one| one.operation() == Some(Operation::Transfer) && one.resource() == Some(Resource::Payment));
        let makes = does(&[Operation::Write]) && !arguments.all.iter().any(|argument| argument.part == Part::Id);
        let weight = Weight { is_grave, makes };
        let leaves =
            arguments.all.iter().any(|argument| matches!(argument.part, Part::Party | Part::Place)) || is_grave;
        let mut has_unnamed = false;
        for argument in &arguments.all {
            if matches!(argument.part, Part::Code | Part::Program) {
                // Its targets are in `targets`, or nobody parsed it.
                self.embedded(argument);
                continue;
            }
            // A search text selects what is deleted.
            let selects = deletes && argument.part == Part::Content;
            if selects && !(self.words.mention(&argument.value) || self.words.cover_all(&argument.value)) {
                self.note(FaultKind::Source, Some(argument));
            }
            let is_misplaced =
                sends && matches!(argument.part, Part::Party | Part::Place) && !self.is_addressed(argument);
            // In a payment every larger number may be the amount, whatever its key.
            let is_sum = pays
                && matches!(argument.part, Part::Other | Part::Option | Part::Name)
                && text::number(&argument.value).is_some_and(|number| number.len() > 1);
            let is_critical = (argument.is_critical(weight) || is_sum) && !self.is_choice(argument);
            if is_critical && (is_misplaced || !self.is_legitimate(argument)) {
                has_unnamed |= matches!(argument.part, Part::Party | Part::Place | Part::Id | Part::Other);
                self.note(FaultKind::Source, Some(argument));
            }
            if argument.part == Part::Content && leaves {
                self.embedded(argument);
            }
        }
        let has_code = arguments.all.iter().any(|argument| argument.part == Part::Code);
        self.program(arguments);
        if (has_unnamed || has_code) && leaves {
            // Only what is carried, not whom or what the effect concerns.
            let is_carried = |argument: &&Argument<'_>| {
                matches!(
                    argument.part,
                    Part::Content | Part::Name | Part::Other | Part::Secret | Part::Code | Part::Program
                )
            };
            self.keep_in(&arguments.all.iter().filter(is_carried).collect::<Vec<_>>());
        }
        let by_parser = has_code || self.deed.arguments.is_none();
        // A risky command without known targets: its values are unknown.
        let is_opaque = has_code && self.deed.targets.is_empty() && self.deed.risk >= RiskLevel::High;
        if arguments.is_cut || is_opaque || self.deed.is_unread {
            self.note(FaultKind::Unread, None);
        }
        if by_parser {
            self.targets(|_| true);
        }
        self.prose();
        if self.deed.is_repeated
            && self.deed.capabilities.iter().any(|one| one.operation() == Some(Operation::Transfer))
        {
            self.note(FaultKind::Repeated, None);
        }
    }

    /// Checks the addresses inside a text.
    fn embedded(&mut self, argument: &Argument<'_>) {
        let addresses = embedded(&argument.value);
        if addresses.len() >= MOST_EMBEDDED {
            self.note(FaultKind::Unread, Some(argument));
        }
        for address in addresses {
            let inner = Argument { key: argument.key.clone(), value: address.into(), part: Part::Place };
            if !self.is_legitimate(&inner) {
                self.note(FaultKind::Source, Some(&inner));
            }
        }
    }

    /// Reports code that is not parsed, unless the words contain it.
    fn program(&mut self, arguments: &Arguments<'_>) {
        for argument in arguments.all.iter().filter(|argument| argument.part == Part::Program) {
            if !self.words.mention(&argument.value) {
                self.note(FaultKind::Unread, Some(argument));
            }
        }
    }

    /// Checks the targets that the parser found in a command or a sentence.
    fn targets(&mut self, looks_at: impl Fn(Part) -> bool) {
        for (part, value) in self.deed.targets.iter().filter(|(part, _)| looks_at(*part)) {
            let argument = Argument { key: "input".to_owned(), value: value.as_str().into(), part: *part };
            let is_noted = self.finding.faults.iter().any(|fault| fault.value.as_deref() == Some(value));
            if !is_noted && !self.is_legitimate(&argument) {
                self.note(FaultKind::Source, Some(&argument));
            }
        }
    }

    /// Checks a request in natural language: the user must have named whom and what it names.
    fn prose(&mut self) {
        let Some(said) = self.deed.text else { return };
        let marks = |c: char| matches!(c, ',' | ';' | '(' | ')' | '"' | '\'' | '!' | '?' | '.' | ':');
        let pieces = said.split_whitespace().map(|piece| piece.trim_matches(marks)).filter(|piece| !piece.is_empty());
        for (place, piece) in pieces.enumerate() {
            let is_name = place > 0 && piece.starts_with(char::is_uppercase);
            let is_value =
                is_name || piece.bytes().any(|byte| byte.is_ascii_digit()) || text::shape(piece) == Shape::Atom;
            let argument = Argument { key: "input".to_owned(), value: piece.into(), part: Part::Other };
            if is_value && !self.words.cover(piece) && !self.is_legitimate(&argument) {
                self.note(FaultKind::Source, Some(&argument));
            }
        }
    }

    /// Returns whether a value is a choice in the tool's schema that names nobody and nothing.
    fn is_choice(&self, argument: &Argument<'_>) -> bool {
        matches!(argument.part, Part::Other | Part::Option | Part::Name)
            && (self.deed.offers)(&argument.key, &argument.value)
    }

    /// Returns whether a value has a legitimate source: the user's words, a trusted value, or an entry that the user
    /// named.
    fn is_legitimate(&self, argument: &Argument<'_>) -> bool {
        self.words.allow(&argument.value, argument.part)
            // A name made of the user's words is legitimate.
            || argument.part == Part::Name && self.words.cover(&argument.value)
            || self.memory.resolves(&argument.value, argument.part, self.deed)
            || self.memory.gives(&argument.value, argument.part, self.deed, self.is_own_text)
    }

    /// Returns whether the words send something to this value, rather than only mention it.
    fn is_addressed(&self, argument: &Argument<'_>) -> bool {
        self.words.address(&argument.value)
            || self.memory.resolves(&argument.value, argument.part, self.deed)
            || self.memory.gives(&argument.value, argument.part, self.deed, self.is_own_text)
    }

    /// Reports the arguments that contain observed content.
    fn keep_in(&mut self, arguments: &[&Argument<'_>]) {
        let texts: Vec<&str> = arguments.iter().map(|argument| &*argument.value).collect();
        for (place, tool) in self.memory.carried(&texts, self.words) {
            let Some(argument) = arguments.get(place) else { continue };
            self.finding.faults.push(Fault {
                kind: FaultKind::Exfiltration,
                argument: Some(argument.key.clone()),
                value: Some(argument.value.clone().into_owned()),
                origin: Origin::Observed(Place { tool, around: String::new() }),
            });
        }
    }

    fn note(&mut self, kind: FaultKind, argument: Option<&Argument<'_>>) {
        // Only the first origins are looked up: a call can have hundreds of values, and results are long.
        let origin = argument
            .filter(|_| self.finding.faults.len() < MOST_ORIGINS)
            .and_then(|argument| self.memory.place_of(&argument.value))
            .map_or(Origin::Nowhere, Origin::Observed);
        self.finding.faults.push(Fault {
            kind,
            argument: argument.map(|argument| argument.key.clone()),
            value: argument.map(|argument| argument.value.clone().into_owned()),
            origin,
        });
    }
}

#[cfg(any(test, fuzzing))]
mod tests {
    use super::*;

    impl<'a> Deed<'a> {
        /// Creates a call without arguments that serves the request.
        pub(in crate::mandate) fn of(tool: &'a str, capabilities: &'a [Capability]) -> Self {
            Self {
                tool,
                capabilities,
                is_read: false,
                risk: RiskLevel::Low,
                fit: None,
                arguments: None,
                text: None,
                targets: Vec::new(),
                is_poisoned: false,
                is_unread: false,
                is_repeated: false,
                known: &|_| None,
                offers: &|_, _| false,
            }
        }
    }
}
