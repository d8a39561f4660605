//! Identifiers: agent ids are chosen by the caller; all others are generated ULIDs with a prefix.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use super::{InvalidValue, Timestamp, is_invisible, turns_direction};

/// An agent's identifier, chosen by the caller: 1 to 256 characters, no control characters, not only whitespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Maximum length in characters.
    pub const MAX_CHARS: usize = 256;

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks the id of a new agent: no whitespace or invisible character at its ends, and no bidirectional control
    /// character. [`AgentId::from_str`] is less strict, because older stores hold such ids.
    pub fn check_new(&self) -> Result<(), InvalidValue> {
        let is_unseen = |c: char| c.is_whitespace() || is_invisible(c);
        if self.0.trim_matches(is_unseen).len() == self.0.len() && !self.0.chars().any(turns_direction) {
            return Ok(());
        }
        Err(InvalidValue::new(
            "agentId",
            &self.0,
            "no blank or invisible character at either end, and no character that changes the text direction",
        ))
    }
}

impl FromStr for AgentId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let well_formed =
            !text.trim().is_empty() && text.chars().count() <= Self::MAX_CHARS && !text.chars().any(char::is_control);
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new("agentId", text, "1 to 256 characters, not blank, without control characters"))
        }
    }
}

crate::word::written_as_text!(AgentId);

/// The position of an entry in the journal, counted from 0; below 2^48.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sequence(u64);

impl Sequence {
    /// The position of the first entry.
    pub const FIRST: Self = Self(0);

    /// Creates a position from a number, truncated to 48 bits (more than a journal can hold).
    pub const fn new(place: u64) -> Self {
        Self(place & SEQUENCE_MASK)
    }

    /// The position as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl std::borrow::Borrow<str> for AgentId {
    // `Hash` and `Eq` of the single field equal those of its text, as `Borrow` requires.
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Defines an id of the form `<prefix><26 characters>`: a lowercase ULID.
macro_rules! prefixed_id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// The id as text.
            pub fn written(&self) -> [u8; $prefix.len() + ulid::ULID_LEN] {
                let mut lower = [0; ulid::ULID_LEN];
                self.0.array_to_str(&mut lower).make_ascii_lowercase();
                let mut text = [0; $prefix.len() + ulid::ULID_LEN];
                let (prefix, rest) = text.split_at_mut($prefix.len());
                prefix.copy_from_slice($prefix.as_bytes());
                rest.copy_from_slice(&lower);
                text
            }

