//! The frame: one entry of the journal as bytes.
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `RKf2` |
//! | 4 | kind |
//! | 5..8 | zero |
//! | 8..16 | sequence, counted from 0 |
//! | 16..20 | number of entries before this one that were not known to be on disk when it was written |
//! | 20..24 | length of the body |
//! | 24..28 | length of the evidence |
//! | 28..32 | CRC-32 over bytes 0..28, 32..64 and the body |
//! | 32..64 | link: SHA-256 over the link of the entry before, bytes 0..28, and the SHA-256 of the body |
//! | 64.. | body, then evidence |
//!
//! Numbers are little-endian. The link does not cover the evidence; a digest inside the body commits to it. So
//! evidence can be erased and the journal still verifies. No frame ends in a zero byte, so a write that was cut short
//! is visible against the zeros that filled the space before.

use rulekeep_types::{Digest, Sequence, closed_words};

closed_words! {
    /// The kind of a journal entry.
    pub enum Kind("entry kind") {
        /// The store itself: written once, as the first entry.
        Store = "store",
        /// A decision: a proof record and its evidence.
        Decision = "decision",
        /// The outcome of a decision.
        Outcome = "outcome",
        /// The new state of a keyed item, such as an agent or the policies in force.
        State = "state",
        /// A description of what was set aside when the store was opened after a crash.
        Recovery = "recovery",
        /// A condition that an operator should look at.
        Alert = "alert",
        /// Evidence that is erased for good.
        Erasure = "erasure",
        /// A freeze of the log: the last entry, after which none is accepted.
        Freeze = "freeze",
        /// A move of the first entries to an archive.
        Archive = "archive",
        /// The repaired log that this one replaces.
        Repair = "repair",
        /// An operator's confirmation of the clock after it stepped back: times start over from here.
        Clock = "clock",
        /// A report that the outcome of a decision is not known.
        UnknownOutcome = "unknown_outcome",
    }
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Store => 1,
            Self::Decision => 2,
            Self::Outcome => 3,
            Self::State => 4,
            Self::Recovery => 5,
            Self::Alert => 6,
            Self::Erasure => 7,
            Self::Freeze => 8,
            Self::Archive => 9,
            Self::Repair => 10,
            Self::Clock => 11,
            Self::UnknownOutcome => 12,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code)
    }
}

/// The content of an entry to be written.
#[derive(Debug, Clone, Copy)]
pub struct FrameDraft<'a> {
    pub(crate) kind: Kind,
    /// The body: not empty, and its last byte is not zero.
    pub(crate) body: &'a [u8],
    /// The evidence: empty, or its last byte is not zero.
    pub(crate) evidence: &'a [u8],
}

impl FrameDraft<'_> {
    /// Appends the frame's bytes to `out` and returns its link; `digest` is the digest of the body. `behind` is the
    /// number of entries before this one that are not known to be on disk. Returns `None` if body or evidence reaches
    /// 4 GiB.
    pub fn encode(
        &self,
        sequence: Sequence,
        behind: u32,
        previous: &Digest,
        digest: &Digest,
        out: &mut Vec<u8>,
    ) -> Option<Digest> {
        let mut header = [0_u8; LINK_AT];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = self.kind.code();
        header[8..16].copy_from_slice(&sequence.get().to_le_bytes());
        header[16..20].copy_from_slice(&behind.to_le_bytes());
        header[BODY_LEN_AT..EVIDENCE_LEN_AT].copy_from_slice(&u32::try_from(self.body.len()).ok()?.to_le_bytes());
        header[EVIDENCE_LEN_AT..CRC_AT].copy_from_slice(&u32::try_from(self.evidence.len()).ok()?.to_le_bytes());
        let link = link(previous, &header[..CRC_AT], digest);
        let crc = checksum(&header[..CRC_AT], link.as_bytes(), self.body);
        header[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(link.as_bytes());
        out.extend_from_slice(self.body);
        out.extend_from_slice(self.evidence);
        Some(link)
    }

    /// The size of the frame in bytes.
    pub(crate) fn size(&self) -> usize {
        HEADER_BYTES + self.body.len() + self.evidence.len()
    }
}

/// An entry read from the journal, its checksum verified.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) sequence: Sequence,
    pub(crate) behind: u32,
    pub(crate) link: Digest,
    pub(crate) body: &'a [u8],
    pub(crate) evidence: &'a [u8],
    header: &'a [u8],
}

