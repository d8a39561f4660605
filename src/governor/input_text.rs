//! What is kept as evidence of what was asked, for how long at the least, and
//! what is masked of it.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Governor;
use super::decide::Stored;
use super::log::Log;
use super::recent::Recent;
use crate::model::json::push_members;
use crate::model::{
    AgentId, Capability, Digest, Error, FACTS_KEY, Intent, IntentId, IntentStamp, InvalidValue, PARSED_KEYS, ProofId,
    RiskLevel, Timestamp,
};
use crate::parse::{Concealer, Redaction, has_secrets};
use crate::proof::KeptInput;

/// How the text of a request is kept in the evidence of the decision on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputText {
    /// As it was, but for secrets.
    Whole,
    /// Its digest, salted with the evidence's salt: it shows that a text which somebody has was the one.
    Digest,
    /// As it was, but for secrets, where a person is asked; otherwise not at all.
    #[default]
    Asked,
    /// Not at all; what the parser read in it stands in the intent.
    No,
}

impl std::str::FromStr for InputText {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "whole" => Ok(Self::Whole),
            "digest" => Ok(Self::Digest),
            "asked" => Ok(Self::Asked),
            "no" => Ok(Self::No),
            _ => Err(InvalidValue::new("way to keep the text", word, "whole, digest, asked or no")),
        }
    }
}

/// Texts that were parsed, until the intents made of them are decided on.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    how: InputText,
    marks: Marks,
    // Held to add, look up or drop a text.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What is known of each text, whether it is kept or not.
    parsed: Recent<ParsedText>,
    kept: Recent<Kept>,
    bytes: usize,
}

/// What is kept of a parse.
#[derive(Debug)]
struct Kept {
    /// The text, where it may be asked for.
    text: Option<Arc<str>>,
    /// By which an intent with its id is bound.
    bound: Arc<Bound>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len()) + self.bound.context.len()
    }
}

/// What a parse said: an intent that has its id is never decided on as less.
#[derive(Debug)]
struct Bound {
    agent_id: AgentId,
    risk: RiskLevel,
    capabilities: Vec<Capability>,
    /// The members of the context that the parser writes, as JSON: one text is taken away faster than a tree.
    context: Box<[u8]>,
    /// Of these members.
    mark: u64,
}

impl Bound {
    fn of(intent: &Intent, mark: u64) -> serde_json::Result<Self> {
        let mut context = Vec::new();
        let written = PARSED_KEYS.iter().filter_map(|key| Some((*key, intent.context.get(*key)?)));
        push_members(&mut context, written)?;
        Ok(Self {
            agent_id: intent.agent_id.clone(),
            risk: intent.risk_level,
            capabilities: intent.required_capabilities.clone(),
            context: context.into(),
            mark,
        })
    }

    /// Whether an intent says at least all of it; `mark` is that of its members that the parser writes.
    fn is_in(&self, intent: &Intent, mark: u64) -> bool {
        intent.risk_level >= self.risk
            && mark == self.mark
            && self.capabilities.iter().all(|one| intent.required_capabilities.contains(one))
    }