            /// Reads the 26 characters after the prefix; `None` unless they are the id's canonical spelling.
            pub fn read_spelled(spelled: &[u8; ulid::ULID_LEN]) -> Option<Self> {
                let (mut bits, mut seen) = (0_u128, 0_u8);
                for byte in spelled {
                    let value = SPELLED[usize::from(*byte)];
                    seen |= value;
                    bits = bits << 5 | u128::from(value & 31);
                }
                // 26 characters hold 130 bits; the two above 128 must be zero.
                (seen < 32 && spelled[0] <= b'7').then(|| Self(Ulid::from_bytes(bits.to_be_bytes())))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(std::str::from_utf8(&self.written()).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                // One id has one spelling. The `ulid` decoder also accepts capitals, Crockford's look-alike characters
                // and values above 128 bits.
                text.strip_prefix($prefix)
                    .and_then(|rest| Self::read_spelled(rest.as_bytes().try_into().ok()?))
                    .ok_or_else(|| {
                        InvalidValue::new($what, text, concat!($prefix, " and 26 lower-case characters of Crockford's base 32"))
                    })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // Bypasses `Display`, because its formatter costs several times as much.
                serializer.serialize_str(std::str::from_utf8(&self.written()).map_err(serde::ser::Error::custom)?)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

prefixed_id! {
    /// An intent's identifier: `int_` and a ULID.
    IntentId, "int_", "intent id"
}

prefixed_id! {
    /// A proof record's identifier: `prf_` and a ULID. The low 48 bits are the record's position in the journal, so a
    /// lookup needs no index.
    ProofId, "prf_", "proof id"
}

prefixed_id! {
    /// An event's identifier: `evt_` and a ULID. The low 48 bits are the journal position of the entry that the event
    /// reports. An event keeps its id when it is delivered again.
    EventId, "evt_", "event id"
}

prefixed_id! {
    /// An escalation's identifier: `esc_` and the ULID of the proof record with the ESCALATE decision.
    EscalationId, "esc_", "escalation id"
}

prefixed_id! {
    /// A pre-approval's identifier: `apv_` and a ULID.
    PreApprovalId, "apv_", "pre-approval id"
}

prefixed_id! {
    /// A kill switch's identifier: `stp_` and a ULID.
    KillSwitchId, "stp_", "kill switch id"
}

prefixed_id! {
    /// A webhook endpoint's identifier: `whk_` and a ULID.
    WebhookId, "whk_", "webhook id"
}

prefixed_id! {
    /// An API key's identifier: `key_` and a ULID. It is not secret.
    KeyId, "key_", "key id"
}

prefixed_id! {
    /// A task's identifier: `tsk_` and a ULID.
    TaskId, "tsk_", "task id"
}

/// Adds a constructor to ids that consist of a time and random bits.
macro_rules! random_id {
    ($($name:ident)*) => {$(
        impl $name {
            /// Creates an id from a time and 80 random bits (the low bits of `random`).
            pub fn new(at: Timestamp, random: u128) -> Self {
                Self(Ulid::from_parts(ulid_millis(at), random))
            }
        }
    )*};
}

random_id! { PreApprovalId KillSwitchId }
random_id! { WebhookId }
random_id! { KeyId TaskId }

impl EscalationId {
    /// The escalation that a proof record opened.
    pub const fn of(record: ProofId) -> Self {
        Self(record.0)
    }

    /// The proof record that opened the escalation.
    pub const fn proof_id(self) -> ProofId {
        ProofId(self.0)
    }
}

impl EventId {
    /// Creates the id of event number `ordinal` of the journal entry at `sequence`. `mark` distinguishes the entries of
    /// two journals.
    pub fn new(at: Timestamp, mark: [u8; 3], ordinal: u8, sequence: Sequence) -> Self {
        let [a, b, c] = mark;
        let high = u32::from_be_bytes([ordinal, a, b, c]);
        Self(Ulid::from_parts(ulid_millis(at), u128::from(high) << SEQUENCE_BITS | u128::from(sequence.get())))
    }

    /// The journal position of the entry that the event reports.
    pub fn sequence(&self) -> Sequence {
        sequence_of(self.0)
    }

    /// The event's position among all events of a log: its entry, and its ordinal within the entry.
    pub fn place(self) -> (Sequence, u8) {
        let [.., ordinal, _, _, _] = *self.0.random().to_be_bytes().first_chunk::<10>().unwrap_or(&[0; 10]);
        (self.sequence(), ordinal)
    }
}

impl IntentId {
    /// Creates an id from a time and 80 random bits (the low bits of `random`).
    pub fn new(at: Timestamp, random: u128) -> Self {
        Self(Ulid::from_parts(ulid_millis(at), random))
    }

    #[doc(hidden)]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }

    /// The id of a request that carries a call id of its caller: equal for the same agent and call id.
    pub fn of_call(agent_id: &AgentId, call_id: &str) -> Self {
        let agent = agent_id.as_str();
        let hash = Sha256::new().chain_update(b"rulekeep call 1").chain_update((agent.len() as u64).to_le_bytes());
        let hash = hash.chain_update(agent).chain_update(call_id).finalize();
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
        Self(Ulid::from_bytes(bytes))
    }
}

impl ProofId {
    /// Creates the id of the record at `sequence` from the decision time and 32 random bits.
    pub fn new(at: Timestamp, random: u32, sequence: Sequence) -> Self {
        let low = u128::from(random) << SEQUENCE_BITS | u128::from(sequence.get());
        Self(Ulid::from_parts(ulid_millis(at), low))
    }

    /// The time of the decision, with millisecond precision.
    pub fn at(&self) -> Timestamp {
        let millis = self.0.to_bytes().iter().take(6).fold(0, |millis, byte| millis << 8 | i64::from(*byte));
        Timestamp::from_millis(millis)
    }

    /// The record's position in the journal.
    pub fn sequence(&self) -> Sequence {
        sequence_of(self.0)
    }
}

/// The low 48 bits of a ULID.
fn sequence_of(id: Ulid) -> Sequence {
    let bytes = id.to_bytes();
    let mut low = [0; 8];
    // A ULID is 16 bytes, big-endian; its low 48 bits are the last six.
    low[2..].copy_from_slice(&bytes[10..]);
    Sequence::new(u64::from_be_bytes(low))
}

/// The value of each lowercase character of Crockford's base 32; 255 for any other byte.
const SPELLED: [u8; 256] = {
    let alphabet = *b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value < 32 {
        values[alphabet[value as usize] as usize] = value;
        value += 1;
    }
    values
};

const SEQUENCE_BITS: u32 = 48;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

fn ulid_millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_id_carries_its_sequence_and_reads_back() {
        let at = Timestamp::from_millis(1_800_000_000_000);
        for place in [0, 1, 77, SEQUENCE_MASK] {
            let id = ProofId::new(at, u32::MAX, Sequence::new(place));
            assert_eq!(id.sequence().get(), place);
            let text = id.to_string();
            assert_eq!(text.len(), 30);
            assert_eq!(text.parse::<ProofId>().unwrap(), id);
        }
    }

    #[test]
    fn ids_sort_by_time_then_sequence() {
        let early = ProofId::new(Timestamp::from_millis(1), 0, Sequence::new(9));
        let late = ProofId::new(Timestamp::from_millis(2), 0, Sequence::new(1));
        assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn an_id_has_exactly_one_spelling() {
        let id = IntentId::new(Timestamp::from_millis(1_800_000_000_000), 0x1234_5678);
        let text = id.to_string();
        assert!(text.to_uppercase().parse::<IntentId>().is_err());
        assert!(text.replace('0', "o").parse::<IntentId>().is_err());
        assert!(text.replace("int_", "prf_").parse::<IntentId>().is_err());
        assert!(format!("{text}0").parse::<IntentId>().is_err());
        // 26 characters hold 130 bits: a value above 128 bits is no second spelling either.
        assert!(text.replacen("int_0", "int_8", 1).parse::<IntentId>().is_err());
        assert!("int_é1kqzzzzzzzzzzzzzzzzzzzzzz".parse::<IntentId>().is_err());
    }

    proptest::proptest! {
        #[test]
        fn an_id_is_read_as_the_crate_reads_it(bits in proptest::prelude::any::<u128>(), at in 0_usize..26, byte in 0_u8..128) {
            let mut text = IntentId(Ulid::from_bytes(bits.to_be_bytes())).to_string().into_bytes();
            text[4 + at] = byte;
            let text = String::from_utf8(text).unwrap();
            let by_crate = Ulid::from_string(&text[4..]).ok().map(IntentId).filter(|id| id.to_string() == text);
            proptest::prop_assert_eq!(text.parse::<IntentId>().ok(), by_crate);
        }
    }

    #[test]
    fn an_agent_id_is_the_callers_within_bounds() {
        assert!("support-1".parse::<AgentId>().is_ok());
        assert!("ünïcode agent".parse::<AgentId>().is_ok());
        assert!("a".repeat(256).parse::<AgentId>().is_ok());
        for bad in ["", "   ", "a\nb", "a\u{7f}", "a\u{0}"] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad:?} was accepted");
        }
        assert!("a".repeat(257).parse::<AgentId>().is_err());
    }

    #[test]
    fn a_new_agents_id_hides_nothing() {
        for good in ["support-1", "ünïcode agent", "\u{1f469}\u{200d}\u{1f4bb}"] {
            assert!(good.parse::<AgentId>().unwrap().check_new().is_ok(), "{good:?}");
        }
        for bad in [" a", "a\u{a0}", "a\u{202e}b", "a\u{200b}", "\u{feff}a", "a\u{2067}b"] {
            assert!(bad.parse::<AgentId>().unwrap().check_new().is_err(), "{bad:?} was accepted");
        }
    }
}