/// The reason no frame could be read at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("no entry starts here")]
    NoMagic,
    #[error("an entry that does not end within the file")]
    Cut,
    #[error("an entry of an unknown kind")]
    UnknownKind,
    #[error("an entry with a wrong checksum")]
    Checksum,
}

impl<'a> Frame<'a> {
    /// Reads the frame at the front of `bytes`.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(FrameError::NoMagic);
        }
        let header = bytes.get(..HEADER_BYTES).ok_or(FrameError::Cut)?;
        let body_len = u32_at(header, BODY_LEN_AT) as usize;
        let evidence_len = u32_at(header, EVIDENCE_LEN_AT) as usize;
        let body_end = HEADER_BYTES.checked_add(body_len).ok_or(FrameError::Cut)?;
        let end = body_end.checked_add(evidence_len).ok_or(FrameError::Cut)?;
        let body = bytes.get(HEADER_BYTES..body_end).ok_or(FrameError::Cut)?;
        let evidence = bytes.get(body_end..end).ok_or(FrameError::Cut)?;
        Self::checked(header, body, evidence)
    }

    /// Reads a frame whose evidence is stored separately. Both parts must have exactly the lengths that the header
    /// claims.
    pub(crate) fn decode_apart(without: &'a [u8], evidence: &'a [u8]) -> Result<Self, FrameError> {
        let (header, body) = without.split_at_checked(HEADER_BYTES).ok_or(FrameError::Cut)?;
        if !header.starts_with(&MAGIC) {
            return Err(FrameError::NoMagic);
        }
        let claimed = (u32_at(header, BODY_LEN_AT) as usize, u32_at(header, EVIDENCE_LEN_AT) as usize);
        if claimed != (body.len(), evidence.len()) {
            return Err(FrameError::Cut);
        }
        Self::checked(header, body, evidence)
    }

    fn checked(header: &'a [u8], body: &'a [u8], evidence: &'a [u8]) -> Result<Self, FrameError> {
        let mut link = [0; 32];
        link.copy_from_slice(&header[LINK_AT..]);
        if checksum(&header[..CRC_AT], &link, body) != u32_at(header, CRC_AT) {
            return Err(FrameError::Checksum);
        }
        let kind = Kind::from_code(header[4]).ok_or(FrameError::UnknownKind)?;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&header[8..16]);
        Ok(Self {
            kind,
            sequence: Sequence::new(u64::from_le_bytes(sequence)),
            behind: u32_at(header, 16),
            link: Digest::new(link),
            body,
            evidence,
            header: &header[..CRC_AT],
        })
    }

    /// The frame's size in bytes.
    pub(crate) fn size(&self) -> usize {
        HEADER_BYTES + self.body.len() + self.evidence.len()
    }

    /// Returns whether the entry has no evidence, or its evidence was erased.
    pub(crate) fn has_no_evidence(&self) -> bool {
        is_gone(self.evidence)
    }

    /// The digest of the body, computed from its bytes.
    pub fn digest(&self) -> Digest {
        digest(self.body)
    }

    /// Computes the link that this frame must carry after `previous`, given the digest of its body.
    pub(crate) fn expected_link(&self, previous: &Digest, digest: &Digest) -> Digest {
        link(previous, self.header, digest)
    }

    /// Number of entries known to be on disk when this one was written.
    pub(crate) fn durable_before(&self) -> u64 {
        self.sequence.get().saturating_sub(u64::from(self.behind))
    }
}

/// The size that the frame at the front of `bytes` claims in its header.
pub fn claimed_size(bytes: &[u8]) -> Option<usize> {
    claimed_sizes(bytes).map(|(_, whole)| whole)
}

/// The sizes that the frame at the front of `bytes` claims: without its evidence, and in all.
pub(crate) fn claimed_sizes(bytes: &[u8]) -> Option<(usize, usize)> {
    let header = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(&MAGIC))?;
    let without = HEADER_BYTES.checked_add(u32_at(header, BODY_LEN_AT) as usize)?;
    Some((without, without.checked_add(u32_at(header, EVIDENCE_LEN_AT) as usize)?))
}

/// The sequence that the frame at the front of `bytes` claims.
pub(super) fn claimed_sequence(bytes: &[u8]) -> Option<u64> {
    let sequence = bytes.get(8..16)?.first_chunk()?;
    Some(u64::from_le_bytes(*sequence))
}