    /// Puts into an intent what it lacks of it.
    fn put_into(&self, intent: &mut Intent) -> Result<(), Error> {
        let context: Map<String, Value> = serde_json::from_slice(&self.context)
            .map_err(|error| Error::Internal { message: format!("what was parsed cannot be read: {error}") })?;
        intent.risk_level = intent.risk_level.max(self.risk);
        let missing = self.capabilities.iter().filter(|one| !intent.required_capabilities.contains(one));
        let mut capabilities: Vec<Capability> = missing.cloned().collect();
        capabilities.append(&mut intent.required_capabilities);
        intent.required_capabilities = capabilities;
        intent.context.retain(|key, _| !PARSED_KEYS.contains(&key.as_str()));
        intent.context.extend(context);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
struct ParsedText {
    /// SHA-256 of the text as it was handed in: an approval is for one text.
    digest: Digest,
    /// Of the intent that came of it. Ids are the caller's word: one that is put on another intent gives it no text.
    mark: u64,
}

impl Inputs {
    pub(super) fn kept_as(how: InputText) -> Self {
        Self { how, marks: Marks::default(), known: Mutex::default() }
    }

    /// Remembers the text of an intent for when it is decided on, and for when what was approved of it is taken up.
    pub(super) fn remember(&self, intent: &Intent, text: &str, redaction: &Redaction) -> Result<(), Error> {
        let Some(id) = intent.id else { return Ok(()) };
        let (mark, of_parsed) = self.marks.of(intent);
        let parsed = ParsedText { digest: Digest::new(Sha256::digest(text).into()), mark };
        // Nothing is in memory in clear for longer than it takes to decide.
        let text = match self.how {
            InputText::No => None,
            InputText::Whole | InputText::Digest | InputText::Asked => {
                Some(redaction.redacted(text).map_or_else(|| text.into(), Into::into))
            }
        };
        let bound = Bound::of(intent, of_parsed)
            .map_err(|error| Error::Internal { message: format!("an intent does not serialise: {error}") })?;
        self.lock().keep(id, parsed, Kept { text, bound: Arc::new(bound) });
        Ok(())
    }

    /// SHA-256 of the text that an intent was parsed from, where that was not long ago.
    pub(super) fn digest_of(&self, intent: &Intent) -> Option<Digest> {
        let parsed = self.lock().parsed.get(&intent.id?).copied()?;
        (parsed.mark == self.marks.of(intent).0).then_some(parsed.digest)
    }

    /// The intent that counts: one with the id of a parse says at least what that said; any other is built by its
    /// caller, who cannot say what the parser found.
    pub(super) fn bound<'a>(&self, mut intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        match self.bound_of(&intent) {
            Some(bound) => return self.bound_by(&bound, intent),
            None if intent.context.contains_key(FACTS_KEY) => {
                intent.to_mut().context.remove(FACTS_KEY);
            }
            None => {}
        }
        Ok(intent)
    }

    /// The same for a caller whose word alone makes no intent.
    pub(super) fn parsed<'a>(&self, intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        let Some(bound) = self.bound_of(&intent) else {
            let message = "this API key enforces an input, or an intent that was parsed for the agent lately, and none \
                           that its caller built; a key with builtIntents does";
            return Err(Error::Forbidden { message: message.to_owned() });
        };
        self.bound_by(&bound, intent)
    }

    fn bound_by<'a>(&self, bound: &Bound, mut intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        if !bound.is_in(&intent, self.marks.of(&intent).1) {
            bound.put_into(intent.to_mut())?;
        }
        Ok(intent)
    }

    /// What the parse said whose id an intent has.
    fn bound_of(&self, intent: &Intent) -> Option<Arc<Bound>> {
        let known = Arc::clone(&self.lock().kept.get(&intent.id?)?.bound);
        (known.agent_id == intent.agent_id).then_some(known)
    }

    fn of(&self, intent: &Intent, is_asked: bool) -> Option<Arc<str>> {
        if self.how == InputText::No || self.how == InputText::Asked && !is_asked {
            return None;
        }
        self.digest_of(intent)?;
        self.lock().kept.get(&intent.id?)?.text.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn keep(&mut self, id: IntentId, parsed: ParsedText, kept: Kept) {
        self.parsed.insert(id, parsed);
        if self.parsed.len() > MOST_PARSED {
            self.parsed.pop_oldest();
        }
        self.bytes += kept.bytes();
        let before = self.kept.insert(id, kept);
        self.bytes -= before.map_or(0, |before| before.bytes());
        while self.kept.len() > MOST_PARSED || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_oldest() else { break };
            self.bytes -= oldest.bytes();
        }
    }
}

/// Tells whether an intent is the one that came of a parse, whatever was written and read of it since. Keyed at random, for
/// those who could look for two with one mark do not see any.
#[derive(Debug, Default)]
struct Marks(RandomState);

impl Marks {
    /// Of an intent, and of the members of its context that the parser writes.
    fn of(&self, intent: &Intent) -> (u64, u64) {
        let mut hasher = self.0.build_hasher();
        intent.agent_id.as_str().hash(&mut hasher);
        intent.parsed_action.as_str().hash(&mut hasher);
        intent.risk_level.hash(&mut hasher);
        for capability in &intent.required_capabilities {
            capability.as_str().hash(&mut hasher);
        }
        let (mut parsed, mut others) = (0_u64, 0_u64);
        for (name, value) in &intent.context {
            let sum = if PARSED_KEYS.contains(&name.as_str()) { &mut parsed } else { &mut others };
            *sum = sum.wrapping_add(self.of_member(name, value));
        }
        hasher.write_u64(parsed.wrapping_add(others));
        (hasher.finish(), parsed)
    }

    /// In whatever order they stand.
    fn of_members(&self, members: &Map<String, Value>) -> u64 {
        members.iter().map(|(name, value)| self.of_member(name, value)).fold(0, u64::wrapping_add)
    }

