//! Storage of request texts and intents as evidence: their form, their minimum lifetime, and the redaction of secrets.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::governor::intake::recent::Recent;
use crate::governor::{Hold as _, Log};
use crate::model::json::push_members;
use crate::model::{
    AgentId, Capability, Digest, Error, FACTS_KEY, Facts, Intent, IntentId, IntentStamp, InvalidValue, PARSED_KEYS,
    ParsedFacts, ProofId, RiskLevel, Timestamp,
};
use crate::parse::{Concealer, Redaction, has_secrets};
use crate::proof::KeptInput;

/// The form in which the evidence of a decision stores the request text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputText {
    /// The whole text with secrets redacted.
    Whole,
    /// A digest of the text, salted with the evidence's salt: it proves that a text somebody holds is the request's.
    Digest,
    /// The whole text with secrets redacted if the decision is ESCALATE; otherwise nothing (the default).
    #[default]
    Asked,
    /// The evidence stores no text. The intent contains what the parser found in the text.
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

/// Parsed texts, kept until their intents are decided on.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    how: InputText,
    marks: Marks,
    // Held to add, look up or remove a text.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Digests of the texts, whether the texts are kept or not.
    parsed: Recent<ParsedText>,
    kept: Recent<Kept>,
    bytes: usize,
}

/// The data kept of a parse.
#[derive(Debug)]
struct Kept {
    /// The text, if the setting may require it.
    text: Option<Arc<str>>,
    /// The result that binds an intent with this id.
    bound: Arc<Bound>,
}

impl Kept {
    fn bytes(&self) -> usize {
        let facts = |facts: &Option<Packed>| facts.as_ref().map_or(0, |facts| facts.0.len());
        let bound = self.bound.context.len() + facts(&self.bound.facts) + facts(&self.bound.shown);
        self.text.as_ref().map_or(0, |text| text.len()) + bound
    }
}

/// The result of a parse. An intent with its id is never evaluated as requiring or risking less.
#[derive(Debug)]
struct Bound {
    agent_id: AgentId,
    risk: RiskLevel,
    capabilities: Vec<Capability>,
    /// The facts, and the same without secrets if there are any. These and the context keys that the parser writes are
    /// JSON: dropping one text is faster than dropping a tree.
    facts: Option<Packed>,
    shown: Option<Packed>,
    context: Box<[u8]>,
    /// The mark of these keys and the facts.
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
            facts: intent.known.as_deref().map(Packed::of).transpose()?,
            shown: intent.known.as_ref().and_then(ParsedFacts::masked).map(Packed::of).transpose()?,
            context: context.into(),
            mark,
        })
    }

    /// Returns whether an intent contains at least this result; `mark` is that of its parser-written keys.
    fn is_in(&self, intent: &Intent, mark: u64) -> bool {
        intent.risk_level >= self.risk
            && mark == self.mark
            && self.capabilities.iter().all(|one| intent.required_capabilities.contains(one))
    }

    /// Adds to an intent the parts of this result that it lacks.
    fn put_into(&self, intent: &mut Intent) -> Result<(), Error> {
        let context: Map<String, Value> = serde_json::from_slice(&self.context)
            .map_err(|error| Error::internal("what was parsed cannot be read").caused_by(error))?;
        intent.risk_level = intent.risk_level.max(self.risk);
        let missing = self.capabilities.iter().filter(|one| !intent.required_capabilities.contains(one));
        let mut capabilities: Vec<Capability> = missing.cloned().collect();
        capabilities.append(&mut intent.required_capabilities);
        intent.required_capabilities = capabilities;
        intent.context.retain(|key, _| !PARSED_KEYS.contains(&key.as_str()));
        intent.context.extend(context);
        intent.known = match &self.facts {
            Some(facts) => {
                let shown = self.shown.as_ref().map(Packed::facts).transpose()?;
                Some(ParsedFacts::new(facts.facts()?, shown))
            }
            None => None,
        };
        Ok(())
    }
}

/// Facts as JSON. They may contain secrets, so that `Debug` shows their length alone.
struct Packed(Box<[u8]>);

impl Packed {
    fn of(facts: &Facts) -> serde_json::Result<Self> {
        let mut packed = Vec::with_capacity(1024);
        serde_json::to_writer(&mut packed, facts)?;
        Ok(Self(packed.into()))
    }

