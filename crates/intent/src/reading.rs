//! The output of a reader: the acts it found, and the facts that hold for the whole request.

use std::sync::Arc;

use rulekeep_types::facts::{
    self, Cause, Kind, Kinds, MOST_ACTS, MOST_OPEN, MOST_OPERANDS, Open, Operand, Role, host_of,
};
use rulekeep_types::{
    Amount, Capability, Classification, Operation, Resource, RiskLevel, Target, TargetKind, TargetRole, Unread,
    UnreadKind,
};

use super::learned::LearnedRisk;
use super::sign::{Sign, Signs};
use super::target;

/// The format of the input, as named in `inputFormat`.
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

/// A single action that the request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    /// The verb of the action's name, in base form.
    pub verb: String,
    /// The noun of the action's name.
    pub noun: String,
    pub resource: Resource,
    pub operation: Operation,
    /// Signs of this act in addition to those of the whole request.
    pub signs: Signs,
    /// The risk level if a table states it; otherwise the rubric determines it.
    pub risk: Option<RiskLevel>,
    /// The reader's confidence, from 0 to 1.
    pub sure: f64,
    /// The resource is a default that nothing in the input names; a named resource replaces it.
    pub guess: bool,
    /// The risk that the words suggest, if the word table has learned it.
    pub learned: Option<LearnedRisk>,
    /// Other meanings of the words, most likely first, each with its probability.
    pub others: Vec<(Resource, Operation, f64)>,
    /// The part of the input that led to this act.
    pub found: Found,
    /// An operator determined the act, so the risk floor of the rubric does not apply.
    pub is_set: bool,
    /// The act is a consequence of another one, as invitations are of a meeting, and never becomes the primary act.
    pub is_entailed: bool,
    /// The steps of the reading that the act belongs to.
    pub steps: Steps,
}

/// A set of the steps of a reading, by their places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Steps(u64);

impl Steps {
    pub(crate) const fn of(place: usize) -> Self {
        Self(1 << if place < MOST_ACTS { place } else { MOST_ACTS - 1 })
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn has(self, place: usize) -> bool {
        self.0 & Self::of(place).0 != 0
    }

    /// Returns whether the sets have a step in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same steps behind `before` others.
    fn behind(self, before: usize) -> Self {
        (0..MOST_ACTS)
            .filter(|place| self.has(*place))
            .fold(Self::default(), |all, place| all.with(Self::of(before + place)))
    }
}

/// The words or arguments that led to an act, as the reader saw them, for the explanation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The source of the operation: a verb, a program with its flags, or a tool's name.
    pub operation: Option<Box<str>>,
    /// The source of the resource: a noun, a path, a table or an argument.
    pub resource: Option<Box<str>>,
    /// For an act read by the word table: the words with the most weight, each with the operation or resource it
    /// supports.
    pub words: Vec<(Box<str>, &'static str)>,
}

/// Maximum length of a piece of input that evidence quotes, in bytes.
const LONGEST_FOUND: usize = 120;

/// A piece of the input, cut to the quoted length.
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
            learned: None,
            others: Vec::new(),
            found: Found::default(),
            is_set: false,
            is_entailed: false,
            steps: Steps::default(),
        }
    }

    /// The act that a capability stands for when nothing else is known.
    pub(crate) fn of_capability(capability: &Capability) -> Self {
        match (capability.resource(), capability.operation()) {
            (Some(resource), Some(operation)) => {
                Self::new(operation.as_str(), resource.as_str(), resource, operation, 0.95)
            }
            _ => Self::unknown(),
        }
    }

    /// Arbitrary code that is handed over to be run.
    pub(crate) fn unseen_code() -> Self {
        Self { resource: Resource::Code, ..Self::unclear_execution("code").marked(Sign::Downloaded) }
    }

    /// An act that was not understood.
    pub(crate) fn unknown() -> Self {
        Self::new("unknown", "action", Resource::Unknown, Operation::Unknown, 0.2)
    }

    /// A command or program that cannot be parsed with certainty: always at least `HIGH`.
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

    /// The capability that the act needs.
    pub(crate) fn capability(&self) -> Capability {
        if self.is_unknown() { Capability::unknown() } else { Capability::new(self.resource, self.operation) }
    }

    /// Makes the act part of a step.
    pub(crate) fn of_step(mut self, place: usize) -> Self {
        self.steps = Steps::of(place);
        self
    }

    /// Records the source of the operation, unless it is known already.
    pub(crate) fn told_by(mut self, found: &str) -> Self {
        if self.found.operation.is_none() {
            self.found.operation = quoted(found);
        }
        self
    }

    /// Records the source of the resource, unless it is known already.
    pub(crate) fn named_by(mut self, found: &str) -> Self {
        if self.found.resource.is_none() {
            self.found.resource = quoted(found);
        }
        self
    }
}

