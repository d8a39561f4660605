//! Turns a reading into the answer: the sorted acts, the risk of each, the action, the capabilities and the intent's
//! context.

use std::borrow::Cow;

use rulekeep_types::parts::{FactsParts, IntentParts};
use serde_json::{Map, Value};

use rulekeep_types::facts::{self, Cause, Doing, Kinds, MOST_OPEN, MOST_OPERANDS, Open, Operand};
use rulekeep_types::{
    ActEvidence, Action, AgentId, Capability, Classification, FACTS_KEY, Facts, Intent, IntentId, MAX_FACTS_BYTES,
    Operation, ParseResult, ParsedFacts, Resource, RiskLevel, Timestamp, Unread, UnreadKind, risk_floor,
};

use super::lexicon::Lexicon;
use super::place::Place;
use super::reading::{self, Act, Format, Reading};
use super::sign::{Sign, Signs};
use super::{Redaction, classification, confidence, explain, format, risk};

/// A text to parse, and the other data of the intent.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct ParseRequest<'a> {
    pub agent_id: &'a AgentId,
    pub input: &'a str,
    pub context: &'a Map<String, Value>,
    pub id: IntentId,
    pub at: Timestamp,
}

/// A sorted and assessed reading.
pub(super) struct Verdict<'r> {
    primary: &'r Act,
    /// Every act with its risk and the facts of its reading, the decisive one first.
    ranked: Vec<(RiskLevel, &'r Act, &'r reading::Facts)>,
    pub(super) capabilities: Vec<Capability>,
    pub(super) action: Action,
    pub(super) risk: RiskLevel,
    pub(super) factors: Vec<Cow<'static, str>>,
}

impl<'r> Verdict<'r> {
    pub(super) fn of(reading: &'r Reading) -> Self {
        static UNKNOWN: std::sync::LazyLock<Act> = std::sync::LazyLock::new(Act::unknown);
        let mut causes = Signs::default();
        let mut ranked: Vec<(RiskLevel, &Act)> = reading
            .acts
            .iter()
            .map(|act| {
                let assessment = risk::assess(act, &reading.facts);
                causes = causes.with(assessment.causes);
                (assessment.level, act)
            })
            .collect();
        // A stable sort: of equal acts, the one asked for first stays first.
        ranked.sort_by_key(|&(level, act)| std::cmp::Reverse(precedence(level, act)));
        let assessed = ranked.iter().map(|&(level, _)| level).max().unwrap_or(RiskLevel::Medium);
        let primary = ranked.first().map_or(&*UNKNOWN, |&(_, act)| act);
        let mut capabilities: Vec<Capability> = Vec::with_capacity(ranked.len());
        for &(_, act) in &ranked {
            let capability = act.capability();
            if !capabilities.contains(&capability) {
                capabilities.push(capability);
            }
        }
        if capabilities.is_empty() {
            capabilities.push(Capability::unknown());
        }
        let action = if primary.is_unknown() { Action::unknown() } else { confidence::action_name(primary) };
        let hides = |part: &Unread| matches!(part.kind, UnreadKind::Target | UnreadKind::Argument);
        let is_unread = reading.format == Format::ToolCall && reading.facts.unread.iter().any(hides);
        let unread = if is_unread { RiskLevel::Medium } else { RiskLevel::Low };
        let risk = assessed.max(floor(&action, &capabilities, reading)).max(unread);
        let mut factors = vec![Cow::Borrowed(risk::cell_text(primary.operation, primary.resource))];
        factors.extend(causes.iter().map(|sign| Cow::Borrowed(sign.text())));
        factors.extend(
            reading.facts.unread.iter().map(|part| Cow::Owned(format!("unread {}: {}", part.kind, part.found))),
        );
        let ranked = ranked.into_iter().map(|(level, act)| (level, act, &reading.facts)).collect();
        Self { primary, ranked, capabilities, action, risk, factors }
    }

    /// Combines the verdicts on two readings when either may be meant: the action whose name implies more, the higher
    /// risk, and the capabilities of both. Decisions are never below what the action's name implies, so the result is
    /// at least as strict as each reading alone.
    pub(super) fn or(self, other: Self, lexicon: &Lexicon) -> Self {
        let weight = |verdict: &Self| (verdict.implied(lexicon), verdict.risk);
        let (mut worse, other) = if weight(&other) > weight(&self) { (other, self) } else { (self, other) };
        worse.risk = worse.risk.max(other.risk);
        worse.ranked.extend(other.ranked);
        let capabilities = other.capabilities.into_iter().filter(|one| !worse.capabilities.contains(one));
        worse.capabilities.extend(capabilities.collect::<Vec<_>>());
        let factors = other.factors.into_iter().filter(|one| !worse.factors.contains(one));
        worse.factors.extend(factors.collect::<Vec<_>>());
        worse
    }

    /// The risk floor that the action and the capabilities imply by name.
    fn implied(&self, lexicon: &Lexicon) -> RiskLevel {
        risk_floor(&self.action, &self.capabilities).max(format::name_floor(&self.action, lexicon))
    }

