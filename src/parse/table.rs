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

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
            self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            self.0 ^= self.0 >> 32;
        }
    }

    fn finish(&self) -> u64 {
        // `HashMap` takes its tag from the top bits and its bucket from the low bits, so both are mixed.
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}
