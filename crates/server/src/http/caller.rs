//! The caller under which rejected keys are counted: an IPv4 address, or the IPv6 network of one customer.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};

/// The origin of a request, for a router that is not served by [`Server`](super::Server): add it to the request's
/// extensions. Without it the rejected keys of all callers are counted together.
///
/// A caller whose keys are rejected has to wait, except with keys it already uses. So the address must be one that
/// the client cannot choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller(
    /// The IP address of the client.
    pub IpAddr,
);

impl Caller {
    /// The name under which the caller is counted.
    pub(super) fn name(self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            // A customer has at least a network of 64 bits.
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).to_string(),
        }
    }

    /// The client of a connection: the peer, or, if the peer is a trusted proxy, the last address of
    /// `X-Forwarded-For` that is not a trusted proxy. Anybody can have written the addresses before it.
    pub(super) fn behind(peer: IpAddr, proxies: &[IpAddr], headers: &HeaderMap) -> Self {
        const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");
        let peer = peer.to_canonical();
        if !proxies.contains(&peer) {
            return Self(peer);
        }
        let mut last = peer;
        let fields: Vec<&str> = headers.get_all(FORWARDED).iter().map(|field| field.to_str().unwrap_or("?")).collect();
        let written = fields.iter().rev().flat_map(|field| field.rsplit(',')).map(str::trim);
        for text in written.filter(|text| !text.is_empty()) {
            // A value that is not an address was written by the last known peer.
            let Some(address) = address(text) else { break };
            last = address.to_canonical();
            if !proxies.contains(&last) {
                break;
            }
        }
        Self(last)
    }
}

/// An address as proxies write it: alone, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok().map(IpAddr::V6);
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    text.parse().ok().or_else(with_port).or_else(bracketed)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_caller_is_an_address_or_a_network() {
        let of = |text: &str| Caller(ip(text)).name();
        assert_eq!(of("10.0.0.7"), "10.0.0.7");
        assert_eq!(of("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }

    #[test]
    fn only_a_trusted_proxy_speaks_for_others() {
        let proxies = [ip("10.0.0.1"), ip("10.0.0.2")];
        for (peer, fields, client) in [
            ("192.0.2.9", &["198.51.100.1"][..], "192.0.2.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.5, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.5", "198.51.100.1 , 10.0.0.2"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["ü"], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.5, 198.51.100.1:4000"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8::1]:4000, 10.0.0.2:80"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.1, ,"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:http"], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append("x-forwarded-for", HeaderValue::from_str(field).unwrap());
            }
            assert_eq!(Caller::behind(ip(peer), &proxies, &headers), Caller(ip(client)), "{peer} {fields:?}");
        }
    }
}