    pub(super) fn evidence(&self) -> Vec<ActEvidence> {
        self.ranked.iter().map(|&(_, act, facts)| explain::of(act, facts)).collect()
    }

    /// Other plausible meanings of the uncertain acts, compared with the best one. Every act is considered, so that a
    /// certain act does not settle an uncertain one beside it.
    fn plausible(&self, doubtful: &[(Resource, Operation, f64)]) -> Vec<Capability> {
        let mut plausible: Vec<(Capability, f64)> = Vec::new();
        let unsure = self.ranked.iter().map(|&(_, act, _)| act).filter(|act| act.learned.is_some() && act.sure < SURE);
        let others = unsure.flat_map(|act| act.others.iter().filter(|(.., likely)| *likely >= PLAUSIBLE * act.sure));
        for &(resource, operation, likely) in others.chain(doubtful) {
            let reading = Capability::new(resource, operation);
            if !self.capabilities.contains(&reading) && plausible.iter().all(|(known, _)| *known != reading) {
                plausible.push((reading, likely));
            }
        }
        plausible.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        plausible.truncate(MOST_PLAUSIBLE);
        plausible.into_iter().map(|(reading, _)| reading).collect()
    }

    pub(super) fn into_result(
        self,
        request: &ParseRequest<'_>,
        reading: &Reading,
        redaction: &Redaction,
    ) -> ParseResult {
        let confidence = confidence::of(self.primary, reading);
        let alternatives = confidence::alternatives(self.primary, reading, confidence);
        let mut context = request.context.clone();
        let mut add = |key: &str, value: Value| {
            context.entry(key).or_insert(value);
        };
        let classification = classification::of(&reading.acts, reading.facts.signs)
            .max(reading.facts.contents.unwrap_or(Classification::Public));
        add("dataClassification", classification.as_str().into());
        add("operation", self.primary.operation.as_str().into());
        add("resource", self.primary.resource.as_str().into());
        if let Some(target) = reading.facts.targets.first() {
            add("target", target.original.as_ref().unwrap_or(&target.value).as_str().into());
        }
        if let Some(count) = reading.facts.count {
            add("recordCount", count.into());
        }
        if let Some((amount, currency)) = reading.facts.total() {
            add("amount", amount.into());
            if let Some(currency) = currency {
                add("currency", currency.into());
            }
        }
        add("parseConfidence", confidence.into());
        add("riskFactors", self.factors.iter().map(|factor| Value::from(&**factor)).collect());
        add("inputFormat", reading.format.as_str().into());
        // A caller's own value is not used.
        context.remove(FACTS_KEY);
        let mut known = facts(&self, reading, request);
        let shown = shown(&mut known, redaction);
        let intent = Intent::from(IntentParts {
            id: Some(request.id),
            agent_id: request.agent_id.clone(),
            parsed_action: self.action,
            risk_level: self.risk,
            required_capabilities: self.capabilities,
            context,
            timestamp: Some(request.at),
            known: Some(ParsedFacts::new(known, shown)),
        });
        ParseResult::new(intent, confidence, alternatives)
    }
}

/// The facts of a reading, within their limits.
fn facts(verdict: &Verdict<'_>, reading: &Reading, request: &ParseRequest<'_>) -> Facts {
    let found = &reading.facts;
    let inner = found.inner_formats.iter().filter(|inner| **inner != reading.format);
    let mut room =
        Room { bytes: MAX_FACTS_BYTES.saturating_sub(ROOM_FOR_OTHERS), operands: MOST_OPERANDS, open: MOST_OPEN };
    let doings: Vec<_> = verdict
        .ranked
        .iter()
        .map(|(level, act, _)| (act.steps, doing(act, *level), act.signs.has(Sign::Leaves)))
        .collect();
    let mut acts = Vec::with_capacity(reading.steps.len().max(1));
    for (number, step) in reading.steps.iter().enumerate() {
        let mut act = step.clone();
        for (_, doing, leaves) in doings.iter().filter(|(steps, ..)| steps.is_empty() || steps.has(number)) {
            act.leaves |= leaves;
            if !act.does.contains(doing) {
                act.does.push(doing.clone());
            }
        }
        if act.does.is_empty() && act.operands.is_empty() && act.open.is_empty() && act.commands.is_empty() {
            continue;
        }
        room.fit(&mut act);
        acts.push(act);
    }
    if acts.is_empty() {
        let mut act = facts::Act::new();
        act.leaves = doings.iter().any(|(.., leaves)| *leaves);
        act.does = doings.into_iter().map(|(_, doing, _)| doing).collect();
        acts.push(act);
    }
    let Place { base, home, .. } = Place::of(request.context);
    Facts::from(FactsParts {
        acts,
        base,
        form: facts::Form,
        formats: std::iter::once(&reading.format).chain(inner).map(|format| format.as_str().to_owned()).collect(),
        home,
        readings: verdict.plausible(&found.doubtful),
        rows: found.table.as_ref().and_then(|(_, rows)| rows.as_deref().map(str::to_owned)),
        table: found.table.as_ref().map(|(table, _)| (**table).to_owned()),
    })
}