/// Facts that hold for the whole request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub signs: Signs,
    /// The formats of embedded parts that another reader has read.
    pub inner_formats: Vec<Format>,
    /// Every amount of money that the text names.
    pub amounts: Vec<Amount>,
    /// The currency of amounts without a currency of their own.
    pub currency: Option<String>,
    /// The number of records that the text names.
    pub count: Option<u64>,
    /// Every recipient, path, host, table and account, in text order.
    pub targets: Vec<Target>,
    /// The parts that could not be parsed.
    pub unread: Vec<Unread>,
    /// The share of known words, from 0 to 1; `None` for a format with a grammar.
    pub known: Option<f64>,
    /// The classification of the data in the input itself.
    pub contents: Option<Classification>,
    /// The part of the input that showed a sign, if it is not in the act's own words.
    pub shown: Vec<(Sign, Box<str>)>,
    /// Secrets that a reader found by their position.
    pub secrets: Vec<String>,
    /// Possible requests in clauses that probably ask for nothing, each with its probability.
    pub doubtful: Vec<(Resource, Operation, f64)>,
    /// The digests of the word table that English was read with, and of the user's own rows.
    pub table: Option<(Arc<str>, Option<Arc<str>>)>,
    /// The operands, amounts and open parts found since the last step ended.
    pub fresh: facts::Act,
}

impl Facts {
    /// Records what showed a sign. The sign itself is set in the facts or in an act.
    pub(crate) fn show(&mut self, sign: Sign, found: &str) {
        if self.shown.len() < MOST_SHOWN
            && !self.shown.iter().any(|(known, _)| *known == sign)
            && let Some(found) = quoted(found)
        {
            self.shown.push((sign, found));
        }
    }

    /// Records a target of which only the text is known.
    pub(crate) fn note_target(&mut self, text: &str) {
        self.note_target_as(target::kind_of(text), TargetRole::Named, text);
    }

    /// Records a target. One that is a pattern or a variable, too long, or beyond the maximum number counts as
    /// unread.
    pub(crate) fn note_target_as(&mut self, kind: TargetKind, role: TargetRole, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if text.len() > LONGEST_TARGET || self.targets.len() >= MOST_TARGETS {
            return self.note_unread(UnreadKind::Target, text);
        }
        let value = target::plain(kind, text);
        if target::is_open(kind, &value) {
            self.note_unread(UnreadKind::Target, text);
        } else {
            operands_of(kind, role, &value, text).for_each(|operand| add_operand(&mut self.fresh, operand));
        }
        if !self.targets.iter().any(|known| known.kind == kind && known.role == role && known.value == value) {
            self.targets.push(Target::new(kind, role, value, text));
        }
    }

