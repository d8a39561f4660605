//! Hash tables keyed by words, with a hash function that is fast for short words.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table keyed by words. Its keys come only from the crate's data and from operators, so no input can insert
/// colliding words.
pub(super) type Table<V> = HashMap<Box<str>, V, BuildHasherDefault<WordHasher>>;

/// A table keyed by words of the crate's own data.
pub(super) type Words<V> = HashMap<String, V, BuildHasherDefault<WordHasher>>;

/// A set of words of the crate's own data.
pub(super) type WordSet = HashSet<String, BuildHasherDefault<WordHasher>>;

/// FNV-1a, eight bytes at a time.
/// SOURCE: Fowler, Noll, Vo; offset basis and prime of the 64-bit variant.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl WordHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 32;
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_be_bytes(*word));
        }
        let half = |bytes: &[u8; 4]| u64::from(u32::from_be_bytes(*bytes));
        match (rest.first_chunk(), rest.last_chunk()) {
            // The two overlap, unless there are no bytes between them to be read twice.
            (Some(first), Some(last)) => self.add(half(first) << (8 * (rest.len() - 4)) | half(last)),
            _ if rest.is_empty() => {}
            _ => self.add(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        // `HashMap` takes its tag from the top bits and its bucket from the low bits, so both are mixed.
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::Hash;

    /// The same byte by byte. The order of a table hangs on its hashes, and with it that of sums.
    #[derive(Default)]
    struct ByByte(WordHasher);

    impl Hasher for ByByte {
        fn write(&mut self, bytes: &[u8]) {
            for chunk in bytes.chunks(8) {
                self.0.add(chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
            }
        }

        fn finish(&self) -> u64 {
            self.0.finish()
        }
    }

    proptest! {
        #[test]
        fn words_are_hashed_as_byte_by_byte(words in proptest::collection::vec("[a-z^ ]{0,20}|\\PC{0,8}", 1..3)) {
            let (mut fast, mut slow) = (WordHasher::default(), ByByte::default());
            words.hash(&mut fast);
            words.hash(&mut slow);
            prop_assert_eq!(fast.finish(), slow.finish());
        }
    }
}
