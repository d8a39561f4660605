//! The secrets and URLs of all endpoints, stored beside the journal: never in it, because it is exported and
//! append-only. A URL often is a secret itself.

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

/// The public description of a signing secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SecretPrint {
    /// The fingerprint: the first 8 bytes of the secret's SHA-256, in hex. It identifies the secret without revealing
    /// it.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    pub print: String,
    /// The time until which the secret signs; absent for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A secret, and the time until which it signs.
pub(super) struct LiveSecret {
    pub(super) secret: Secret,
    pub(super) until: Option<Timestamp>,
}

/// The stored data of an endpoint.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) url: String,
    pub(super) secrets: Vec<Secret>,
    /// The key of the approval links.
    pub(super) link: Option<Secret>,
}

/// The form in which it is written to the file.
#[derive(Serialize, Deserialize)]
struct Written {
    url: String,
    secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

/// The secrets in the file.
#[derive(Default)]
pub(super) struct Secrets {
    of: BTreeMap<WebhookId, Kept>,
    /// Set if `of` is the file's content. Otherwise the file is not overwritten.
    is_read: bool,
}

impl Secrets {
    /// Reads the file if that has not succeeded yet or gave nothing, because somebody may have repaired it meanwhile.
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
        // The file's content must not appear in any message.
        let unreadable = || Error::storage(UNREADABLE);
        let written: BTreeMap<WebhookId, Written> = serde_json::from_slice(&content).map_err(|_| unreadable())?;
        let read = |Written { url, secrets, link }| {
            let secrets = secrets.iter().map(|text| Secret::from_text(text)).collect::<Result<_, _>>();
            let link = link.map(|text| Secret::from_text(&text)).transpose().map_err(|_| unreadable())?;
            Ok(Kept { url, secrets: secrets.map_err(|_| unreadable())?, link })
        };
        written.into_iter().map(|(id, written)| Ok((id, read(written)?))).collect()
    }

    /// Replaces the stored data of an endpoint on disk, or removes it if `kept` is `None`.
    pub(super) fn keep(&mut self, governor: &Governor, id: WebhookId, kept: Option<Kept>) -> Result<(), Error> {
        self.ready(governor)?;
        let before = self.of.remove(&id);
        self.of.extend(kept.map(|kept| (id, kept)));
        let shown = |kept: &Kept| Written {
            url: kept.url.clone(),
            secrets: kept.secrets.iter().map(Secret::reveal).collect(),
            link: kept.link.as_ref().map(Secret::reveal),
        };
        let all: BTreeMap<_, Written> = self.of.iter().map(|(id, kept)| (id, shown(kept))).collect();
        let written = serde_json::to_vec(&all)
            .map_err(|error| Error::internal("secrets cannot be serialized").caused_by(error))
            .and_then(|content| Extension::of(governor).keep_secrets(&content));
        if written.is_err() {
            self.of.remove(&id);
            self.of.extend(before.map(|kept| (id, kept)));
        }
        written
    }

    /// The URL of an endpoint, if it is present and matches the fingerprint in the journal.
    pub(super) fn url(&self, record: &EndpointRecord) -> Option<&str> {
        let url = self.of.get(&record.id).map(|kept| kept.url.as_str());
        url.filter(|url| address_print(record.id, url) == record.address)
    }

    /// All stored data of an endpoint.
    pub(super) fn kept(&self, id: WebhookId) -> Option<Kept> {
        self.of.get(&id).cloned()
    }

    /// All stored secrets of an endpoint.
    pub(super) fn all(&self, id: WebhookId) -> Vec<Secret> {
        self.of.get(&id).map(|kept| kept.secrets.clone()).unwrap_or_default()
    }

    /// The failure of an endpoint whose URL is missing.
    pub(super) fn missing_address(&self) -> &'static str {
        if self.is_read { "its URL is not in SECRETS: set it again with webhook/readdress" } else { UNREADABLE }
    }

    /// The failure of an endpoint whose secret is missing.
    pub(super) fn missing(&self) -> &'static str {
        if self.is_read { "its secret is not in SECRETS: rotate it" } else { UNREADABLE }
    }

    /// The secrets of an endpoint that the journal names and that are present.
    pub(super) fn live(&self, id: WebhookId, prints: &[SecretPrint]) -> Vec<LiveSecret> {
        let of = self.of.get(&id).map(|kept| kept.secrets.as_slice()).unwrap_or_default();
        let find = |print: &SecretPrint| of.iter().find(|secret| secret.print() == print.print);
        let live = |print: &SecretPrint| Some(LiveSecret { secret: find(print)?.clone(), until: print.until });
        prints.iter().filter_map(live).collect()
    }
}

/// The fingerprint of a URL in the journal: the first 8 bytes of SHA-256 over the endpoint's id and the URL, in hex.
pub(super) fn address_print(id: WebhookId, url: &str) -> String {
    let digest = Sha256::new().chain_update(id.to_string()).chain_update(url).finalize();
    hex::encode(digest.get(..8).unwrap_or_default())
}

/// The URL without the part after the host, which often contains tokens.
pub(super) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = if matches!(path, "" | "/") { path } else { "/…" };
    format!("{scheme}://{host}{path}")
}

/// The message if the file cannot be read. It is not overwritten then, because it may hold the only copy of the
/// secrets.
const UNREADABLE: &str = "SECRETS cannot be read: restore it from a copy, or remove it; then resume the endpoint";

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