    /// Records a path that is used as it stands: brackets, braces and `$` in it are characters of its name.
    /// Returns false for one that a tool may expand, which is recorded as such.
    pub(crate) fn note_literal_path(&mut self, role: TargetRole, text: &str) -> bool {
        let text = text.trim();
        if !target::is_literal(text) || text.len() > LONGEST_TARGET || self.targets.len() >= MOST_TARGETS {
            self.note_target_as(TargetKind::Path, role, text);
            return false;
        }
        let target = Target::new(TargetKind::Path, role, target::path(text), text);
        for operand in operands_of(TargetKind::Path, role, &target.value, text) {
            add_operand(&mut self.fresh, operand);
        }
        let is_same = |known: &Target| (known.kind, known.role, &known.value) == (target.kind, role, &target.value);
        if !self.targets.iter().any(is_same) {
            self.targets.push(target);
        }
        true
    }

    /// Records an unread part. Anything but a target or an amount makes the whole request unclear.
    pub(crate) fn note_unread(&mut self, kind: UnreadKind, found: &str) {
        // A payment without a sum is at high risk anyway; elsewhere a sum hardly matters.
        if !matches!(kind, UnreadKind::Target | UnreadKind::Amount) {
            self.signs.add(Sign::Unclear);
        }
        let kinds = if kind == UnreadKind::Amount { Kinds::of(&[Kind::Amount]) } else { Kinds::ALL };
        add_open(&mut self.fresh, Open::new(Cause::Text, kinds, quoted(found).unwrap_or_default().into()));
        if self.unread.len() < MOST_UNREAD
            && let Some(found) = quoted(found)
            && !self.unread.iter().any(|known| known.kind == kind && *known.found == *found)
        {
            self.unread.push(Unread::new(kind, found.into()));
        }
    }

    /// Returns whether the request names an e-mail or web address.
    pub(crate) fn names_outside(&self) -> bool {
        self.targets.iter().any(|target| target.value.contains('@') || target.value.contains("://"))
    }

    /// Returns whether the request names somebody's address.
    pub(crate) fn names_address(&self) -> bool {
        self.targets.iter().any(|target| target.value.contains('@'))
    }

    /// The sum of all amounts with its currency; `None` if there is no amount or no single sum.
    pub(crate) fn total(&self) -> Option<(f64, Option<&str>)> {
        let first = self.amounts.first()?;
        let is_one = self.amounts.iter().all(|amount| amount.currency == first.currency)
            && self.unread.iter().all(|unread| unread.kind != UnreadKind::Amount);
        #[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is beyond every sum as well")]
        let sum = self.amounts.iter().map(|amount| amount.value * amount.count as f64).sum::<f64>();
        (is_one && sum.is_finite()).then_some((sum, first.currency.as_deref()))
    }

    /// The largest single amount.
    pub(crate) fn largest_amount(&self) -> Option<f64> {
        self.amounts.iter().map(|amount| amount.value).reduce(f64::max)
    }

    pub(crate) fn note_count(&mut self, count: u64) {
        self.count = Some(self.count.map_or(count, |known| known.max(count)));
        if count > 1000 {
            self.signs.add(Sign::ManyRecords);
        }
    }

    pub(crate) fn note_amount(&mut self, value: f64, currency: Option<&str>) {
        if !value.is_finite() || self.amounts.len() >= MOST_AMOUNTS {
            return self.note_unread(UnreadKind::Amount, &value.to_string());
        }
        let amount = Amount::new(value, currency.map(str::to_owned), 1);
        self.fresh.amounts.push(amount.clone());
        self.amounts.push(amount);
    }

    /// Records the currency of amounts without one; a second currency makes their sum unknown.
    pub(crate) fn note_currency(&mut self, currency: &str) {
        let currency = currency.trim().to_ascii_uppercase();
        if self.currency.as_ref().is_some_and(|known| *known != currency) {
            self.note_unread(UnreadKind::Amount, &currency);
        } else {
            self.currency = Some(currency);
        }
    }