    fn facts(&self) -> Result<Facts, Error> {
        serde_json::from_slice(&self.0)
            .map_err(|error| Error::internal("the facts of a parse cannot be read").caused_by(error))
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Packed").field(&self.0.len()).finish()
    }
}

#[derive(Debug, Clone, Copy)]
struct ParsedText {
    /// SHA-256 of the unredacted text; an approval applies to one exact text.
    digest: Digest,
    /// The mark of the parsed intent. Ids come from callers, so an id on another intent must not give it this text.
    mark: u64,
}

impl Inputs {
    pub(crate) fn kept_as(how: InputText) -> Self {
        Self { how, marks: Marks::default(), known: Mutex::default() }
    }

    /// Remembers the text of an intent for its decision, and for claiming an approval of it.
    pub(crate) fn remember(&self, intent: &Intent, text: &str, redaction: &Redaction) -> Result<(), Error> {
        let Some(id) = intent.id else { return Ok(()) };
        let (mark, of_parsed) = self.marks.of(intent);
        let parsed = ParsedText { digest: Digest::of(text.as_bytes()), mark };
        // Only redacted text is kept in memory.
        let text = match self.how {
            InputText::No => None,
            InputText::Whole | InputText::Digest | InputText::Asked => {
                Some(redaction.redacted(text).map_or_else(|| text.into(), Into::into))
            }
        };
        let bound = Bound::of(intent, of_parsed)
            .map_err(|error| Error::internal("an intent cannot be serialized").caused_by(error))?;
        self.lock().keep(id, parsed, Kept { text, bound: Arc::new(bound) });
        Ok(())
    }

    /// SHA-256 of the text that an intent was parsed from, if that was recent.
    pub(crate) fn digest_of(&self, intent: &Intent) -> Option<Digest> {
        let parsed = self.lock().parsed.get(&intent.id?).copied()?;
        (parsed.mark == self.marks.of(intent).0).then_some(parsed.digest)
    }

    /// SHA-256 of the text that the intent with this id was parsed from, if that was recent.
    pub(crate) fn digest_of_id(&self, id: IntentId) -> Option<Digest> {
        self.lock().parsed.get(&id).map(|parsed| parsed.digest)
    }

    /// The intent to evaluate. An intent with the id of a parse is raised to at least the parse's result. Any other was
    /// built by its caller and loses the parser's facts.
    pub(crate) fn bound<'a>(&self, intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        match self.bound_of(&intent) {
            Some(bound) => self.bound_by(&bound, intent),
            None => Ok(without_facts(intent)),
        }
    }

    /// The intent without facts that no known parse vouches for: its decision was made without them.
    pub(crate) fn without_unknown_facts<'a>(&self, intent: &'a Intent) -> Cow<'a, Intent> {
        let intent = Cow::Borrowed(intent);
        if self.bound_of(&intent).is_some() { intent } else { without_facts(intent) }
    }

    /// Like [`Inputs::bound`], but refuses intents that their caller built.
    pub(crate) fn parsed<'a>(&self, intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        let Some(bound) = self.bound_of(&intent) else {
            let message = "this API key can enforce an input or an intent that was parsed recently for the agent, but \
                           no intent that its caller built; use a key with builtIntents";
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

    /// The result of the parse that an intent names by its id.
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
        self.known.hold()
    }
}

/// The intent with facts that say nothing, if it has facts that no known parse vouches for: it may act on anything.
fn without_facts(mut intent: Cow<'_, Intent>) -> Cow<'_, Intent> {
    if intent.known.is_some() || intent.context.contains_key(FACTS_KEY) {
        let intent = intent.to_mut();
        intent.known = Some(Facts::unknown(FACTS_KEY).into());
        intent.context.remove(FACTS_KEY);
    }
    intent
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

/// Recognizes whether an intent equals the one of a parse, even after serialization. The hash has a random key, so that
/// nobody can search for two intents with one mark.
#[derive(Debug, Default)]
struct Marks(RandomState);

impl Marks {
    /// The mark of an intent, and of what the parser found and wrote.
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
        parsed = parsed.wrapping_add(self.0.hash_one(intent.known.as_deref()));
        hasher.write_u64(parsed.wrapping_add(others));
        (hasher.finish(), parsed)
    }

    /// Independent of the order of members.
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
            Value::Number(_) => super::plain(value).hash(hasher),
            Value::String(text) => text.hash(hasher),
            Value::Array(items) => {
                hasher.write_usize(items.len());
                for item in items {
                    self.put(item, hasher);
                }
            }
            Value::Object(members) => hasher.write_u64(self.of_members(members)),
        }
    }
}

