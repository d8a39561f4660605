//! Maps names to numbers: the words, names, prefixes and suffixes that rules use. A request's names are looked up
//! once and compared as numbers from then on.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::pattern::Names;

/// Words and their numbers, from 1.
#[derive(Debug, Default)]
pub(super) struct Words(HashMap<Box<str>, u32, QuickState>);

impl Words {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, word: &str) -> u32 {
        if let Some(number) = self.number(word) {
            return number;
        }
        let number = u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX);
        self.0.insert(word.into(), number);
        number
    }

    pub(super) fn number(&self, word: &str) -> Option<u32> {
        self.0.get(word).copied()
    }
}

/// Exact names, and the literal prefixes and suffixes of globs, with their numbers.
#[derive(Debug, Default)]
pub(super) struct NameNumbers {
    exact: Words,
    prefixes: Affixes,
    suffixes: Affixes,
}

impl NameNumbers {
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.lengths.is_empty() && self.suffixes.lengths.is_empty()
    }

    pub(super) fn add(&mut self, names: &Names, family: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = names.exact().map(|name| self.exact.add(name) << NAME_BITS | family).collect();
        for glob in names.globs() {
            let number = match glob.literal_prefix() {
                "" => self.suffixes.add(glob.literal_suffix()) << NAME_BITS | SUFFIX,
                prefix => self.prefixes.add(prefix) << NAME_BITS | PREFIX,
            };
            numbers.push(number | family);
        }
        numbers
    }

    /// Adds the numbers of all names.
    pub(super) fn all(&self, family: u32, numbers: &mut Few) {
        for (words, kind) in [(&self.exact, 0), (&self.prefixes.words, PREFIX), (&self.suffixes.words, SUFFIX)] {
            numbers.extend(words.0.values().map(|number| number << NAME_BITS | family | kind));
        }
    }

    pub(super) fn find(&self, name: &str, family: u32, numbers: &mut Few) {
        if let Some(number) = self.exact.number(name) {
            numbers.push(number << NAME_BITS | family);
        }
        for number in self.prefixes.lengths_within(name).filter_map(|length| self.prefixes.number(name.get(..length))) {
            numbers.push(number << NAME_BITS | family | PREFIX);
        }
        for length in self.suffixes.lengths_within(name) {
            if let Some(number) = self.suffixes.number(name.get(name.len() - length..)) {
                numbers.push(number << NAME_BITS | family | SUFFIX);
            }
        }
    }
}

/// Prefixes or suffixes with their numbers, and the lengths that occur.
#[derive(Debug, Default)]
struct Affixes {
    words: Words,
    /// In bytes, sorted.
    lengths: Vec<usize>,
}

impl Affixes {
    pub(super) fn add(&mut self, affix: &str) -> u32 {
        if let Err(place) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(place, affix.len());
        }
        self.words.add(affix)
    }

    fn lengths_within(&self, name: &str) -> impl Iterator<Item = usize> {
        let most = name.len();
        self.lengths.iter().copied().take_while(move |length| *length <= most)
    }

    /// The number of an affix. `None` stands for a cut inside a character, which is never an affix.
    pub(super) fn number(&self, affix: Option<&str>) -> Option<u32> {
        self.words.number(affix?)
    }
}

/// A short list of numbers that rarely needs the heap.
pub(super) type Few = SmallVec<[u32; 8]>;

pub(super) type QuickState = BuildHasherDefault<QuickHasher>;

/// A fast hasher for keys that only the policy's author chooses. Requests look up and never insert, so callers gain
/// nothing from collisions.
#[derive(Debug, Default)]
pub(super) struct QuickHasher(u64);

impl QuickHasher {
    fn mix(&mut self, word: u64) {
        // SOURCE: the golden ratio's multiplier. It spreads the low bits, and folding brings the high bits back down.
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(SPREAD));
        #[expect(clippy::cast_possible_truncation, reason = "both halves are folded into one")]
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = folded.wrapping_add(SPREAD);
    }
}

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Stands for any value.
pub(super) const ANY: u32 = 0;
// The low bits of a name's number tell an agent from a label or a group, and an exact name from a glob's prefix or
// suffix.
pub(super) const ACTIONS: u32 = 0;
pub(super) const AGENTS: u32 = 0;
pub(super) const LABELS: u32 = 4;
pub(super) const GROUPS: u32 = 8;
const PREFIX: u32 = 1;
const SUFFIX: u32 = 2;
const NAME_BITS: u32 = 4;
pub(super) const FAMILY_AND_KIND: u32 = 15;
