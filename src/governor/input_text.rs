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
use crate::model::{
    AgentId, Capability, Digest, Error, FACTS_KEY, Intent, IntentId, InvalidValue, PARSED_KEYS, ProofId, RiskLevel,
    Timestamp, most_json_size,
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
    texts: Recent<Arc<str>>,
    bytes: usize,
    /// What is known of each text, whether it is kept or not.
    parsed: Recent<ParsedText>,
    /// What each parse said, by which an intent with its id is bound.
    bounds: Recent<Arc<Bound>>,
    bound_bytes: usize,
}

/// What a parse said: an intent that has its id is never decided on as less.
#[derive(Debug)]
struct Bound {
    agent_id: AgentId,
    risk: RiskLevel,
    capabilities: Vec<Capability>,
    /// The keys of the context that the parser writes, as they stood after the parse.
    context: Vec<(&'static str, Option<Value>)>,
    bytes: usize,
}

impl Bound {
    fn of(intent: &Intent) -> Self {
        let context: Vec<_> = PARSED_KEYS.iter().map(|key| (*key, intent.context.get(*key).cloned())).collect();
        let bytes = context.iter().filter_map(|(_, value)| value.as_ref()).map(most_json_size).sum();
        Self {
            agent_id: intent.agent_id.clone(),
            risk: intent.risk_level,
            capabilities: intent.required_capabilities.clone(),
            context,
            bytes,
        }
    }

    /// Whether an intent says at least all of it.
    fn is_in(&self, intent: &Intent) -> bool {
        intent.risk_level >= self.risk
            && self.capabilities.iter().all(|one| intent.required_capabilities.contains(one))
            && self.context.iter().all(|(key, value)| intent.context.get(*key) == value.as_ref())
    }

    /// Puts into an intent what it lacks of it.
    fn put_into(&self, intent: &mut Intent) {
        intent.risk_level = intent.risk_level.max(self.risk);
        let missing = self.capabilities.iter().filter(|one| !intent.required_capabilities.contains(one));
        let mut capabilities: Vec<Capability> = missing.cloned().collect();
        capabilities.append(&mut intent.required_capabilities);
        intent.required_capabilities = capabilities;
        for (key, value) in &self.context {
            match value {
                Some(value) => intent.context.insert((*key).to_owned(), value.clone()),
                None => intent.context.remove(*key),
            };
        }
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
    pub(super) fn remember(&self, intent: &Intent, text: &str, redaction: &Redaction) {
        let Some(id) = intent.id else { return };
        let parsed = ParsedText { digest: Digest::new(Sha256::digest(text).into()), mark: self.marks.of(intent) };
        // Nothing is in memory in clear for longer than it takes to decide.
        let kept = match self.how {
            InputText::No => None,
            InputText::Whole | InputText::Digest | InputText::Asked => {
                Some(redaction.redacted(text).map_or_else(|| text.into(), Into::into))
            }
        };
        let bound = Arc::new(Bound::of(intent));
        let mut known = self.lock();
        known.bind(id, bound);
        known.parsed.insert(id, parsed);
        if known.parsed.len() > MOST_PARSED {
            known.parsed.pop_oldest();
        }
        if let Some(text) = kept {
            known.keep(id, text);
        }
    }

    /// SHA-256 of the text that an intent was parsed from, where that was not long ago.
    pub(super) fn digest_of(&self, intent: &Intent) -> Option<Digest> {
        let parsed = self.lock().parsed.get(&intent.id?).copied()?;
        (parsed.mark == self.marks.of(intent)).then_some(parsed.digest)
    }

    /// The intent that counts: one with the id of a parse says at least what that said; any other is built by its
    /// caller, who cannot say what the parser found.
    pub(super) fn bound<'a>(&self, intent: Cow<'a, Intent>) -> Cow<'a, Intent> {
        match self.bound_of(&intent) {
            Some(bound) if bound.is_in(&intent) => intent,
            Some(bound) => {
                let mut intent = intent.into_owned();
                bound.put_into(&mut intent);
                Cow::Owned(intent)
            }
            None if intent.context.contains_key(FACTS_KEY) => {
                let mut intent = intent.into_owned();
                intent.context.remove(FACTS_KEY);
                Cow::Owned(intent)
            }
            None => intent,
        }
    }

