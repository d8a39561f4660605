//! The secrets of all endpoints, as they are kept beside the journal: never in
//! it, for it is exported and cannot forget.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edge::signature::Secret;
use crate::governor::Governor;
use crate::model::{Error, Timestamp, WebhookId};

/// What the journal says of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SecretPrint {
    /// The first 8 bytes of its SHA-256, in hex: tells secrets apart, and not what they are.
    pub print: String,
    /// Until when it signs; none for the one that is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A secret and how long it signs.
pub(super) struct LiveSecret {
    pub(super) secret: Secret,
    pub(super) until: Option<Timestamp>,
}

/// The secrets as the file has them.
#[derive(Default)]
pub(super) struct Secrets {
    of: BTreeMap<WebhookId, Vec<Secret>>,
    /// Whether the file is what stands in `of`. Where it is not, the file is not written over.
    is_read: bool,
}

impl Secrets {
    /// Reads the file, if that was not done or failed: somebody may have put it right meanwhile.
    pub(super) fn ready(&mut self, governor: &Governor) -> Result<(), Error> {
        if !self.is_read {
            self.of = Self::read(governor)?;
            self.is_read = true;
        }
        Ok(())
    }

    fn read(governor: &Governor) -> Result<BTreeMap<WebhookId, Vec<Secret>>, Error> {
        let Some(content) = governor.kept_secrets()? else { return Ok(BTreeMap::new()) };
        // What stands in it is in no message.
        let unreadable = || Error::storage(UNREADABLE);
        let texts: BTreeMap<WebhookId, Vec<String>> = serde_json::from_slice(&content).map_err(|_| unreadable())?;
        let read = |texts: &Vec<String>| texts.iter().map(|text| Secret::from_text(text)).collect::<Result<_, _>>();
        let of = texts.iter().map(|(id, texts)| Ok((*id, read(texts).map_err(|_| unreadable())?)));
        of.collect()
    }

    /// Puts these in the place of an endpoint's secrets, on disk; without any it is forgotten.
    pub(super) fn keep(&mut self, governor: &Governor, id: WebhookId, secrets: Vec<Secret>) -> Result<(), Error> {
        self.ready(governor)?;
        let before = self.of.remove(&id);
        if !secrets.is_empty() {
            self.of.insert(id, secrets);
        }
        let texts: BTreeMap<_, Vec<String>> =
            self.of.iter().map(|(id, secrets)| (id, secrets.iter().map(Secret::reveal).collect())).collect();
        let written = serde_json::to_vec(&texts)
            .map_err(|error| Error::Internal { message: format!("secrets do not serialise: {error}") })
            .and_then(|content| governor.keep_secrets(&content));
        if written.is_err() {
            self.of.remove(&id);
            self.of.extend(before.map(|secrets| (id, secrets)));
        }
        written
    }

    /// What an endpoint says whose secret is not here.
    pub(super) fn missing(&self) -> &'static str {
        if self.is_read { "its secret is not in SECRETS: rotate it" } else { UNREADABLE }
    }

    /// Those of an endpoint that the journal names and that are there.
    pub(super) fn live(&self, id: WebhookId, prints: &[SecretPrint]) -> Vec<LiveSecret> {
        let of = self.of.get(&id).map(Vec::as_slice).unwrap_or_default();
        let find = |print: &SecretPrint| of.iter().find(|secret| secret.print() == print.print);
        let live = |print: &SecretPrint| Some(LiveSecret { secret: find(print)?.clone(), until: print.until });
        prints.iter().filter_map(live).collect()
    }
}

/// Nothing is written over it: what stands there may be all that there is of the secrets.
const UNREADABLE: &str = "SECRETS cannot be read: put it back from a copy, or take it away; then resume";
