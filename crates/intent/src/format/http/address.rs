//! Addresses: their parts, decoded, and whether one returns a machine's credentials.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::format::place;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::format::tables;

/// An address with its encodings undone.
#[derive(Debug, Clone, Default)]
pub(super) struct Address {
    /// The address as written.
    pub whole: String,
    pub host: String,
    pub path: String,
    pub query: Vec<(String, String)>,
}

impl Address {
    /// Splits `https://host/path?query`, or a path whose host a header names.
    pub(super) fn of(target: &str, host: Option<&str>) -> Self {
        let (rest, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('#').next().unwrap_or("");
        let rest = rest.split('#').next().unwrap_or("");
        let (named, path) = match rest.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or((rest, ""), |at| rest.split_at(at)),
            None if rest.starts_with('/') => (host.unwrap_or(""), rest),
            None => rest.find('/').map_or((rest, ""), |at| rest.split_at(at)),
        };
        let whole = if target.starts_with('/') { format!("{named}{target}") } else { target.to_owned() };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).take(MOST_PAIRS).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key).to_ascii_lowercase(), decoded(&value.replace('+', " ")))
        });
        Self { whole, host: decoded(named).to_ascii_lowercase(), path: decoded(path), query: pairs.collect() }
    }

    /// Returns whether it names a secret: a file with secrets, or a service that returns a machine's credentials.
    pub(super) fn secret(&self) -> bool {
        is_metadata(&self.host)
            || place::is_secret(&self.path) && self.path.len() > 1 && !self.is_page()
            || place::is_secret(&self.host)
            || self.query.iter().any(|(_, value)| names_secret(value))
    }

    /// Returns whether the path is a single word, which names a page of a site even if a secret file is called so.
    fn is_page(&self) -> bool {
        let word = self.path.trim_matches('/');
        self.whole.starts_with("http") && !self.host.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    }

    /// The act of an address that is no web page: a file of the host itself, or a protocol that speaks to a service.
    pub(super) fn local_read(&self) -> Option<Act> {
        let (scheme, _) = self.whole.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "file" {
            let level = if place::is_system(&self.path) { RiskLevel::High } else { RiskLevel::Medium };
            let act = Act::new("read", "file", Resource::File, Operation::Read, 0.8);
            return Some(act.named_by(&self.whole).at_risk(level));
        }
        let act = Act::new("call", "service", Resource::Network, Operation::Execute, 0.6).named_by(&self.whole);
        tables::http().service_schemes.has(&scheme).then(|| act.at_risk(RiskLevel::High).marked(Sign::Unclear))
    }

    /// Returns whether the host is the machine itself or in a private network.
    pub(super) fn is_inside(&self) -> bool {
        is_loopback(&self.host) || number(name_of(&self.host)).is_some_and(|address| address.is_private())
    }

    /// Returns whether the port is one at which a host, its containers or its keys are controlled.
    pub(super) fn is_control(&self) -> bool {
        self.host.rsplit_once(':').is_some_and(|(_, port)| tables::http().control_ports.has(port))
    }

    /// Returns whether the host's name indicates production.
    pub(super) fn is_production(&self) -> bool {
        self.host.split(['.', '-', '_']).any(|part| matches!(part, "prod" | "production" | "prd"))
    }
}

/// Returns whether a value is an address or a path that names a secret.
pub(super) fn names_secret(value: &str) -> bool {
    if value.len() > LONGEST_PLACE || !value.contains(['/', '.']) {
        return false;
    }
    let host = value.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    is_metadata(host) || place::is_secret(value)
}

/// Returns whether a host is the link-local address of a cloud metadata service, in any spelling that clients accept.
fn is_metadata(host: &str) -> bool {
    let host = host.rsplit('@').next().unwrap_or(host);
    if let Some(inside) = host.strip_prefix('[').and_then(|host| host.split(']').next()) {
        return inside.parse::<Ipv6Addr>().is_ok_and(|address| {
            address.to_ipv4().is_some_and(is_link_local)
                || address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
        });
    }
    let name = host.split(':').next().unwrap_or(host).trim_end_matches('.');
    number(name).is_some_and(is_link_local)
        || name.contains("169.254.169.254")
        || name.contains("169-254-169-254")
        || name.starts_with("metadata.google")
        || matches!(name, "metadata" | "instance-data" | "metadata.azure.com" | "instance-data.ec2.internal")
}

/// Returns whether a host is the machine itself, in any spelling that clients accept.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.rsplit('@').next().unwrap_or(host);
    if let Some(inside) = host.strip_prefix('[').and_then(|host| host.split(']').next()) {
        return inside.parse::<Ipv6Addr>().is_ok_and(|address| {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        });
    }
    let name = name_of(host);
    name == "localhost"
        || name.ends_with(".localhost")
        || number(name).is_some_and(|address| address.is_loopback() || address.is_unspecified())
}

/// The name of a host without its port.
fn name_of(host: &str) -> &str {
    let host = host.rsplit('@').next().unwrap_or(host);
    host.split([':', '/']).next().unwrap_or(host).trim_end_matches('.')
}

/// Parses an IPv4 address as `inet_aton` does: one to four parts, decimal, octal or hexadecimal.
fn number(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = host.split('.').take(5).collect();
    let (last, before) = parts.split_last()?;
    let mut value: u64 = 0;
    for part in before {
        let byte = part_of(part).filter(|&byte| byte < 256)?;
        value = value << 8 | byte;
    }
    if before.len() > 3 {
        return None;
    }
    let left = 4 - before.len();
    let last = part_of(last).filter(|&last| last < 1 << (8 * left))?;
    u32::try_from(value << (8 * left) | last).ok().map(Ipv4Addr::from)
}

fn part_of(part: &str) -> Option<u64> {
    if let Some(digits) = part.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if part.len() > 1 && part.starts_with('0') {
        return u64::from_str_radix(part, 8).ok();
    }
    if part.bytes().all(|byte| byte.is_ascii_digit()) { part.parse().ok() } else { None }
}

fn is_link_local(address: Ipv4Addr) -> bool {
    address.is_link_local() || METADATA.contains(&address)
}

/// Undoes percent-encoding, also double encoding.
pub(super) fn decoded(text: &str) -> String {
    let once = percent(text);
    if once.contains('%') { percent(&once) } else { once }
}

fn percent(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { after.get(2..).unwrap_or(&[]) } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Addresses of metadata services outside the link-local range: Alibaba, Oracle and Azure's agent.
const METADATA: &[Ipv4Addr] =
    &[Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];
/// Maximum number of query pairs read.
const MOST_PAIRS: usize = 256;
/// Maximum length of a value that is checked as a path, in bytes.
const LONGEST_PLACE: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        for (host, expected) in [
            ("169.254.169.254", true),
            ("2852039166", true),
            ("0xa9fea9fe", true),
            ("0251.0376.0251.0376", true),
            ("169.254.43518", true),
            ("user@169.254.169.254:80", true),
            ("[::ffff:a9fe:a9fe]", true),
            ("168.63.129.16", true),
            ("8.8.8.8", false),
            ("example.com", false),
            ("", false),
            ("999999999999", false),
            ("1.2.3.4.5", false),
        ] {
            assert_eq!(is_metadata(host), expected, "{host}");
        }
    }

    #[test]
    fn percent_signs_are_undone_and_broken_ones_stay() {
        for (text, expected) in
            [("%64el", "del"), ("%2564el", "del"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%e4", "\u{fffd}")]
        {
            assert_eq!(decoded(text), expected);
        }
    }
}
