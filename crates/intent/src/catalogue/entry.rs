//! The state of one tool: its current and accepted definitions, and an operator's ruling.

use rulekeep_types::parts::ToolClassificationParts;
use std::sync::Arc;

use crate::conceal_text;
use crate::format::Tool;
use crate::learned::relevance::ToolText;
use crate::lexicon::Lexicon;
use crate::reading::{Act, Facts, Format, Reading};
use crate::risk;
use crate::sign::{Sign, Signs};
use crate::verdict::Verdict;
use rulekeep_types::{Capability, Digest, Error, Operation, RiskLevel, ToolClassification, ToolEvidence, ToolOverride};

use super::classify::{self, Read};
use super::load::{self, Definition};
use super::resemble;
use super::ruling::ToolRuling;

/// A tool in the catalogue.
#[derive(Debug)]
pub(super) struct Entry {
    name: Box<str>,
    server: Option<Box<str>>,
    /// The definition that was loaded last.
    current: Arc<Read>,
    /// The definition that was loaded first, or that was current when an operator pinned or overrode the tool.
    accepted: Arc<Read>,
    pinned: bool,
    set: Option<ToolOverride>,
    tool: Arc<Tool>,
    classification: ToolClassification,
}

impl Entry {
    /// Creates a tool from its definition and the ruling of an earlier run.
    pub(super) fn new(definition: &Definition<'_>, ruling: Option<ToolRuling>, lexicon: &Lexicon) -> Self {
        let current = Arc::new(classify::read(definition, lexicon));
        let (accepted, pinned, set) = match ruling {
            None => (Arc::clone(&current), false, None),
            Some(ruling) if ruling.digest == current.digest => (Arc::clone(&current), ruling.pinned, ruling.set),
            Some(ruling) => (Arc::new(Read::accepted(&ruling, current.source)), ruling.pinned, ruling.set),
        };
        Self::of(definition.name.into(), definition.server.map(Into::into), current, accepted, pinned, set)
    }

    /// Creates a tool of which only the ruling is known.
    pub(super) fn of_ruling(ruling: ToolRuling) -> Self {
        let read = Arc::new(Read::accepted(&ruling, "list"));
        Self::of(ruling.name, ruling.server, Arc::clone(&read), read, ruling.pinned, ruling.set)
    }

    /// The operator's ruling, if there is one.
    pub(super) fn ruling(&self) -> Option<ToolRuling> {
        if !self.pinned && self.set.is_none() {
            return None;
        }
        let at_worst = reading_of(self.accepted.at_worst());
        let verdict = Verdict::of(&at_worst);
        Some(ToolRuling {
            name: self.name.clone(),
            server: self.server.clone(),
            digest: self.accepted.digest,
            shape: self.accepted.shape,
            pinned: self.pinned,
            capabilities: verdict.capabilities,
            risk_level: verdict.risk,
            set: self.set.clone(),
        })
    }

