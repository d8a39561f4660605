//! SHA-256 of bytes that are in memory as a whole. The log hashes every entry four times and more. Most messages are a few
//! blocks long, so the state and buffer of a streaming hasher would take a notable part of the time.

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// SHA-256 of some bytes.
pub(super) fn of(bytes: &[u8]) -> [u8; 32] {
    let mut state = INITIAL;
    let (blocks, rest) = if bytes.len() <= MOST_LAST { (&[][..], bytes) } else { bytes.as_chunks::<BLOCK>() };
    compress256(&mut state, blocks);
    let mut last = Last::default();
    last.push(rest);
    last.end(state, bytes.len())
}

/// SHA-256 of some parts, one after the other.
pub(super) fn of_parts(parts: &[&[u8]]) -> [u8; 32] {
    let mut last = Last::default();
    if parts.iter().all(|part| last.push(part)) {
        let length = last.length;
        return last.end(INITIAL, length);
    }
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The last bytes of a message, with room for what ends it.
struct Last {
    blocks: [[u8; BLOCK]; 2],
    length: usize,
}

impl Default for Last {
    fn default() -> Self {
        Self { blocks: [[0; BLOCK]; 2], length: 0 }
    }
}

impl Last {
    /// Adds bytes. Returns false, and adds none, if there is no room.
    fn push(&mut self, bytes: &[u8]) -> bool {
        let end = self.length + bytes.len();
        let Some(place) = self.blocks.as_flattened_mut().get_mut(self.length..end).filter(|_| end <= MOST_LAST) else {
            return false;
        };
        place.copy_from_slice(bytes);
        self.length = end;
        true
    }

    /// The digest of a message of `length` bytes that ends with these, given the state before them.
    // SOURCE: FIPS 180-4, section 5.1.1: a bit of 1, zeros, and the length in bits as the last eight bytes of a block.
    fn end(mut self, mut state: [u32; 8], length: usize) -> [u8; 32] {
        let count = if self.length + END <= BLOCK { 1 } else { 2 };
        let flat = self.blocks.as_flattened_mut();
        if let Some(place) = flat.get_mut(self.length) {
            *place = 0x80;
        }
        if let Some(place) = flat.get_mut(..count * BLOCK).and_then(<[u8]>::last_chunk_mut) {
            *place = (length as u64 * 8).to_be_bytes();
        }
        compress256(&mut state, self.blocks.get(..count).unwrap_or_default());
        let mut digest = [0; 32];
        let (words, _) = digest.as_chunks_mut::<4>();
        for (place, word) in words.iter_mut().zip(state) {
            *place = word.to_be_bytes();
        }
        digest
    }
}

const BLOCK: usize = 64;
/// Bytes that end a message at the least.
const END: usize = 9;
/// Most bytes that two blocks hold beside what ends the message.
const MOST_LAST: usize = 2 * BLOCK - END;
/// The state at the beginning. SOURCE: FIPS 180-4, section 5.3.3.
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_length_is_ended_as_the_hasher_ends_it() {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(400).collect();
        for length in 0..bytes.len() {
            assert_eq!(of(&bytes[..length]), <[u8; 32]>::from(Sha256::digest(&bytes[..length])), "{length}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_hashed_as_the_hasher_hashes_them(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..70), 0..5),
        ) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(of_parts(&parts), <[u8; 32]>::from(Sha256::digest(parts.concat())));
        }
    }
}
