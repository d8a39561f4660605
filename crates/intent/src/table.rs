//! Hash tables keyed by words, with a hash function that is fast for short words.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

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

/// Words in order, which are also a set. `start*` and `*end` stand for all words with that start or end.
#[derive(Debug, Default)]
pub(crate) struct List {
    words: Vec<String>,
    set: WordSet,
    starts: Vec<String>,
    ends: Vec<String>,
}

impl List {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.set.contains(word)
    }

    /// Returns whether the list has the word, or a start or an end of it.
    pub(crate) fn fits(&self, word: &str) -> bool {
        self.has(word)
            || self.starts.iter().any(|start| word.starts_with(start.as_str()))
            || self.ends.iter().any(|end| word.ends_with(end.as_str()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(D::Error::custom("a list has no words"));
        }
        let starts = words.iter().filter_map(|word| word.strip_suffix('*').filter(|start| !start.is_empty()));
        let ends = words.iter().filter_map(|word| word.strip_prefix('*').filter(|end| !end.is_empty()));
        Ok(Self {
            starts: starts.map(str::to_owned).collect(),
            ends: ends.map(str::to_owned).collect(),
            set: words.iter().cloned().collect(),
            words,
        })
    }
}

/// Reads a table of the crate's own data.
pub(crate) fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| format!("data/{name}.toml does not read: {error}"))
}

/// Defines a table of lists, each a key of its file, besides fields of other types.
macro_rules! lists {
    ($(#[$doc:meta])* $name:ident { $(pub $other:ident: $type:ty,)* } $($list:ident)*) => {
        $(#[$doc])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub $other: $type,)*
            $(pub $list: $crate::table::List,)*
        }
    };
}
pub(crate) use lists;

/// Words sorted by their meaning.
#[derive(Debug)]
pub(crate) struct Sorted<T>(Words<T>);

impl<T: Copy> Sorted<T> {
    pub(crate) fn of(&self, word: &str) -> Option<T> {
        self.0.get(word).copied()
    }

    /// The word as the table has it, and its meaning.
    pub(crate) fn entry(&self, word: &str) -> Option<(&str, T)> {
        self.0.get_key_value(word).map(|(word, meaning)| (word.as_str(), *meaning))
    }
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Words::default())
    }
}

impl<'de, T: Deserialize<'de> + Copy + Eq + Hash> Deserialize<'de> for Sorted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let lists: HashMap<T, String> = HashMap::deserialize(deserializer)?;
        let mut words = Words::default();
        for (meaning, list) in lists {
            for word in list.split_whitespace() {
                if words.insert(word.to_owned(), meaning).is_some() {
                    return Err(D::Error::custom(format!("`{word}` stands twice")));
                }
            }
        }
        Ok(Self(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
