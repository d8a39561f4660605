//! The secrets and addresses of all endpoints, as they are kept beside the journal: never in
//! it, for it is exported and cannot forget. An address is often a secret itself.

use rulekeep::extension::Extension;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::endpoint::EndpointRecord;
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::extension::WebhookId;
use rulekeep::signature::Secret;
use rulekeep::system::Timestamp;

/// What the journal says of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SecretPrint {
    /// The first 8 bytes of its SHA-256, in hex: tells secrets apart, and not what they are.
    #[schema(pattern = "^[0-9a-f]{16}$")]
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

/// What is kept of an endpoint.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) url: String,
    pub(super) secrets: Vec<Secret>,
}

/// The same as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Written {
    url: String,
    secrets: Vec<String>,
}

/// The secrets as the file has them.
#[derive(Default)]
pub(super) struct Secrets {
    of: BTreeMap<WebhookId, Kept>,
    /// Whether the file is what stands in `of`. Where it is not, the file is not written over.
    is_read: bool,
}

impl Secrets {
    /// Reads the file, if that was not done, failed or gave nothing: somebody may have put it right meanwhile.
    pub(super) fn ready(&mut self, governor: &Governor) -> Result<(), Error> {
        if !self.is_read || self.of.is_empty() {
            self.is_read = false;
            self.of = Self::read(governor)?;
            self.is_read = true;
        }
        Ok(())
    }

    fn read(governor: &Governor) -> Result<BTreeMap<WebhookId, Kept>, Error> {
        let Some(content) = Extension::of(governor).secrets()? else { return Ok(BTreeMap::new()) };
        // What stands in it is in no message.
        let unreadable = || Error::storage(UNREADABLE);
        let written: BTreeMap<WebhookId, Written> = serde_json::from_slice(&content).map_err(|_| unreadable())?;
        let read = |Written { url, secrets }| {
            let secrets = secrets.iter().map(|text| Secret::from_text(text)).collect::<Result<_, _>>();
            Ok(Kept { url, secrets: secrets.map_err(|_| unreadable())? })
        };
        written.into_iter().map(|(id, written)| Ok((id, read(written)?))).collect()
    }

    /// Puts this in the place of what is kept of an endpoint, on disk; without, it is forgotten.
    pub(super) fn keep(&mut self, governor: &Governor, id: WebhookId, kept: Option<Kept>) -> Result<(), Error> {
        self.ready(governor)?;
        let before = self.of.remove(&id);
        self.of.extend(kept.map(|kept| (id, kept)));
        let shown =
            |kept: &Kept| Written { url: kept.url.clone(), secrets: kept.secrets.iter().map(Secret::reveal).collect() };
        let all: BTreeMap<_, Written> = self.of.iter().map(|(id, kept)| (id, shown(kept))).collect();
        let written = serde_json::to_vec(&all)
            .map_err(|error| Error::Internal { message: format!("secrets do not serialise: {error}") })
            .and_then(|content| Extension::of(governor).keep_secrets(&content));
        if written.is_err() {
            self.of.remove(&id);
            self.of.extend(before.map(|kept| (id, kept)));
        }
        written
    }

    /// The address of an endpoint, where it is here and the one that the journal means.
    pub(super) fn url(&self, record: &EndpointRecord) -> Option<&str> {
        let url = self.of.get(&record.id).map(|kept| kept.url.as_str());
        url.filter(|url| address_print(record.id, url) == record.address)
    }

    /// All that is kept of an endpoint.
    pub(super) fn kept(&self, id: WebhookId) -> Option<Kept> {
        self.of.get(&id).cloned()
    }

    /// All secrets of an endpoint that are here.
    pub(super) fn all(&self, id: WebhookId) -> Vec<Secret> {
        self.of.get(&id).map(|kept| kept.secrets.clone()).unwrap_or_default()
    }

    /// What an endpoint says whose address is not here.
    pub(super) fn missing_address(&self) -> &'static str {
        if self.is_read { "its address is not in SECRETS: readdress it" } else { UNREADABLE }
    }

    /// What an endpoint says whose secret is not here.
    pub(super) fn missing(&self) -> &'static str {
        if self.is_read { "its secret is not in SECRETS: rotate it" } else { UNREADABLE }
    }

    /// Those of an endpoint that the journal names and that are there.
    pub(super) fn live(&self, id: WebhookId, prints: &[SecretPrint]) -> Vec<LiveSecret> {
        let of = self.of.get(&id).map(|kept| kept.secrets.as_slice()).unwrap_or_default();
        let find = |print: &SecretPrint| of.iter().find(|secret| secret.print() == print.print);
        let live = |print: &SecretPrint| Some(LiveSecret { secret: find(print)?.clone(), until: print.until });
        prints.iter().filter_map(live).collect()
    }
}

/// What the journal says of an address: the first 8 bytes of a SHA-256 over the endpoint's id and it, in hex.
pub(super) fn address_print(id: WebhookId, url: &str) -> String {
    let digest = Sha256::new().chain_update(id.to_string()).chain_update(url).finalize();
    hex::encode(digest.get(..8).unwrap_or_default())
}

/// An address as it may be seen: what follows the host, where tokens stand, is left out.
pub(super) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = if matches!(path, "" | "/") { path } else { "/…" };
    format!("{scheme}://{host}{path}")
}

/// Nothing is written over it: what stands there may be all that there is of the secrets.
const UNREADABLE: &str = "SECRETS cannot be read: put it back from a copy, or take it away; then resume";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_host_is_seen_and_nothing_behind_it() {
        for (url, seen) in [
            ("https://a.example", "https://a.example"),
            ("https://a.example/", "https://a.example/"),
            ("https://a.example:8443/services/T0/B0/token", "https://a.example:8443/…"),
            ("https://a.example?key=token", "https://a.example/…"),
            ("https://a.example/?key=to/ken", "https://a.example/…"),
            ("token", "…"),
        ] {
            assert_eq!(masked(url), seen);
        }
    }
}