    /// The tool in the form for comparisons, if an operator pinned or overrode it.
    pub(super) fn as_accepted(&self) -> Option<resemble::Known<'_>> {
        let known = resemble::Known { name: &self.name, server: self.server(), shape: self.accepted.shape };
        (self.pinned || self.set.is_some()).then_some(known)
    }

    /// The same tool with another definition.
    pub(super) fn redefined(&self, definition: &Definition<'_>, lexicon: &Lexicon) -> Self {
        let current = Arc::new(classify::read(definition, lexicon));
        let accepted = Arc::clone(&self.accepted);
        Self::of(self.name.clone(), self.server.clone(), current, accepted, self.pinned, self.set.clone())
    }

    /// The tool with an operator's override on its current definition.
    pub(super) fn overridden(&self, given: &ToolOverride) -> Result<Self, Error> {
        let mut given = given.clone();
        if given.reason.trim().is_empty() {
            return Err(Error::input("reason", "is blank; expected why the classification is overridden"));
        }
        if given.reason.chars().count() > LONGEST_REASON {
            return Err(Error::input("reason", format!("expected at most {LONGEST_REASON} characters")));
        }
        // The reason is recorded, so its secrets are redacted.
        given.reason = conceal_text(&given.reason).unwrap_or(given.reason);
        given.server = None;
        if given.risk.is_none() && given.capabilities.is_empty() {
            // Accepted, an empty override would silently undo an earlier one.
            let message = "no level and no capabilities are given; expected one of them, or a pin";
            return Err(Error::input("risk", message));
        }
        let is_foreign = |capability: &&Capability| capability.resource().is_none() || capability.operation().is_none();
        if let Some(foreign) = given.capabilities.iter().find(is_foreign) {
            let message = format!("{} is not in the built-in vocabulary", load::shown(foreign.as_str()));
            return Err(Error::input("capabilities", message));
        }
        let current = Arc::clone(&self.current);
        Ok(Self::of(self.name.clone(), self.server.clone(), Arc::clone(&current), current, self.pinned, Some(given)))
    }

    /// The tool with its current definition pinned or unpinned.
    pub(super) fn pinned(&self, is_pinned: bool) -> Self {
        let current = Arc::clone(&self.current);
        Self::of(self.name.clone(), self.server.clone(), Arc::clone(&current), current, is_pinned, self.set.clone())
    }

    fn of(
        name: Box<str>,
        server: Option<Box<str>>,
        current: Arc<Read>,
        accepted: Arc<Read>,
        pinned: bool,
        set: Option<ToolOverride>,
    ) -> Self {
        let changed = current.digest != accepted.digest;
        let is_held = pinned || set.is_some();
        let (mut acts, mut at_worst) = match &set {
            Some(set) => (as_set(&accepted.acts, set), as_set(&accepted.at_worst(), set)),
            None if is_held || !changed => (accepted.acts.clone(), accepted.at_worst()),
            // Nobody vouches for either definition, so both count.
            None => (joined(&current.acts, &accepted.acts), joined(&current.at_worst(), &accepted.at_worst())),
        };
        if changed {
            let level = |acts: &[Act]| acts.iter().map(|act| risk::assess(act, &Facts::default()).level).max();
            // An operator vouched for a definition that has changed since, so nobody knows what a call does.
            let least = if is_held { level(&current.acts).max(Some(RiskLevel::High)) } else { None };
            for act in &mut acts {
                act.signs.add(Sign::ToolChanged);
                act.risk = act.risk.max(least);
                act.is_set = false;
            }
            if !is_held {
                for act in &mut at_worst {
                    act.signs.add(Sign::ToolChanged);
                }
            }
        }
        let shown = if is_held { &accepted } else { &current };
        let classification = classification(&name, server.as_deref(), shown, at_worst, (pinned, changed), set.as_ref());
        let through = if set.is_some() && !changed { None } else { current.through };
        let tool = Tool { acts, through, known: current.known, trials: current.trials.clone() };
        Self { name, server, current, accepted, pinned, set, tool: Arc::new(tool), classification }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    pub(super) fn is_of(&self, digest: Digest) -> bool {
        self.current.digest == digest
    }

    pub(super) fn is_changed(&self) -> bool {
        self.current.digest != self.accepted.digest
    }

    pub(super) fn tool(&self) -> Arc<Tool> {
        Arc::clone(&self.tool)
    }

    /// The texts for relevance: the name, the description and the arguments.
    pub(super) fn text(&self) -> ToolText<'_> {
        let [description, parameters] = &self.current.words;
        ToolText { name: &self.name, description, parameters }
    }

    /// Returns whether the schema lists a value for an argument.
    pub(super) fn offers(&self, argument: &str, value: &str) -> bool {
        let choices = self.current.choices.iter().filter(|(name, _)| **name == *argument);
        choices.flat_map(|(_, choices)| choices).any(|choice| **choice == *value)
    }

    /// Returns whether the tool only reads: its name clearly says so, or all of its capabilities do.
    pub(super) fn is_read(&self) -> bool {
        let looks = |capability: &Capability| capability.operation() == Some(Operation::Read);
        let is_doubted = self.set.is_some() || self.is_changed() || self.is_poisoned();
        self.classification.capabilities.iter().all(looks) || !is_doubted && self.current.reads_by_name
    }

    /// Returns whether the definition addresses the agent instead of describing the tool.
    pub(super) fn is_poisoned(&self) -> bool {
        self.current.acts.iter().any(|act| act.signs.has(Sign::PoisonedTool))
    }

    pub(super) const fn classification(&self) -> &ToolClassification {
        &self.classification
    }

    /// Every form of the name that a call may use.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        let name = &self.name;
        let mut names = vec![name.clone()];
        if let Some(server) = &self.server {
            names.extend(
                [
                    format!("mcp__{server}__{name}"),
                    format!("{server}__{name}"),
                    format!("{server}.{name}"),
                    format!("{server}/{name}"),
                    format!("{server}:{name}"),
                ]
                .map(Into::into),
            );
        }
        names
    }
}