fn doing(act: &Act, level: RiskLevel) -> Doing {
    let action = if act.is_unknown() { Action::unknown() } else { confidence::action_name(act) };
    Doing::new(action, act.capability(), level)
}

/// The room that is left for the facts of further acts.
struct Room {
    bytes: usize,
    operands: usize,
    open: usize,
}

impl Room {
    /// Takes from an act what there is no room for, and leaves it open then.
    fn fit(&mut self, act: &mut facts::Act) {
        let commands = act.commands.iter().chain(&act.command).map(|command| json_len(command) + 3).sum::<usize>();
        let mut is_cut = commands > self.bytes;
        if is_cut {
            act.commands.clear();
            act.command = None;
        } else {
            self.bytes -= commands;
        }
        let size = |operand: &Operand| {
            let others = operand.original.iter().chain(&operand.real).map(|text| json_len(text) + 2).sum::<usize>();
            ROOM_FOR_ONE + json_len(&operand.value) + others
        };
        let kept = act.operands.iter().take(self.operands).take_while(|operand| {
            let fits = size(operand) <= self.bytes;
            self.bytes = self.bytes.saturating_sub(size(operand));
            fits
        });
        let kept = kept.count();
        is_cut |= kept < act.operands.len();
        act.operands.truncate(kept);
        self.operands -= kept;
        is_cut |= act.open.len() > self.open || act.amounts.len() > MOST_AMOUNTS;
        act.open.truncate(self.open);
        act.amounts.truncate(MOST_AMOUNTS);
        self.open -= act.open.len();
        if is_cut {
            act.open.pop();
            act.open.push(Open::new(Cause::Text, Kinds::ALL, BEYOND.to_owned()));
        }
    }
}

/// The facts as they may be stored and shown; `None` if nothing in them is secret.
fn shown(facts: &mut Facts, redaction: &Redaction) -> Option<Facts> {
    let texts = facts.acts.iter_mut().flat_map(texts_of).enumerate();
    let masked: Vec<_> = texts.filter_map(|(place, text)| Some((place, redaction.concealed(text)?))).collect();
    if masked.is_empty() {
        return None;
    }
    let mut shown = facts.clone();
    let mut masked = masked.into_iter().peekable();
    for (place, text) in shown.acts.iter_mut().flat_map(texts_of).enumerate() {
        if let Some((_, hidden)) = masked.next_if(|(next, _)| *next == place) {
            *text = hidden;
        }
    }
    Some(shown)
}

/// All texts of an act that come from the request.
fn texts_of(act: &mut facts::Act) -> impl Iterator<Item = &mut String> {
    let operands = act.operands.iter_mut();
    let operands = operands
        .flat_map(|operand| std::iter::once(&mut operand.value).chain(&mut operand.original).chain(&mut operand.real));
    let open = act.open.iter_mut().map(|open| &mut open.found);
    let currencies = act.amounts.iter_mut().filter_map(|amount| amount.currency.as_mut());
    let commands = act.commands.iter_mut().chain(&mut act.command);
    operands.chain(open).chain(commands).chain(&mut act.server).chain(&mut act.tool).chain(currencies)
}

/// The confidence below which an act's other meanings count.
const SURE: f64 = 0.6;
/// The probability, relative to the best reading, from which another reading is plausible.
const PLAUSIBLE: f64 = 0.4;
/// Maximum number of alternative readings that are decided.
const MOST_PLAUSIBLE: usize = 16;

/// The maximum number of bytes that a text takes in JSON, without quotes.
fn json_len(text: &str) -> usize {
    text.bytes().map(|byte| if byte < 0x20 { 6 } else { 1 + usize::from(matches!(byte, b'"' | b'\\')) }).sum()
}

/// Bytes of an operand in addition to its texts, and of all facts in addition to the operands and commands.
const ROOM_FOR_ONE: usize = 80;
const ROOM_FOR_OTHERS: usize = 4 * 1024;
/// Maximum number of amounts of an act.
const MOST_AMOUNTS: usize = 32;
/// Replaces the parts for which there was no room.
const BEYOND: &str = "split the request";

/// Sorting key of acts: changes before the reads that feed them, then higher risk, then wider reach.
fn precedence(level: RiskLevel, act: &Act) -> (bool, bool, RiskLevel, u8) {
    let changes = !matches!(act.operation, Operation::Read);
    let reach = match act.operation {
        Operation::Transfer => 6,
        Operation::Admin => 5,
        Operation::Delete => 4,
        Operation::Send | Operation::Execute => 3,
        Operation::Write => 2,
        Operation::Read => match act.resource {
            Resource::Credential => 1,
            _ => 0,
        },
        Operation::Unknown => 0,
    };
    (changes, !act.is_entailed, level, reach)
}

/// The rubric's risk floor of the parsed request. By its rulings a trial run is below it.
fn floor(action: &Action, capabilities: &[Capability], reading: &Reading) -> RiskLevel {
    let is_public = reading
        .acts
        .iter()
        .all(|act| act.risk.is_some() || act.signs.has(Sign::DryRun) || act.signs.has(Sign::PublicPart));
    if is_public { RiskLevel::Low } else { risk_floor(action, capabilities) }
}
