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
}

impl Secrets {
    /// Reads the file. One that cannot be read is an error: it must not be put anew over the old one.
    pub(super) fn read(governor: &Governor) -> Result<Self, Error> {
        let Some(content) = governor.kept_secrets()? else { return Ok(Self::default()) };
        // What stands in it is in no message.
        let unreadable = || Error::storage("SECRETS cannot be read: put it back from a copy, or take it away");
        let texts: BTreeMap<WebhookId, Vec<String>> = serde_json::from_slice(&content).map_err(|_| unreadable())?;
        let read = |texts: &Vec<String>| texts.iter().map(|text| Secret::from_text(text)).collect::<Result<_, _>>();
        let of = texts.iter().map(|(id, texts)| Ok((*id, read(texts).map_err(|_| unreadable())?)));
        Ok(Self { of: of.collect::<Result<_, Error>>()? })
    }

    /// Puts these in the place of an endpoint's secrets, on disk; without any it is forgotten.
    pub(super) fn keep(&mut self, governor: &Governor, id: WebhookId, secrets: Vec<Secret>) -> Result<(), Error> {
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

    /// Those of an endpoint that the journal names and that are there.
    pub(super) fn live(&self, id: WebhookId, prints: &[SecretPrint]) -> Vec<LiveSecret> {
        let of = self.of.get(&id).map(Vec::as_slice).unwrap_or_default();
        let find = |print: &SecretPrint| of.iter().find(|secret| secret.print() == print.print);
        let live = |print: &SecretPrint| Some(LiveSecret { secret: find(print)?.clone(), until: print.until });
        prints.iter().filter_map(live).collect()
    }
}