/// The minimum lifetime of evidence.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retention {
    millis: Option<i64>,
    pub(crate) until: Option<Timestamp>,
}

impl Retention {
    pub(crate) fn keep_for(&mut self, duration: Duration) {
        self.millis = Some(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
    }

    /// The end of the minimum lifetime for a record of this time.
    pub(crate) fn kept_until(self, time: Timestamp) -> Option<Timestamp> {
        let by_age = self.millis.map(|millis| Timestamp::from_millis(time.as_millis().saturating_add(millis)));
        by_age.max(self.until)
    }
}

/// The intent and text to store as evidence of a decision.
pub(crate) struct KeptIntent {
    /// The redacted intent, if any part of it is redacted.
    pub(crate) masked: Option<Value>,
    /// Number of redacted texts in it.
    pub(crate) count: u64,
    pub(crate) input: Option<KeptInput>,
    concealer: Concealer,
}

/// An intent as stored in the evidence of a record.
pub(crate) struct Stored {
    pub(crate) intent: Value,
    /// Number of redacted texts in it.
    pub(crate) masked: u64,
}

impl Stored {
    /// The evidence of an earlier record, for reuse.
    pub(crate) fn kept(&self) -> KeptIntent {
        let (masked, count) = (Some(self.intent.clone()), self.masked);
        KeptIntent { masked, count, input: None, concealer: Concealer::default() }
    }
}

impl KeptIntent {
    /// A text that repeats parts of the intent, with the same secrets redacted.
    pub(crate) fn masked_in(&self, text: &str) -> String {
        if self.count == 0 { text.to_owned() } else { self.concealer.text(text).unwrap_or_else(|| text.to_owned()) }
    }
}

impl Log<'_> {
    /// Returns whether this text was the request of the decision; `None` if no text is stored. Secrets in `text` are
    /// redacted before the comparison.
    ///
    /// # Errors
    ///
    /// The errors of [`Log::evidence`](crate::handle::Log::evidence).
    pub fn matches_input(self, proof_id: &ProofId, text: &str) -> Result<Option<bool>, Error> {
        let evidence = self.governor.log().evidence(proof_id)?;
        let inner = &self.governor.inner;
        let masked = inner.intake.parser.redaction(text, &inner.intake.tools.load()).redacted(text);
        Ok(evidence.has_input(masked.as_deref().unwrap_or(text)))
    }
}

impl Inputs {
    /// The evidence to store for an intent; `is_asked` says whether it is escalated.
    pub(crate) fn kept(&self, intent: &Intent, stamp: IntentStamp, is_asked: bool) -> Result<KeptIntent, Error> {
        let mut concealer = Concealer::default();
        let text = self.of(intent, is_asked);
        let mut masked = None;
        if has_secrets(intent) {
            let mut stamped = intent.clone();
            (stamped.id, stamped.timestamp) = (stamp.id, stamp.timestamp);
            let mut value =
                serde_json::to_value(stamped).map_err(|_| Error::internal("the intent cannot be serialized"))?;
            if let Some(context) = value.get_mut("context") {
                concealer.conceal(context);
            }
            masked = Some(value);
        }
        let count = concealer.count();
        let text = text.map(|text| concealer.text(&text).map_or(text, Into::into));
        let input = match (self.how, text) {
            (InputText::Whole | InputText::Asked, Some(text)) => Some(KeptInput::Text(text.to_string())),
            (InputText::Digest, Some(text)) => Some(KeptInput::ToDigest(text.to_string())),
            _ => None,
        };
        Ok(KeptIntent { masked, count, input, concealer })
    }
}

/// Maximum number of parses kept in memory.
const MOST_PARSED: usize = 16_384;
/// Maximum size of the texts and results kept, in bytes.
const MOST_BYTES: usize = 16 << 20;
