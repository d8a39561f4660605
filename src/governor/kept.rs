//! What is kept as evidence of what was asked, for how long at the least, and
//! what is masked of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Governor;
use super::decide::Stored;
use crate::model::{Digest, Error, Intent, IntentId, InvalidValue, ProofId, Timestamp};
use crate::parse::{Concealer, conceal_text, has_secrets};
use crate::proof::KeptInput;

/// How the text of a request is kept in the evidence of the decision on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputText {
    /// As it was, but for secrets.
    Whole,
    /// Its digest, salted with the evidence's salt: it shows that a text which somebody has was the one.
    Digest,
    /// Not at all; what the parser read in it stands in the intent.
    #[default]
    No,
}

impl std::str::FromStr for InputText {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "whole" => Ok(Self::Whole),
            "digest" => Ok(Self::Digest),
            "no" => Ok(Self::No),
            _ => Err(InvalidValue::new("way to keep the text", word, "whole, digest or no")),
        }
    }
}

/// Texts that were parsed, until the intents made of them are decided on.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    how: InputText,
    // Held to add, look up or drop a text.
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// By the intent; ids are in the order of their time.
    texts: BTreeMap<IntentId, Arc<str>>,
    bytes: usize,
    /// SHA-256 of each text as it was handed in, whether it is kept or not: an approval is for one text.
    digests: BTreeMap<IntentId, Digest>,
}

impl Inputs {
    pub(super) fn kept_as(how: InputText) -> Self {
        Self { how, recent: Mutex::default() }
    }

    /// Remembers the text of an intent for when it is decided on, and for when what was approved of it is taken up.
    pub(super) fn remember(&self, id: IntentId, text: &str) {
        let digest = Digest::new(Sha256::digest(text).into());
        // Nothing is in memory in clear for longer than it takes to decide.
        let kept = match self.how {
            InputText::No => None,
            InputText::Whole | InputText::Digest => Some(conceal_text(text).map_or_else(|| text.into(), Into::into)),
        };
        let mut recent = self.lock();
        recent.digests.insert(id, digest);
        if recent.digests.len() > MOST_DIGESTS {
            recent.digests.pop_first();
        }
        if let Some(text) = kept {
            recent.keep(id, text);
        }
    }

    /// SHA-256 of the text that an intent was parsed from, where that was not long ago.
    pub(super) fn digest_of(&self, intent: &Intent) -> Option<Digest> {
        self.lock().digests.get(&intent.id?).copied()
    }

    fn of(&self, intent: &Intent) -> Option<Arc<str>> {
        if self.how == InputText::No {
            return None;
        }
        self.lock().texts.get(&intent.id?).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn keep(&mut self, id: IntentId, text: Arc<str>) {
        self.bytes += text.len();
        if let Some(before) = self.texts.insert(id, text) {
            self.bytes -= before.len();
        }
        while self.texts.len() > MOST_TEXTS || self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.texts.pop_first() else { break };
            self.bytes -= oldest.len();
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

impl Governor {
    /// Whether the decision was asked for by this text; `None` where no text is kept. Of a text with secrets it is
    /// what is left when they are masked.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::evidence`].
    pub fn was_asked(&self, proof_id: &ProofId, text: &str) -> Result<Option<bool>, Error> {
        let evidence = self.evidence(proof_id)?;
        let masked = conceal_text(text);
        Ok(evidence.has_input(masked.as_deref().unwrap_or(text)))
    }

    /// What is kept of an intent.
    pub(super) fn kept(&self, intent: &Intent) -> Result<KeptIntent, Error> {
        let mut concealer = Concealer::default();
        let text = self.inner.inputs.of(intent);
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
            (InputText::Whole, Some(text)) => Some(KeptInput::Text(text.to_string())),
            (InputText::Digest, Some(text)) => Some(KeptInput::ToDigest(text.to_string())),
            _ => None,
        };
        Ok(KeptIntent { masked, count, input, concealer })
    }
}

/// What is remembered of texts at the most.
const MOST_TEXTS: usize = 4096;
const MOST_BYTES: usize = 4 << 20;
/// How many texts are told apart at the most; some 100 bytes each.
const MOST_DIGESTS: usize = 16_384;
