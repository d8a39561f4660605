//! The addresses allowed for endpoints: those that anybody can reach over the internet. A host name is resolved and
//! checked for every connection, so changing what it resolves to gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::http::Uri;

/// The networks that deliveries may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses, over TLS.
    Public,
    /// Also loopback and private networks, and loopback without TLS.
    Private,
}

/// Parses an endpoint URL: its form, and what can be checked about its host without resolving it.
pub(super) fn checked_url(text: &str, reach: Reach) -> Result<Uri, String> {
    if text.len() > LONGEST {
        return Err(format!("expected at most {LONGEST} characters"));
    }
    if !text.is_ascii() {
        return Err("expected ASCII; write an international name in its xn-- form".to_owned());
    }
    if text.contains('#') {
        return Err("expected no fragment".to_owned());
    }
    let uri: Uri = text.parse().map_err(|_| "expected an absolute URL".to_owned())?;
    let authority = uri.authority().ok_or_else(|| "expected an absolute URL".to_owned())?;
    if authority.as_str().contains('@') {
        return Err("expected no user or password".to_owned());
    }
    let rest = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if !rest.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err("expected a port between 1 and 65535".to_owned());
    }
    let is_plain = match uri.scheme_str() {
        Some("https") => false,
        Some("http") => true,
        _ => return Err("expected https".to_owned()),
    };
    match literal(authority.host())? {
        Some(address) => permit(&[address], is_plain, reach)?,
        None if is_own_name(authority.host()) => permit(&[IpAddr::V4(Ipv4Addr::LOCALHOST)], is_plain, reach)?,
        None if is_plain && reach == Reach::Public => return Err("expected https".to_owned()),
        None => {}
    }
    Ok(uri)
}

/// The address that a host is written as, if it is one. Unusual spellings of addresses are refused, because a
/// resolver would accept them.
pub(super) fn literal(host: &str) -> Result<Option<IpAddr>, String> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr =
            inner.parse().map_err(|_| "expected an IPv6 address between the brackets".to_owned())?;
        return Ok(Some(address.into()));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Some(address.into()));
    }
    // SOURCE: https://url.spec.whatwg.org/#ends-in-a-number-checker
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_number || is_hex || host.is_empty() || !is_name {
        return Err("expected a name, or an address in its usual form".to_owned());
    }
    Ok(None)
}

/// Returns whether a connection may be made to a name with these addresses; each of them must be allowed.
pub(super) fn permit(addresses: &[IpAddr], is_plain: bool, reach: Reach) -> Result<(), String> {
    for address in addresses {
        let is_reached = is_global(*address) || reach == Reach::Private && is_private(*address);
        if !is_reached {
            return Err(format!("the address {address} is not a public internet address"));
        }
        if is_plain && !is_loopback(*address) {
            return Err("expected https: without TLS only this machine is reached".to_owned());
        }
    }
    Ok(())
}

/// Returns whether a name means this machine.
fn is_own_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns whether an address is public. SOURCE: IANA's registries of special-purpose addresses,
/// <https://www.iana.org/assignments/iana-ipv4-special-registry> and
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>, read in November 2026.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !V4_BLOCKS.iter().any(|(block, bits)| in_block4(address, *block, *bits)),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_global(inner.into()),
            None => {
                in_block6(address, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)
                    && !V6_BLOCKS.iter().any(|(block, bits)| in_block6(address, *block, *bits))
            }
        },
    }
}

/// Returns whether an address is loopback or in a private network. Link-local addresses are excluded, because cloud
/// providers serve credentials there.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => is_private(inner.into()),
            None => address.is_loopback() || in_block6(address, Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
        },
    }
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|inner| inner.is_loopback())
        }
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, or through NAT64.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
    if let Some(inner) = address.to_ipv4_mapped() {
        return Some(inner);
    }
    let [.., a, b, c, d] = address.octets();
    in_block6(address, nat64, 96).then(|| Ipv4Addr::new(a, b, c, d))
}

fn in_block4(address: Ipv4Addr, block: Ipv4Addr, bits: u32) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= bits
}

fn in_block6(address: Ipv6Addr, block: Ipv6Addr, bits: u32) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= bits
}

const LONGEST: usize = 2048;

const V4_BLOCKS: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),           // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by a provider's customers
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// Blocks within `2000::/3`; everything outside of it is not public.
const V6_BLOCKS: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo among them
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which leads anywhere
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_internet_by_tls_is_taken() {
        for url in [
            "https://example.com/hook?a=b",
            "https://example.com:8443",
            "https://xn--bcher-kva.example/",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "https://[::ffff:8.8.8.8]/",
            "https://[64:ff9b::808:808]/",
            "https://192.0.1.1/",
            "https://172.32.0.1/",
        ] {
            assert!(checked_url(url, Reach::Public).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_address_outside_the_internet_is_refused_in_any_spelling() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::127.0.0.1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[100::1]",
            "[2001::1]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
            "[2002:808:808::]",
            "[3fff::1]",
            "[5f00::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fe80::1%25eth0]",
            "[fec0::1]",
            "[ff02::1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "[v1.x]",
            "",
        ] {
            let url = format!("https://{host}/");
            assert!(checked_url(&url, Reach::Public).is_err(), "{url}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for url in [
            "http://example.com/",
            "http://8.8.8.8/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://user@example.com/",
            "https://user:password@example.com/",
            "https://example.com@127.0.0.1/",
            "https://example.com:0/",
            "https://example.com:99999/",
            "https://example.com:/",
            "https://example.com/#top",
            "https://exämple.com/",
            "https://ex ample.com/",
            "https://example.com/\r\nx: y",
            "//example.com/",
            "/hook",
            "example.com",
            "",
        ] {
            assert!(checked_url(url, Reach::Public).is_err(), "{url}");
            assert!(checked_url(url, Reach::Private).is_err() || url == "http://example.com/", "{url}");
        }
        let long = format!("https://example.com/{}", "a".repeat(2048));
        assert!(checked_url(&long, Reach::Public).is_err());
    }

    #[test]
    fn private_reach_adds_only_loopback_and_private_networks() {
        for url in
            ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/", "https://10.0.0.1/", "https://[fd00::1]/"]
        {
            assert!(checked_url(url, Reach::Private).is_ok(), "{url}");
            assert!(checked_url(url, Reach::Public).is_err(), "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "https://169.254.169.254/",
            "https://[fe80::1]/",
            "https://0.0.0.0/",
            "https://100.64.0.1/",
        ] {
            assert!(checked_url(url, Reach::Private).is_err(), "{url}");
        }
    }

    #[test]
    fn one_private_address_among_those_of_a_name_refuses_the_name() {
        let [public, private]: [IpAddr; 2] = ["8.8.8.8".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        assert!(permit(&[public], false, Reach::Public).is_ok());
        assert!(permit(&[public, private], false, Reach::Public).is_err());
        assert!(permit(&[private, public], false, Reach::Public).is_err());
        assert!(permit(&[public], true, Reach::Private).is_err(), "without TLS only loopback");
    }
}