    /// Merges the facts of a part of the input, whose steps have ended.
    fn absorb(&mut self, mut other: Self) {
        let fresh = std::mem::take(&mut self.fresh);
        self.signs = self.signs.with(other.signs);
        for format in other.inner_formats {
            self.note_format(format);
        }
        for amount in other.amounts {
            if self.amounts.len() < MOST_AMOUNTS {
                self.amounts.push(amount);
            } else {
                self.note_unread(UnreadKind::Amount, &amount.value.to_string());
            }
        }
        if let Some(count) = other.count {
            self.note_count(count);
        }
        self.doubtful.extend(other.doubtful);
        self.doubtful.truncate(MOST_DOUBTFUL);
        for (sign, found) in &other.shown {
            self.show(*sign, found);
        }
        for target in other.targets {
            if self.targets.len() >= MOST_TARGETS {
                self.note_unread(UnreadKind::Target, &target.value);
            } else if !self.targets.contains(&target) {
                self.targets.push(target);
            }
        }
        for unread in &other.unread {
            self.note_unread(unread.kind, &unread.found);
        }
        self.secrets.append(&mut other.secrets);
        self.table = self.table.take().or(other.table);
        self.fresh = fresh;
    }

    /// Every text of the input that the facts repeat.
    pub(crate) fn quoted_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let targets =
            self.targets.iter_mut().flat_map(|target| std::iter::once(&mut target.value).chain(&mut target.original));
        targets.chain(self.unread.iter_mut().map(|unread| &mut unread.found))
    }

    fn note_format(&mut self, format: Format) {
        if !self.inner_formats.contains(&format) {
            self.inner_formats.push(format);
        }
    }
}

/// Maximum length of a target, in bytes.
const LONGEST_TARGET: usize = 1024;
/// Maximum number of targets of one request.
const MOST_TARGETS: usize = 64;
/// Maximum number of amounts of one request.
const MOST_AMOUNTS: usize = 32;
/// Maximum number of unread parts of one request.
const MOST_UNREAD: usize = 32;
/// Maximum number of quoted pieces as evidence of signs.
const MOST_SHOWN: usize = 32;

/// The findings of a reader.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub format: Format,
    pub acts: Vec<Act>,
    pub facts: Facts,
    /// Command lines that the text runs, until the driver reads them.
    pub commands: Vec<String>,
    /// The commands, calls, statements and sentences with their operands, in the order of the text.
    pub steps: Vec<facts::Act>,
    /// The place of the step that is being read.
    step: Option<usize>,
}

