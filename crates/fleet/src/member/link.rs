//! The connection to the hubs: signed calls over HTTP, to another hub when one fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::MemberError;
use crate::wire::{self, MAX_ANSWER_BYTES, Refusal, SIGNATURE};

/// The connection to the hubs.
pub(super) struct Link {
    agent: Agent,
    hubs: Vec<String>,
    // The hub that answered last.
    current: AtomicUsize,
}

impl Link {
    pub(super) fn new(hubs: &[String], authorities: Option<&[u8]>) -> Result<Self, MemberError> {
        for hub in hubs {
            let host = hub.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
            let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
            let is_local = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
            if !hub.starts_with("https://") && !is_local {
                return Err(MemberError::Settings(format!(
                    "the hub {hub:?}: expected an https URL; http is for this machine only"
                )));
            }
        }
        let mut tls = TlsConfig::builder();
        if let Some(pem) = authorities {
            let certificates: Vec<Certificate<'static>> = parse_pem(pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                })
                .collect();
            if certificates.is_empty() {
                return Err(MemberError::Settings("the authorities: no certificate in PEM".to_owned()));
            }
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).tls_config(tls.build());
        Ok(Self { agent: config.build().into(), hubs: hubs.to_vec(), current: AtomicUsize::new(0) })
    }

    /// Makes a call at the hub that answered last.
    pub(super) fn call<A: DeserializeOwned>(
        &self,
        key: &CheckpointKey,
        path: &str,
        request: &impl Serialize,
        timeout: Duration,
    ) -> Result<A, MemberError> {
        let current = self.current.load(Ordering::Relaxed);
        let hub = self.hubs.get(current % self.hubs.len().max(1)).map(String::as_str).unwrap_or_default();
        let body = serde_json::to_string(request).map_err(|error| MemberError::Settings(error.to_string()))?;
        let unreachable = |why: String| {
            // The next call goes to the next hub, unless another thread has moved on already.
            let _ = self.current.compare_exchange(current, current + 1, Ordering::Relaxed, Ordering::Relaxed);
            MemberError::Unreachable(format!("{hub}: {why}"))
        };
        let config = self.agent.post(format!("{hub}{path}")).config().timeout_global(Some(timeout));
        // A proxy of the environment may see what TLS protects, nothing else.
        let config = if hub.starts_with("https://") { config } else { config.proxy(None) };
        let sent = config
            .build()
            .header("content-type", "application/json")
            .header(SIGNATURE, wire::sign(key, path, &body))
            .send(&body);
        let mut answer = sent.map_err(|error| unreachable(error.to_string()))?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES as u64).read_to_string();
        let text = text.map_err(|error| unreachable(error.to_string()))?;
        if status == 200 {
            return serde_json::from_str(&text)
                .map_err(|error| unreachable(format!("its answer cannot be read: {error}")));
        }
        let why =
            serde_json::from_str::<Refusal>(&text).map_or_else(|_| format!("status {status}"), |refusal| refusal.error);
        if status >= 500 { Err(unreachable(why)) } else { Err(MemberError::Refused(why)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_of_other_machines_are_spoken_to_over_tls_only() {
        let hub = |url: &str| Link::new(&[url.to_owned()], None).is_ok();
        for good in ["https://fleet.example.com", "http://127.0.0.1:7443", "http://localhost", "http://[::1]:7443"] {
            assert!(hub(good), "{good}");
        }
        for bad in [
            "http://fleet.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com:80",
            "",
            "ftp://localhost",
        ] {
            assert!(!hub(bad), "{bad}");
        }
    }
}
