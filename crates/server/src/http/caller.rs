//! Whose refused keys are counted: an address, of IPv6 the network of one customer.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderName};

/// Where a request came from, for whoever mounts the router elsewhere than in [`Server`](super::Server): put it into the
/// request's extensions. Without one the refused keys of all are counted together.
///
/// Keys in use go on for a caller whose keys are refused; others wait. So it must be an address that a client cannot choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller(
    /// The client's address.
    pub IpAddr,
);

impl Caller {
    /// How it is counted.
    pub(super) fn name(self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            // 64 bits are one customer's.
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).to_string(),
        }
    }

    /// The client that a connection's other side speaks for: itself, or, where it is one of the proxies that are trusted, the
    /// last address of `X-Forwarded-For` that is none of them. What stands before that anybody can have written.
    pub(super) fn behind(peer: IpAddr, proxies: &[IpAddr], headers: &HeaderMap) -> Self {
        const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");
        let peer = peer.to_canonical();
        if !proxies.contains(&peer) {
            return Self(peer);
        }
        let mut last = peer;
        let fields: Vec<&str> = headers.get_all(FORWARDED).iter().map(|field| field.to_str().unwrap_or("?")).collect();
        for text in fields.iter().rev().flat_map(|field| field.rsplit(',')) {
            // One that is no address is the word of whoever is known last.
            let Ok(address) = text.trim().parse::<IpAddr>() else { break };
            last = address.to_canonical();
            if !proxies.contains(&last) {
                break;
            }
        }
        Self(last)
    }
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
    fn a_proxy_that_is_trusted_speaks_for_others_and_nobody_else_does() {
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
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append("x-forwarded-for", HeaderValue::from_str(field).unwrap());
            }
            assert_eq!(Caller::behind(ip(peer), &proxies, &headers), Caller(ip(client)), "{peer} {fields:?}");
        }
    }
}