    fn of_member(&self, name: &str, value: &Value) -> u64 {
        let mut hasher = self.0.build_hasher();
        name.hash(&mut hasher);
        self.put(value, &mut hasher);
        hasher.finish()
    }

    fn put(&self, value: &Value, hasher: &mut impl Hasher) {
        std::mem::discriminant(value).hash(hasher);
        match value {
            Value::Null => {}
            Value::Bool(value) => value.hash(hasher),
            // 80.0 is 80, for a client in another language sends back the other.
            Value::Number(_) => super::escalations::plain(value).hash(hasher),
            Value::String(text) => text.hash(hasher),
            Value::Array(items) => {
                hasher.write_usize(items.len());
                items.iter().for_each(|item| self.put(item, hasher));
            }
            Value::Object(members) => hasher.write_u64(self.of_members(members)),
        }
    }
}

/// Until when evidence must be kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retention {
    millis: Option<i64>,
    pub(super) until: Option<Timestamp>,
}

impl Retention {
    pub(super) fn keep_for(&mut self, duration: Duration) {
        self.millis = Some(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
    }

    /// Until when that of a record of a time must be kept.
    pub(super) fn kept_until(self, time: Timestamp) -> Option<Timestamp> {
        let by_age = self.millis.map(|millis| Timestamp::from_millis(time.as_millis().saturating_add(millis)));
        by_age.max(self.until)
    }
}

/// What goes into the evidence of a decision.
pub(super) struct KeptIntent {
    /// The intent, where something of it is masked.
    pub(super) masked: Option<Value>,
    /// How many texts are masked in it.
    pub(super) count: u64,
    pub(super) input: Option<KeptInput>,
    concealer: Concealer,
}

impl Stored {
    /// The same again.
    pub(super) fn kept(&self) -> KeptIntent {
        let (masked, count) = (Some(self.intent.clone()), self.masked);
        KeptIntent { masked, count, input: None, concealer: Concealer::default() }
    }
}

impl KeptIntent {
    /// A text that repeats parts of the intent, with its secrets masked.
    pub(super) fn masked_in(&self, text: &str) -> String {
        if self.count == 0 { text.to_owned() } else { self.concealer.text(text).unwrap_or_else(|| text.to_owned()) }
    }
}

impl Log<'_> {
    /// Whether the decision was asked for by this text; `None` where no text is kept. Of a text with secrets it is
    /// what is left when they are masked.
    ///
    /// # Errors
    ///
    /// Those of [`Log::evidence`](crate::handle::Log::evidence).
    pub fn matches_input(self, proof_id: &ProofId, text: &str) -> Result<Option<bool>, Error> {
        let evidence = self.governor.log().evidence(proof_id)?;
        let inner = &self.governor.inner;
        let masked = inner.parser.redaction(text, &inner.tools.load()).redacted(text);
        Ok(evidence.has_input(masked.as_deref().unwrap_or(text)))
    }
}

impl Governor {
    /// What is kept of an intent; `is_asked` says whether a person decides.
    pub(super) fn kept(&self, intent: &Intent, stamp: IntentStamp, is_asked: bool) -> Result<KeptIntent, Error> {
        let mut concealer = Concealer::default();
        let text = self.inner.inputs.of(intent, is_asked);
        let mut masked = None;
        if has_secrets(&intent.context) {
            let stamped = Intent { id: stamp.id, timestamp: stamp.timestamp, ..intent.clone() };
            let mut value = serde_json::to_value(stamped)
                .map_err(|_| Error::Internal { message: "the intent does not serialize".to_owned() })?;
            if let Some(context) = value.get_mut("context") {
                concealer.conceal(context);
            }
            masked = Some(value);
        }
        let count = concealer.count();
        let text = text.map(|text| concealer.text(&text).map_or(text, Into::into));
        let input = match (self.inner.inputs.how, text) {
            (InputText::Whole | InputText::Asked, Some(text)) => Some(KeptInput::Text(text.to_string())),
            (InputText::Digest, Some(text)) => Some(KeptInput::ToDigest(text.to_string())),
            _ => None,
        };
        Ok(KeptIntent { masked, count, input, concealer })
    }
}

/// How many texts are told apart, and how many intents are bound to their parse, at the most.
const MOST_PARSED: usize = 16_384;
/// What is kept of parses at the most: their texts, and what they said.
const MOST_BYTES: usize = 8 << 20;
