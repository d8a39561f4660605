//! Reading the part of a decision's evidence that events report, at low cost.

use rulekeep_types::parts::DecisionDetailParts;
use serde::Deserialize;

use crate::journal::evidence::detail_bytes;
use rulekeep_types::{DecisionDetail, RiskLevel};

/// A cache of details read last. Decisions by the same rules on the same capabilities have the same details, and
/// reading them again was most of what their events cost.
#[derive(Default)]
pub struct Details {
    /// The details, each with the bytes it was read from.
    last: Vec<(Box<[u8]>, DecisionDetail)>,
    /// The number of the entry to be replaced next.
    oldest: usize,
}

impl Details {
    /// Returns the detail of a decision for its event. For an escalation the whole detail is read, otherwise only the
    /// fields that are reported, which come first.
    pub(super) fn told(&mut self, evidence: &[u8], is_escalation: bool) -> Option<DecisionDetail> {
        let detail = detail_bytes(evidence)?;
        if is_escalation {
            return serde_json::from_slice(detail).ok();
        }
        // INVARIANT: the bytes that were read end in a bracket, so the same bytes give the same result whatever
        // follows.
        if let Some((_, known)) = self.last.iter().find(|(bytes, _)| detail.starts_with(bytes)) {
            return Some(known.clone());
        }
        let Some((told, rest)) = first_fields(detail) else { return serde_json::from_slice(detail).ok() };
        let read = detail.get(..detail.len() - rest.len()).filter(|read| read.len() <= LONGEST);
        if let Some(read) = read {
            self.keep(read, told.clone());
        }
        Some(told)
    }

    fn keep(&mut self, read: &[u8], told: DecisionDetail) {
        let new = (read.into(), told);
        match self.last.get_mut(self.oldest) {
            Some(oldest) => *oldest = new,
            None => self.last.push(new),
        }
        self.oldest = (self.oldest + 1) % MOST;
    }
}

/// Reads the fields that are reported, if they are in the order in which they are written, and returns the rest.
fn first_fields(detail: &[u8]) -> Option<(DecisionDetail, &[u8])> {
    let (granted_capabilities, rest) = field(detail, b"{\"grantedCapabilities\":")?;
    let (denied_capabilities, rest) = field(rest, b",\"deniedCapabilities\":")?;
    let (constraints, rest) = field(rest, b",\"constraints\":")?;
    let (_, rest) = field::<RiskLevel>(rest, b",\"riskLevel\":")?;
    let (policy_digest, rest) = field(rest, b",\"policyDigest\":")?;
    let (rules, rest) = field(rest, b",\"rules\":")?;
    let reviewers = Vec::new();
    let told = DecisionDetail::from(DecisionDetailParts {
        granted_capabilities,
        denied_capabilities,
        constraints,
        policy_digest,
        rules,
        reviewers,
    });
    Some((told, rest))
}

/// Reads the value after a name, and returns the rest.
fn field<'a, T: Deserialize<'a>>(bytes: &'a [u8], name: &[u8]) -> Option<(T, &'a [u8])> {
    let rest = bytes.strip_prefix(name)?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
    let value = values.next()?.ok()?;
    Some((value, rest.get(values.byte_offset()..)?))
}

/// Number of details kept, and the longest of them in bytes.
const MOST: usize = 8;
const LONGEST: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::evidence;
    use rulekeep_types::Digest;

    #[test]
    fn what_an_event_tells_is_read_as_the_whole_detail_is() {
        let digest = Digest::new([7; 32]);
        let rest = json!({"riskLevel": "LOW", "policyDigest": digest, "rules": ["a \"b\"", "c"]}).to_string();
        for (constraints, last) in [("{}", ""), (r#"{"to":["x","y"],"n":1.5}"#, r#","reviewers":["ann"],"labels":[]"#)]
        {
            let named = format!(
                r#""grantedCapabilities":["document:read"],"deniedCapabilities":[],"constraints":{constraints},"riskLevel":"LOW","policyDigest":"{digest}","rules":["a \"b\"","c"]{last}"#
            );
            let whole: DecisionDetail = serde_json::from_str(&format!("{{{named}}}")).unwrap();
            let text = format!("{{{named}}}");
            let (first, _) = first_fields(text.as_bytes()).unwrap();
            let mut expected = whole.clone();
            expected.reviewers.clear();
            assert_eq!(first, expected);
            let bytes = |detail: &str| {
                let raw = serde_json::value::RawValue::from_string(detail.to_owned()).unwrap();
                evidence::encode(
                    Vec::new(),
                    1,
                    |out| serde_json::to_writer(out, &json!({})),
                    |out| serde_json::to_writer(out, &raw),
                    &[],
                    None,
                )
                .unwrap()
            };
            assert_eq!(Details::default().told(&bytes(&format!("{{{named}}}")), true), Some(whole.clone()));
            // Fields in another order are read all the same.
            assert!(first_fields(rest.as_bytes()).is_none());
            assert_eq!(Details::default().told(&bytes(&format!("{{\"now\":0,{named}}}")), false), Some(whole));
        }
    }

    #[test]
    fn what_was_read_before_tells_the_same_as_reading_it() {
        let mut details = Details::default();
        let bytes = |number: usize, rest: &str| {
            let digest = Digest::new([7; 32]);
            let detail = format!(
                r#"{{"grantedCapabilities":["document:read"],"deniedCapabilities":[],"constraints":{{"n":{number}}},"riskLevel":"LOW","policyDigest":"{digest}","rules":["r{number}"]{rest}}}"#
            );
            let raw = serde_json::value::RawValue::from_string(detail).unwrap();
            evidence::encode(
                Vec::new(),
                1,
                |out| serde_json::to_writer(out, &json!({})),
                |out| serde_json::to_writer(out, &raw),
                &[],
                None,
            )
            .unwrap()
        };
        // More details than are kept, each several times, with different bytes after the reported fields.
        for round in 0..3 {
            for number in (0..12).chain([3, 3, 11]) {
                let bytes = bytes(number, &format!(r#","now":{round}"#));
                assert_eq!(details.told(&bytes, false), Details::default().told(&bytes, false));
                assert_eq!(details.told(&bytes, false).unwrap().rules, [format!("r{number}")]);
            }
        }
        assert_eq!(details.last.len(), MOST);
        let with_reviewers = bytes(3, r#","reviewers":["ann"]"#);
        assert_eq!(details.told(&with_reviewers, true).unwrap().reviewers, ["ann"]);
    }
}
