//! Hash tables by word, with a hash that is fast on short words.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by word. Its keys come from the crate's data and an operator's alone, so that no input can
/// fill it with words that collide.
pub(super) type Table<V> = HashMap<Box<str>, V, BuildHasherDefault<WordHasher>>;

/// A table by word of the crate's own data.
pub(super) type Words<V> = HashMap<String, V, BuildHasherDefault<WordHasher>>;

/// A set of words of the crate's own data.
pub(super) type WordSet = HashSet<String, BuildHasherDefault<WordHasher>>;

/// FNV-1a over eight bytes at a time.
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
        // The table takes its tag from the top bits and its bucket from the low ones: mix both.
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}