    /// The same for a caller whose word alone makes no intent.
    pub(super) fn parsed<'a>(&self, mut intent: Cow<'a, Intent>) -> Result<Cow<'a, Intent>, Error> {
        let Some(bound) = self.bound_of(&intent) else {
            let message = "this API key enforces an input, or an intent that was parsed for the agent lately, and none \
                           that its caller built; a key with builtIntents does";
            return Err(Error::Forbidden { message: message.to_owned() });
        };
        if !bound.is_in(&intent) {
            bound.put_into(intent.to_mut());
        }
        Ok(intent)
    }

    /// What the parse said whose id an intent has.
    fn bound_of(&self, intent: &Intent) -> Option<Arc<Bound>> {
        let known = self.lock().bounds.get(&intent.id?).cloned()?;
        (known.agent_id == intent.agent_id).then_some(known)
    }

    fn of(&self, intent: &Intent, is_asked: bool) -> Option<Arc<str>> {
        if self.how == InputText::No || self.how == InputText::Asked && !is_asked {
            return None;
        }
        self.digest_of(intent)?;
        self.lock().texts.get(&intent.id?).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn bind(&mut self, id: IntentId, bound: Arc<Bound>) {
        self.bound_bytes += bound.bytes;
        if let Some(before) = self.bounds.insert(id, bound) {
            self.bound_bytes -= before.bytes;
        }
        while self.bounds.len() > MOST_PARSED || self.bound_bytes > MOST_BYTES {
            let Some(oldest) = self.bounds.pop_oldest() else { break };
            self.bound_bytes -= oldest.bytes;
        }
    }

    fn keep(&mut self, id: IntentId, text: Arc<str>) {
        self.bytes += text.len();
        if let Some(before) = self.texts.insert(id, text) {
            self.bytes -= before.len();
        }
        while self.texts.len() > MOST_TEXTS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.texts.pop_oldest() else { break };
            self.bytes -= oldest.len();
        }
    }
}

/// Tells whether an intent is the one that came of a parse, whatever was written and read of it since. Keyed at random, for
/// those who could look for two with one mark do not see any.
#[derive(Debug, Default)]
struct Marks(RandomState);

impl Marks {
    fn of(&self, intent: &Intent) -> u64 {
        let mut hasher = self.0.build_hasher();
        intent.agent_id.as_str().hash(&mut hasher);
        intent.parsed_action.as_str().hash(&mut hasher);
        intent.risk_level.hash(&mut hasher);
        for capability in &intent.required_capabilities {
            capability.as_str().hash(&mut hasher);
        }
        hasher.write_u64(self.of_members(&intent.context));
        hasher.finish()
    }

    /// In whatever order they stand.
    fn of_members(&self, members: &Map<String, Value>) -> u64 {
        let of_member = |(name, value): (&String, &Value)| self.0.hash_one((name, self.of_value(value)));
        members.iter().map(of_member).fold(0, u64::wrapping_add)
    }

    fn of_value(&self, value: &Value) -> u64 {
        let mut hasher = self.0.build_hasher();
        std::mem::discriminant(value).hash(&mut hasher);
        match value {
            Value::Null => {}
            Value::Bool(value) => value.hash(&mut hasher),
            // 80.0 is 80, for a client in another language sends back the other.
            Value::Number(_) => super::escalations::plain(value).hash(&mut hasher),
            Value::String(text) => text.hash(&mut hasher),
            Value::Array(items) => items.iter().for_each(|item| hasher.write_u64(self.of_value(item))),
            Value::Object(members) => hasher.write_u64(self.of_members(members)),
        }
        hasher.finish()
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
    pub(super) fn kept(&self, intent: &Intent, is_asked: bool) -> Result<KeptIntent, Error> {
        let mut concealer = Concealer::default();
        let text = self.inner.inputs.of(intent, is_asked);
        let mut masked = None;
        if has_secrets(&intent.context) {
            let mut value = serde_json::to_value(intent)
                .map_err(|_| Error::Internal { message: "the intent does not serialise".to_owned() })?;
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

/// What is remembered of texts at the most.
const MOST_TEXTS: usize = 4096;
const MOST_BYTES: usize = 4 << 20;
/// How many texts are told apart, and how many intents are bound to their parse, at the most; some 100 bytes each.
const MOST_PARSED: usize = 16_384;