/// The acts as determined by an operator.
fn as_set(acts: &[Act], set: &ToolOverride) -> Vec<Act> {
    let mut acts: Vec<Act> = if set.capabilities.is_empty() {
        acts.to_vec()
    } else {
        let first = acts.first().cloned().unwrap_or_else(Act::unknown);
        let named = set.capabilities.iter().filter_map(|capability| {
            let (resource, operation) = (capability.resource()?, capability.operation()?);
            // The original name would describe what the tool was mistaken for.
            let same = first.resource == resource && first.operation == operation;
            let act = if same { first.clone() } else { Act::of_capability(capability) };
            Some(Act { found: first.found.clone(), risk: None, signs: Signs::default(), ..act })
        });
        named.collect()
    };
    for act in &mut acts {
        act.sure = act.sure.max(0.95);
        if let Some(level) = set.risk {
            act.risk = Some(level);
            // Instructions in the definition stay visible, although they no longer raise the risk.
            let kept = [Sign::PoisonedTool, Sign::Contradiction].into_iter().filter(|sign| act.signs.has(*sign));
            act.signs = kept.fold(Signs::default(), |mut signs, sign| {
                signs.add(sign);
                signs
            });
            act.is_set = true;
        }
        act.signs.add(Sign::OperatorSet);
    }
    acts
}

fn joined(one: &[Act], other: &[Act]) -> Vec<Act> {
    reading_of(one.iter().chain(other).cloned()).acts
}

fn reading_of(acts: impl IntoIterator<Item = Act>) -> Reading {
    let mut reading = Reading::new(Format::ToolCall);
    acts.into_iter().for_each(|act| reading.push(act));
    reading
}

fn classification(
    name: &str,
    server: Option<&str>,
    read: &Read,
    at_worst: Vec<Act>,
    (pinned, changed): (bool, bool),
    set: Option<&ToolOverride>,
) -> ToolClassification {
    let reading = reading_of(at_worst);
    let verdict = Verdict::of(&reading);
    let mut because = read.because.clone();
    if let Some(set) = set {
        let capabilities: Vec<&str> = set.capabilities.iter().map(Capability::as_str).collect();
        let risk = set.risk.map(|risk| format!("at {risk}"));
        let parts = [Some(capabilities.join(", ")).filter(|named| !named.is_empty()), risk];
        let given: Vec<String> = parts.into_iter().flatten().collect();
        because.push(ToolEvidence::new("override", set.reason.as_str(), given.join(" ")));
    }
    ToolClassification::from(ToolClassificationParts {
        name: name.to_owned(),
        server: server.map(str::to_owned),
        source: read.source,
        action: verdict.action.clone(),
        capabilities: verdict.capabilities.clone(),
        risk_level: verdict.risk,
        risk_factors: verdict.factors.iter().map(|factor| factor.clone().into_owned()).collect(),
        confidence: if set.is_some() { 1.0 } else { (read.confidence * 100.0).round() / 100.0 },
        because,
        digest: read.digest,
        pinned,
        overridden: set.map(|set| set.reason.clone()),
        changed,
    })
}

/// Maximum length of an override's reason, in characters.
const LONGEST_REASON: usize = 4096;
