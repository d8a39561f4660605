//! A fast reader for the fields of a record in its canonical form. Verification reads them for every record of a log.
//!
//! It accepts exactly the form written here, without copying. Anything that differs in a single byte is left to
//! `serde`, which decides whether it is a record. Whatever is accepted here, `serde` reads with the same result.

use std::borrow::Cow;

use super::record::CanonicalRecord;
use rulekeep_types::{AgentId, Decision, Digest, IntentId, ProofId, RiskLevel, Score, Tier, Timestamp};

/// Reads the body of a decision's entry; `None` if it is not in the canonical form. `known` may supply the entity's
/// ID without parsing it; the reasoning is left empty unless `wants_reasoning`.
pub(crate) fn read(
    body: &[u8],
    known: impl FnOnce(&str) -> Option<AgentId>,
    wants_reasoning: bool,
) -> Option<CanonicalRecord<'_>> {
    let mut rest = Rest(body);
    rest.literal(b"{\"decision\":\"")?;
    let decision = rest.word(Decision::ALL, Decision::as_str)?;
    rest.literal(b",\"entityId\":\"")?;
    let entity = rest.text()?.plain()?;
    rest.literal(b",\"evidenceHash\":\"sha256:")?;
    let evidence_hash = Digest::read_hex(rest.take()?)?;
    rest.literal(b"\",\"id\":\"prf_")?;
    let id = ProofId::read_spelled(rest.take()?)?;
    rest.literal(b"\",\"intentId\":\"int_")?;
    let intent_id = IntentId::read_spelled(rest.take()?)?;
    rest.literal(b"\",\"previousHash\":\"sha256:")?;
    let previous_hash = Digest::read_hex(rest.take()?)?;
    rest.literal(b"\",\"reasoning\":\"")?;
    let reasoning = rest.text()?;
    rest.literal(b",\"riskLevel\":\"")?;
    let risk_level = rest.word(RiskLevel::ALL, RiskLevel::as_str)?;
    rest.literal(b",\"timestamp\":\"")?;
    let timestamp = Timestamp::read_written(rest.take()?)?;
    rest.literal(b"\",\"trustScore\":")?;
    let trust_score = Score::try_from(rest.number()?).ok()?;
    rest.literal(b",\"trustTier\":\"")?;
    let trust_tier = rest.word(Tier::ALL, Tier::as_str)?;
    rest.literal(b"}")?;
    if !rest.0.is_empty() {
        return None;
    }
    Some(CanonicalRecord {
        decision,
        entity_id: known(entity).or_else(|| entity.parse().ok())?,
        evidence_hash,
        id,
        intent_id,
        previous_hash,
        reasoning: if wants_reasoning { reasoning.unescaped()? } else { Cow::Borrowed("") },
        resolves: None,
        retry_of: None,
        risk_level,
        timestamp,
        trust_score,
        trust_tier,
    })
}

/// The content of a JSON string between its quotes.
#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    written: &'a str,
    has_escapes: bool,
}

impl<'a> Text<'a> {
    fn plain(self) -> Option<&'a str> {
        (!self.has_escapes).then_some(self.written)
    }

    fn unescaped(self) -> Option<Cow<'a, str>> {
        if let Some(plain) = self.plain() {
            return Some(Cow::Borrowed(plain));
        }
        serde_json::from_str(&format!("\"{}\"", self.written)).ok().map(Cow::Owned)
    }
}

#[allow(clippy::needless_bitwise_bool)] // so that the compiler looks at many bytes at once
fn ends_run(byte: u8) -> bool {
    // Without a branch, so that the compiler compares many bytes at once.
    (byte == b'"') | (byte == b'\\') | (byte < b' ')
}

