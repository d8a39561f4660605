//! Reconstruction of an entry with one flipped bit: the checksum tells which bit, and the link proves it.

use super::frame::{self, BODY_LEN_AT, CRC_AT, EVIDENCE_LEN_AT, HEADER_BYTES, LINK_AT};
use rulekeep_types::Digest;

/// Returns the link of a damaged entry and the digest of its body, as they were before one bit was flipped. `bytes`
/// begins with the entry and ends where the next one does, or later; `previous` is the link of the entry before.
///
/// Returns `None` if more is damaged, or if the entry was not written after an entry with that link.
pub(super) fn mended(bytes: &[u8], previous: &Digest) -> Option<(Digest, Digest)> {
    let content = bytes.len().checked_sub(HEADER_BYTES)?;
    let claimed = frame::u32_at(bytes, BODY_LEN_AT) as usize;
    // The flipped bit may be in the body length, so the length is also derived from the rest.
    let by_the_rest = content.checked_sub(frame::u32_at(bytes, EVIDENCE_LEN_AT) as usize);
    std::iter::once(claimed).chain(by_the_rest).find_map(|body| {
        let frame = bytes.get(..HEADER_BYTES.checked_add(body)?)?;
        let mut frame = frame.to_vec();
        unflip(&mut frame)?;
        let (header, rest) = frame.split_at_checked(CRC_AT)?;
        let (link, body) = rest.get(LINK_AT - CRC_AT..)?.split_first_chunk()?;
        let (link, digest) = (Digest::new(*link), frame::digest(body));
        (frame::link(previous, header, &digest) == link).then_some((link, digest))
    })
}

/// Flips the one bit back by which a frame, given without its evidence, differs from its checksum. Returns `None` if
/// more than one bit differs.
fn unflip(frame: &mut [u8]) -> Option<()> {
    let (header, rest) = frame.split_at_checked(CRC_AT)?;
    let (link, body) = rest.get(LINK_AT - CRC_AT..)?.split_at_checked(HEADER_BYTES - LINK_AT)?;
    let difference = frame::checksum(header, link, body) ^ frame::u32_at(frame, CRC_AT);
    if difference.is_power_of_two() {
        // The flipped bit is in the checksum itself.
        return Some(());
    }
    let is_checked = |place: &usize| !(CRC_AT..LINK_AT).contains(place);
    // The effect of a flipped bit on the checksum, from the last bit to the first.
    let mut change = POLYNOMIAL;
    for place in (0..frame.len()).rev().filter(is_checked) {
        for bit in (0..8).rev() {
            if change == difference {
                *frame.get_mut(place)? ^= 1 << bit;
                return Some(());
            }
            change = (change >> 1) ^ (POLYNOMIAL * (change & 1));
        }
    }
    None
}

/// The CRC-32 (IEEE) polynomial, in reflected bit order.
const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{FrameDraft, Kind};
    use rulekeep_types::Sequence;

    const PREVIOUS: Digest = Digest::new([3; 32]);

    fn frame() -> (Vec<u8>, Digest, Digest) {
        let draft = FrameDraft { kind: Kind::State, body: b"{\"a\":\"body\"}", evidence: b"evidence" };
        let digest = frame::digest(draft.body);
        let mut bytes = Vec::new();
        let link = draft.encode(Sequence::new(7), 2, &PREVIOUS, &digest, &mut bytes).unwrap();
        (bytes, link, digest)
    }

    #[test]
    fn an_entry_is_known_whichever_bit_of_it_is_flipped() {
        let (intact, link, digest) = frame();
        for bit in 0..(intact.len() - b"evidence".len()) * 8 {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mended(&bytes, &PREVIOUS), Some((link, digest)), "bit {bit}");
        }
    }

    #[test]
    fn an_entry_after_another_or_with_more_changes_is_not_mended() {
        let (intact, ..) = frame();
        let mut bytes = intact.clone();
        bytes[70] ^= 1;
        assert_eq!(mended(&bytes, &Digest::new([4; 32])), None);
        bytes[75] ^= 1;
        assert_eq!(mended(&bytes, &PREVIOUS), None);
        for cut in 0..intact.len() {
            assert_eq!(mended(&bytes[..cut], &PREVIOUS), None, "{cut} bytes");
        }
    }
}