impl Reading {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, acts: Vec::new(), facts: Facts::default(), commands: Vec::new(), steps: Vec::new(), step: None }
    }

    /// The acts, for a reading that has steps of its own.
    pub(crate) fn into_acts(self) -> Vec<Act> {
        self.acts.into_iter().map(|act| Act { steps: Steps::default(), ..act }).collect()
    }

    /// Starts a step, to which all acts belong until it ends. Returns the step around it, for [`Reading::end_step`].
    pub(crate) fn begin_step(&mut self) -> Option<usize> {
        self.flush();
        let place = self.add_step(facts::Act::new());
        self.step.replace(place)
    }

    /// Ends a step and goes on with the step around it.
    pub(crate) fn end_step(&mut self, outer: Option<usize>) {
        self.flush();
        self.step = outer;
    }

    /// The step that is being read, as a set.
    pub(crate) fn step_set(&self) -> Steps {
        self.step.map(Steps::of).unwrap_or_default()
    }

    /// The step that is being read, with all that was found in it so far.
    pub(crate) fn current_step(&mut self) -> Option<&mut facts::Act> {
        self.steps.get_mut(self.step?)
    }

    /// Adds a step. Beyond the maximum the last step is left open in its place.
    pub(crate) fn add_step(&mut self, step: facts::Act) -> usize {
        if self.steps.len() < MOST_ACTS {
            self.steps.push(step);
            return self.steps.len() - 1;
        }
        if let Some(last) = self.steps.last_mut() {
            add_open(last, Open::new(Cause::Text, Kinds::ALL, TOO_MANY.to_owned()));
        }
        MOST_ACTS - 1
    }

    /// Moves the operands, amounts and open parts found so far into the current step.
    pub(crate) fn flush(&mut self) {
        if self.format == Format::Shell {
            // The words of a command say more than what was noted of its targets.
            self.facts.fresh.operands.clear();
            self.facts.fresh.open.clear();
        }
        let Some(step) = self.step.and_then(|place| self.steps.get_mut(place)) else { return };
        let facts::Act { amounts, open, operands, .. } = std::mem::take(&mut self.facts.fresh);
        step.amounts.extend(amounts);
        for operand in operands {
            add_operand(step, operand);
        }
        for open in open {
            add_open(step, open);
        }
    }

    /// Adds a step for the acts and operands that belong to none.
    pub(crate) fn seal(&mut self) {
        self.flush();
        let fresh = &self.facts.fresh;
        let is_empty = fresh.amounts.is_empty() && fresh.open.is_empty() && fresh.operands.is_empty();
        if self.step.is_none() && is_empty && !self.steps.is_empty() {
            // Effects of the whole request belong to all of its steps.
            let all = (0..self.steps.len()).fold(Steps::default(), |all, place| all.with(Steps::of(place)));
            self.acts.iter_mut().filter(|act| act.steps.is_empty()).for_each(|act| act.steps = all);
        }
        let is_loose = |act: &Act| act.steps.is_empty();
        if self.step.is_some() || is_empty && !self.acts.iter().any(is_loose) {
            return;
        }
        let mut step = std::mem::take(&mut self.facts.fresh);
        if self.format == Format::Shell {
            add_open(&mut step, Open::new(Cause::Text, Kinds::ALL, "command".to_owned()));
        }
        let place = self.add_step(step);
        self.acts.iter_mut().filter(|act| is_loose(act)).for_each(|act| act.steps = Steps::of(place));
    }

    /// Assigns the separately named currency to amounts without one.
    pub(crate) fn settle(&mut self) {
        self.flush();
        if let Some(currency) = self.facts.currency.take() {
            let of_steps = self.steps.iter_mut().chain([&mut self.facts.fresh]).flat_map(|step| &mut step.amounts);
            for amount in self.facts.amounts.iter_mut().chain(of_steps) {
                amount.currency.get_or_insert_with(|| currency.clone());
            }
        }
    }

    /// Multiplies the amounts of the step that is being read, which are those from a place on.
    pub(crate) fn multiply_amounts(&mut self, from: usize, times: u64) {
        self.flush();
        let of_step =
            self.step.and_then(|place| self.steps.get_mut(place)).into_iter().flat_map(|step| &mut step.amounts);
        for amount in self.facts.amounts.iter_mut().skip(from).chain(of_step) {
            amount.count = amount.count.saturating_mul(times);
        }
    }

    /// Adds the steps of another reading. Returns the number of steps before them.
    fn add_steps(&mut self, steps: Vec<facts::Act>) -> usize {
        let before = self.steps.len();
        for step in steps {
            self.add_step(step);
        }
        before
    }

    /// Records a command line that the text runs, for the driver to read.
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

    /// Adds an act unless the same one exists; the riskier of two equal acts wins.
    ///
    /// INVARIANT: at most [`MAX_ACTS`] acts are kept, so that assessment stays linear; further acts are kept as a
    /// single unclear execution.
    pub(crate) fn push(&mut self, mut act: Act) {
        if act.steps.is_empty() {
            act.steps = self.step.map(Steps::of).unwrap_or_default();
        }
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
            twin.steps = twin.steps.with(act.steps);
            twin.found.operation = twin.found.operation.take().or(act.found.operation);
            twin.found.resource = twin.found.resource.take().or(act.found.resource);
            return;
        }
        match self.acts.len() {
            0..MAX_ACTS => self.acts.push(act),
            MAX_ACTS => self.acts.push(Act { steps: act.steps, ..Act::unclear_execution("long_request") }),
            _ => {
                if let Some(last) = self.acts.last_mut() {
                    last.steps = last.steps.with(act.steps);
                }
            }
        }
    }

    /// Adds several acts.
    pub(crate) fn extend(&mut self, acts: impl IntoIterator<Item = Act>) {
        for act in acts {
            self.push(act);
        }
    }

    /// Joins another reading of the same text, when either may be meant. No act of one makes an act of the other
    /// milder.
    pub(crate) fn join(&mut self, other: &Self) {
        let mut other = other.clone();
        other.settle();
        let before = self.add_steps(std::mem::take(&mut other.steps));
        let mut facts = other.facts;
        let mut known = self.facts.amounts.clone();
        // A sum that occurs in both readings counts once.
        facts.amounts.retain(|amount| match known.iter().position(|one| one == amount) {
            Some(place) => {
                known.swap_remove(place);
                false
            }
            None => true,
        });
        self.acts.extend(other.acts.into_iter().map(|act| Act { steps: act.steps.behind(before), ..act }));
        self.facts.contents = self.facts.contents.max(facts.contents);
        self.facts.note_format(other.format);
        self.facts.absorb(facts);
    }

    /// Merges what another reader found in a part of the input.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        other.settle();
        other.seal();
        let before = self.add_steps(std::mem::take(&mut other.steps));
        for act in other.acts {
            self.push(Act { steps: act.steps.behind(before), ..act });
        }
        for command in &other.commands {
            self.note_command(command);
        }
        self.facts.note_format(other.format);
        self.facts.absorb(other.facts);
    }
}