/// Number of bytes before the first quote, backslash or control character; `None` if there is none of these.
fn run_length(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let (chunks, _) = bytes.as_chunks::<32>();
    let has_end = |chunk: &&[u8; 32]| chunk.iter().fold(false, |any, byte| any | ends_run(*byte));
    let mut at = 32 * chunks.iter().take_while(|chunk| !has_end(chunk)).count();
    let (words, _) = bytes.get(at..)?.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        // The high bit of the first byte that is below `limit` is set, and none before it.
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
        let ends = below(word, 0x20) | below(word ^ (ONES * 0x22), 1) | below(word ^ (ONES * 0x5c), 1);
        if ends != 0 {
            return Some(at + ends.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + bytes.get(at..)?.iter().position(|byte| ends_run(*byte))?)
}

/// The bytes not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn literal<const N: usize>(&mut self, literal: &[u8; N]) -> Option<()> {
        (self.take::<N>()? == literal).then_some(())
    }

    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a string and its closing quote.
    fn text(&mut self) -> Option<Text<'a>> {
        let mut has_escapes = false;
        let mut at = 0;
        loop {
            at += run_length(self.0.get(at..)?)?;
            match self.0.get(at..)? {
                [b'"', rest @ ..] => {
                    let written = std::str::from_utf8(self.0.get(..at)?).ok()?;
                    self.0 = rest;
                    return Some(Text { written, has_escapes });
                }
                [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => {
                    has_escapes = true;
                    at += 2;
                }
                _ => return None,
            }
        }
    }

    /// Reads one of these words and its closing quote.
    fn word<T: Copy>(&mut self, words: &[T], as_str: impl Fn(T) -> &'static str) -> Option<T> {
        words.iter().copied().find(|word| {
            let behind = self.0.strip_prefix(as_str(*word).as_bytes()).and_then(|rest| rest.strip_prefix(b"\""));
            behind.map(|rest| self.0 = rest).is_some()
        })
    }

    /// Reads a number of at most four digits, without leading zeros.
    fn number(&mut self) -> Option<u64> {
        let count = self.0.iter().take(5).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count)?;
        if digits.is_empty() || digits.len() > 4 || (digits.len() > 1 && digits.starts_with(b"0")) {
            return None;
        }
        self.0 = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rulekeep_types::{Decision, RiskLevel, Sequence, Tier};

    fn by_serde(body: &[u8]) -> Option<CanonicalRecord<'_>> {
        serde_json::from_slice(body).ok()
    }

    fn by_hand(body: &[u8]) -> Option<CanonicalRecord<'_>> {
        read(body, |_| None, true)
    }

    prop_compose! {
        fn body()(
            words in any::<[prop::sample::Index; 3]>(), entity in "[a-z0-9-]{1,12}|[^\\p{C}]{1,40}",
            bits in any::<(u32, u128, u64)>(), hashes in any::<[[u8; 32]; 2]>(),
            reasoning in "[ -~]{0,60}|\\PC{0,40}|[\\x00-\\x1f\"\\\\/é€😀]{0,20}",
            at in -70_000_000_000_000_i64..260_000_000_000_000, score in 0_i64..=1000,
        ) -> Vec<u8> {
            let at = Timestamp::from_millis(at);
            let record = CanonicalRecord {
                decision: Decision::ALL[words[0].index(Decision::ALL.len())],
                entity_id: entity.parse().unwrap_or_else(|_| "plain".parse().unwrap()),
                evidence_hash: Digest::new(hashes[0]),
                id: ProofId::new(at, bits.0, Sequence::new(bits.2)),
                intent_id: IntentId::new(at, bits.1),
                previous_hash: Digest::new(hashes[1]),
                reasoning: Cow::Owned(reasoning),
                resolves: None,
                retry_of: None,
                risk_level: RiskLevel::ALL[words[1].index(RiskLevel::ALL.len())],
                timestamp: at,
                trust_score: Score::saturating(score),
                trust_tier: Tier::ALL[words[2].index(Tier::ALL.len())],
            };
            serde_json::to_vec(&record).unwrap()
        }
    }

    proptest! {
        #[test]
        fn the_end_of_a_run_is_found_as_byte_by_byte(
            bytes in proptest::collection::vec(prop_oneof![20 => any::<u8>().prop_map(|byte| byte | 0x80), 20 => b'#'..=b'[', 1 => any::<u8>()], 0..120),
        ) {
            prop_assert_eq!(run_length(&bytes), bytes.iter().position(|byte| ends_run(*byte)));
        }

        #[test]
        fn what_is_written_is_read_by_hand_as_serde_reads_it(body in body()) {
            // Control characters are written as `\u00..`; these, and escapes in an ID, are left to `serde`.
            let entity = by_serde(&body).unwrap().entity_id;
            let is_left = body.windows(2).any(|pair| pair == b"\\u") || entity.as_str().contains(['"', '\\']);
            let read = by_hand(&body);
            prop_assert!(read.is_some() || is_left);
            if let Some(read) = read {
                prop_assert_eq!(format!("{read:?}"), format!("{:?}", by_serde(&body).unwrap()));
            }
        }

        #[test]
        fn whatever_is_read_by_hand_serde_reads_as_the_same(
            body in body(), changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..3),
        ) {
            let mut body = body;
            for (place, byte, how) in changes {
                let at = place.index(body.len());
                match how {
                    0 => body[at] = byte,
                    1 => body.insert(at, byte),
                    _ => drop(body.remove(at)),
                }
            }
            let by_serde = by_serde(&body);
            if let Some(record) = by_hand(&body) {
                prop_assert_eq!(format!("{record:?}"), format!("{:?}", by_serde.unwrap()));
            }
            let read = CanonicalRecord::read(&body).ok();
            let again: Option<CanonicalRecord<'_>> = serde_json::from_slice(&body).ok();
            prop_assert_eq!(format!("{read:?}"), format!("{again:?}"));
        }
    }
}
