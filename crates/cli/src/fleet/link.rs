//! Calls of a hub.

use std::path::PathBuf;
use std::time::Duration;

use rulekeep::proof::Digest;
use rulekeep_fleet::order::{Chain, SignedOrder};
use rulekeep_fleet::wire::Refusal;
use serde::de::DeserializeOwned;
use ureq::http::{Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use crate::operate::Failed;

/// The hub to call.
#[derive(clap::Args)]
pub(super) struct Hub {
    /// The URL of a hub (default: `RULEKEEP_FLEET_HUB`)
    #[arg(long = "hub", value_name = "URL")]
    url: Option<String>,
    /// Certificates, in PEM, that the hub's certificate may be signed by (default: public ones)
    #[arg(long = "hub-ca", value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// The file with the hub's token for readers (default: the token in `RULEKEEP_FLEET_TOKEN`)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The hub to call, and the first order that is trusted.
#[derive(clap::Args)]
pub(super) struct Trusted {
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The digest that `rulekeep fleet found` printed (default: `RULEKEEP_FLEET_ANCHOR`)
    #[arg(long, value_name = "DIGEST")]
    trust_anchor: Option<Digest>,
}

impl Hub {
    /// Makes a reading call with these parameters.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Failed> {
        let token = self.token()?.ok_or_else(|| Failed::usage(&format!("reading needs --token-file or {TOKEN}")))?;
        let query = query.iter().map(|(name, value)| (*name, value.as_str()));
        let request = self.agent()?.get(self.url(path)?).query_pairs(query);
        self.answer(path, request.header("authorization", token).call())
    }

    /// Makes a call with a body. A hub takes long ones with the token alone.
    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &str) -> Result<T, Failed> {
        let mut request = self.agent()?.post(self.url(path)?).header("content-type", "application/json");
        if let Some(token) = self.token()? {
            request = request.header("authorization", token);
        }
        self.answer(path, request.send(body))
    }

    /// The value of the header with the token.
    fn token(&self) -> Result<Option<String>, Failed> {
        let token = self.token_file.as_ref().map(read).transpose()?.or_else(|| set(TOKEN));
        Ok(token.map(|token| format!("Bearer {}", token.trim())))
    }

    fn agent(&self) -> Result<Agent, Failed> {
        let mut tls = TlsConfig::builder();
        if let Some(file) = &self.authorities {
            let pem = read(file)?;
            let certificates = parse_pem(pem.as_bytes()).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates.collect::<Vec<_>>()));
        }
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).timeout_global(Some(TIMEOUT));
        // A proxy of the environment may see what TLS protects, nothing else.
        let config = if self.url("")?.starts_with("https:") { config } else { config.proxy(None) };
        Ok(config.tls_config(tls.build()).build().new_agent())
    }

    fn url(&self, path: &str) -> Result<String, Failed> {
        let hub = self.url.clone().or_else(|| set(HUB));
        let hub = hub.ok_or_else(|| Failed::usage(&format!("this needs the URL of a hub: --hub or {HUB}")))?;
        let uri: Uri = hub.parse().map_err(|error| format!("{hub}: {error}"))?;
        let is_local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if uri.scheme_str() != Some("https") && !is_local {
            return Err(Failed::usage(&format!("{hub}: expected an https URL; http is for this machine only")));
        }
        Ok(format!("{}{path}", hub.trim_end_matches('/')))
    }

    fn answer<T: DeserializeOwned>(&self, path: &str, sent: Result<Response<Body>, ureq::Error>) -> Result<T, Failed> {
        let url = self.url(path)?;
        let mut answer = sent.map_err(|error| format!("{url}: {error}"))?;
        let text = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        let text = text.map_err(|error| format!("{url}: {error}"))?;
        if answer.status().is_success() {
            return Ok(serde_json::from_str(&text).map_err(|error| format!("{url}: {error}"))?);
        }
        let refusal = serde_json::from_str(&text).map_or(text, |refusal: Refusal| refusal.error);
        Err(format!("the hub refuses: {} ({})", refusal, answer.status().as_u16()).into())
    }
}

impl Trusted {
    pub(super) fn anchor(&self) -> Result<Option<Digest>, Failed> {
        let of_environment = || set(ANCHOR).map(|text| text.parse().map_err(|error| format!("{ANCHOR}: {error}")));
        Ok(self.trust_anchor.map(Ok).or_else(of_environment).transpose()?)
    }

    /// Reads all orders and verifies them.
    pub(super) fn chain(&self) -> Result<Chain, Failed> {
        let anchor = self.anchor()?;
        let needed =
            || format!("this needs the digest that `rulekeep fleet found` printed: --trust-anchor or {ANCHOR}");
        let mut chain = Chain::new(Some(anchor.ok_or_else(|| Failed::usage(&needed()))?));
        loop {
            let next: Vec<SignedOrder> = self.hub.get("/fleet/v1/orders", &[("after", chain.seq().to_string())])?;
            if next.is_empty() {
                return Ok(chain);
            }
            for order in &next {
                chain.add(order).map_err(|error| format!("the hub sent a false order: {error}"))?;
            }
        }
    }
}

/// Reads a file of text.
pub(super) fn read(file: &PathBuf) -> Result<String, Failed> {
    Ok(std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?)
}

/// The value of an environment variable that is set.
pub(super) fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

const HUB: &str = "RULEKEEP_FLEET_HUB";
const TOKEN: &str = "RULEKEEP_FLEET_TOKEN";
const ANCHOR: &str = "RULEKEEP_FLEET_ANCHOR";
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: u64 = 256 << 20;