/// Adds an operand to a step, within the maximum, beyond which the step is open.
pub(crate) fn add_operand(step: &mut facts::Act, operand: Operand) {
    if step.operands.contains(&operand) {
        return;
    }
    if operand.kind == facts::Kind::Recipient && target::is_account(&operand.value) {
        // Who is paid by the number of an account is named by it.
        add_operand(step, Operand::new(facts::Kind::Account, operand.role, operand.value.clone(), &operand.value));
    }
    if step.operands.len() < MOST_OPERANDS {
        step.operands.push(operand);
    } else {
        add_open(step, Open::new(Cause::Text, Kinds::ALL, TOO_MANY.to_owned()));
    }
}

/// Adds an open part to a step, within the maximum.
pub(crate) fn add_open(step: &mut facts::Act, open: Open) {
    if step.open.contains(&open) {
        return;
    }
    if step.open.len() < MOST_OPEN {
        step.open.push(open);
    } else if let Some(last) = step.open.last_mut() {
        *last = Open::new(Cause::Text, Kinds::ALL, TOO_MANY.to_owned());
    }
}

/// The operands that a target stands for: an address and its host.
fn operands_of(kind: TargetKind, role: TargetRole, value: &str, text: &str) -> impl Iterator<Item = Operand> {
    let role = match role {
        TargetRole::Named => Role::Named,
        TargetRole::To | TargetRole::Cc | TargetRole::Bcc => Role::SendTo,
        TargetRole::Read | TargetRole::Source => Role::Read,
        TargetRole::Write | TargetRole::Destination => Role::Write,
    };
    let is_url = kind == TargetKind::Host && value.contains("://");
    let host = if kind == TargetKind::Host { host_of(value) } else { None };
    let kind = match kind {
        TargetKind::Recipient => Some(Kind::Recipient),
        TargetKind::Path => Some(Kind::Path),
        TargetKind::Table => Some(Kind::Table),
        TargetKind::Account => Some(Kind::Account),
        TargetKind::Host => is_url.then_some(Kind::Url),
    };
    let whole = kind.map(|kind| Operand::new(kind, role, value.to_owned(), text));
    whole.into_iter().chain(host.map(|host| Operand::new(Kind::Host, role, host, text)))
}

/// Stands for the parts of a request beyond the maximum that is kept.
const TOO_MANY: &str = "split the command";

/// Maximum number of readings from clauses that probably ask for nothing.
pub(super) const MOST_DOUBTFUL: usize = 64;
/// Maximum number of command lines read from one text.
const MOST_COMMANDS: usize = 32;
/// Maximum number of acts of one request.
const MAX_ACTS: usize = 40;
