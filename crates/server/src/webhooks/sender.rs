//! A single delivery over the network: signed, without redirects and proxies, and with limits on time, on headers and
//! on the part of the response that is read.

use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::address::{self, Reach};
use super::outbox::Answer;
use super::schedule::retry_after;
use rulekeep::signature::{self, Secret};
use rulekeep::system::Timestamp;

/// The content of a delivery.
pub(super) struct Parcel<'a> {
    pub(super) event: &'a str,
    pub(super) body: &'a [u8],
    pub(super) secrets: &'a [&'a Secret],
    pub(super) now: Timestamp,
}

/// Sends deliveries to one endpoint.
pub(super) struct Sender {
    url: String,
    agent: Agent,
}

impl Sender {
    /// Creates a sender for a URL. `longest` limits the duration of a whole attempt.
    pub(super) fn new(url: &str, reach: Reach, longest: Duration) -> Self {
        Self::with_names(url, reach, longest, DefaultResolver::default())
    }

    fn with_names(url: &str, reach: Reach, longest: Duration, names: impl Resolver) -> Self {
        let config = Config::builder()
            .proxy(None) // the address is checked, so no proxy from the environment may be used
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_global(Some(longest))
            .max_response_header_size(MOST_HEADER)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .user_agent(USER_AGENT)
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), Guarded { reach, names });
        Self { url: url.to_owned(), agent }
    }

    /// Returns a function that aborts the current delivery and all later ones.
    pub(super) fn interrupt(&self) -> impl Fn() + Send + Sync + 'static {
        let agent = self.agent.clone();
        move || agent.clone().shutdown()
    }

    /// Sends a delivery and waits for the response.
    pub(super) fn send(&mut self, parcel: &Parcel<'_>) -> Answer {
        let Parcel { event, body, secrets, now } = parcel;
        let seconds = now.as_millis().div_euclid(1000);
        let request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header(signature::ID_HEADER, *event)
            .header(signature::TIMESTAMP_HEADER, seconds.to_string())
            .header(signature::STANDARD_HEADER, signature::sign_standard(secrets, seconds, event, body))
            .header(signature::HEADER, signature::sign(secrets, seconds, event, body));
        let response = match request.send(*body) {
            Ok(response) => response,
            Err(error) => return Answer::Failed { status: None, error: error.to_string(), retry_after: None },
        };
        let status = response.status().as_u16();
        let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| retry_after(text, *now));
        let failed = |error: String| Answer::Failed { status: Some(status), error, retry_after: asked };
        // The response's status counts, whatever follows. Reading its body to the end allows the connection to be
        // reused.
        let mut rest = response.into_body().into_with_config().limit(MOST_BODY).reader();
        let mut buffer = [0; 1024];
        while rest.read(&mut buffer).is_ok_and(|count| count > 0) {}
        match status {
            200..=299 => Answer::Delivered(status),
            410 => Answer::Gone,
            300..=399 => failed(format!("answered {status}: redirects are not followed")),
            _ => failed(format!("answered {status}")),
        }
    }
}

/// Resolves names, and refuses those with an address that is not permitted.
#[derive(Debug)]
struct Guarded<R> {
    reach: Reach,
    names: R,
}

impl<R: Resolver> Resolver for Guarded<R> {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let refused = |why: String| ureq::Error::Other(why.into());
        let host = uri.host().unwrap_or_default();
        let is_plain = uri.scheme_str() != Some("https");
        let found = match address::literal(host).map_err(refused)? {
            // An address needs no resolver thread.
            Some(address) => {
                let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
                let mut one = self.empty();
                one.push((address, port).into());
                one
            }
            None => self.names.resolve(uri, config, timeout)?,
        };
        let addresses: Vec<IpAddr> = found.iter().map(std::net::SocketAddr::ip).collect();
        address::permit(&addresses, is_plain, self.reach).map_err(refused)?;
        Ok(found)
    }
}

/// The maximum duration of an attempt.
pub(super) const LONGEST: Duration = Duration::from_secs(15);
const MOST_HEADER: usize = 16 << 10;
const MOST_BODY: u64 = 4 << 10;
const USER_AGENT: &str = concat!("rulekeep/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