/// The frame at the front of some bytes, split by the sizes that its header claims.
pub(crate) struct Parts<'a> {
    pub(crate) without_evidence: &'a [u8],
    pub(crate) evidence: &'a [u8],
    /// The bytes after the frame.
    pub(crate) rest: &'a [u8],
}

/// Splits the frame at the front of `bytes`; `None` if no complete frame is there.
pub(crate) fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let (without, whole) = claimed_sizes(bytes)?;
    let (frame, rest) = bytes.split_at_checked(whole)?;
    let (without_evidence, evidence) = frame.split_at_checked(without)?;
    Some(Parts { without_evidence, evidence, rest })
}

/// Returns whether evidence is empty or reads as erased.
pub(crate) fn is_gone(evidence: &[u8]) -> bool {
    evidence.iter().all(|byte| *byte == GONE)
}

/// Finds the next offset at which a frame may start.
pub(super) fn find_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|window| window == MAGIC)
}

/// Returns whether `bytes`, up to the end of the data, are a frame with one of its two lengths changed.
pub(crate) fn is_whole_but_for_a_length(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..HEADER_BYTES) else { return false };
    let content = bytes.len() - HEADER_BYTES;
    [(BODY_LEN_AT, EVIDENCE_LEN_AT), (EVIDENCE_LEN_AT, BODY_LEN_AT)].into_iter().any(|(changed, kept)| {
        let right = content.checked_sub(u32_at(header, kept) as usize).and_then(|length| u32::try_from(length).ok());
        let mut mended = bytes.to_vec();
        match (right, mended.get_mut(changed..changed + 4)) {
            (Some(right), Some(place)) if *place != right.to_le_bytes() => place.copy_from_slice(&right.to_le_bytes()),
            _ => return false,
        }
        Frame::decode(&mended).is_ok()
    })
}

/// The byte that overwrites erased evidence. It is not zero, which marks space that was never written.
pub const GONE: u8 = 1;
/// Size of a frame before its body, in bytes.
pub(crate) const HEADER_BYTES: usize = 64;
/// The first bytes of a frame.
pub(crate) const MAGIC: [u8; 4] = *b"RKf2";
pub(super) const BODY_LEN_AT: usize = 20;
pub(super) const EVIDENCE_LEN_AT: usize = 24;
pub(super) const CRC_AT: usize = 28;
pub(super) const LINK_AT: usize = 32;

/// Reads a number of four bytes; 0 if there are fewer.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |number| u32::from_le_bytes(*number))
}

pub(super) fn checksum(header: &[u8], link: &[u8], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(header);
    crc.update(link);
    crc.update(body);
    crc.finalize()
}

/// SHA-256 of a body. For a decision this is the hash of its record.
pub fn digest(body: &[u8]) -> Digest {
    Digest::of(body)
}

pub(super) fn link(previous: &Digest, header: &[u8], digest: &Digest) -> Digest {
    Digest::of_parts(&[previous.as_bytes(), header, digest.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(body: &[u8], evidence: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let draft = FrameDraft { kind: Kind::Decision, body, evidence };
        draft.encode(Sequence::new(7), 2, &Digest::ZERO, &digest(body), &mut out).unwrap();
        out
    }

    #[test]
    fn a_frame_reads_back_as_written() {
        let bytes = encoded(b"body", b"evidence");
        let frame = Frame::decode(&bytes).unwrap();
        assert_eq!((frame.kind, frame.sequence.get(), frame.durable_before()), (Kind::Decision, 7, 5));
        assert_eq!((frame.body, frame.evidence), (&b"body"[..], &b"evidence"[..]));
        assert_eq!(frame.link, frame.expected_link(&Digest::ZERO, &frame.digest()));
        assert_eq!(frame.size(), bytes.len());
        assert_eq!(claimed_size(&bytes), Some(bytes.len()));
    }

    #[test]
    fn any_changed_bit_outside_the_evidence_is_noticed() {
        let bytes = encoded(b"body", b"evidence");
        for at in 0..bytes.len() - b"evidence".len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(Frame::decode(&changed).is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256), tail in any::<bool>()) {
            let mut input = if tail { MAGIC.to_vec() } else { Vec::new() };
            input.extend_from_slice(&bytes);
            let _ = Frame::decode(&input);
            let _ = claimed_size(&input);
        }
    }
}
