//! Which rules to look at for a capability, without looking at the others.
//!
//! Each group of rules stands under keys of four halves: resource, operation,
//! action and who asks. A half is the number of an exact word, of the literal
//! prefix of a glob, or [`ANY`]. A request is turned into the same numbers once,
//! and probes only the combinations that some rule has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use serde_json::Value;

use super::evaluate::PolicyRequest;
use super::pattern::Names;
use super::rule::{ENVIRONMENT_KEY, Effect, Levels, Rule};
use crate::model::Capability;

/// The index over the groups of a policy set.
#[derive(Debug, Default)]
pub(super) struct Index {
    resources: Words,
    operations: Words,
    actions: NameNumbers,
    agents: NameNumbers,
    labels: NameNumbers,
    environments: Words,
    /// Which combinations of `ANY` and numbers exist, a bit each.
    shapes: u16,
    places: HashMap<Key, u32, QuickState>,
    buckets: Vec<Bucket>,
}

/// Groups under one key, by effect.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    // INVARIANT: one list for each effect, in the order of their rank.
    by_effect: [Vec<Entry>; Effect::ALL.len()],
}

/// A group, with what is compared before its rule is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    levels: Levels,
    /// The number of the one environment that it is about, or [`ANY`].
    environment: u32,
    pub(super) group: u32,
}

impl Entry {
    /// Whether the rule is worth opening for a request.
    pub(super) fn may_match(self, numbers: &RequestNumbers) -> bool {
        self.levels.contains(numbers.levels) && (self.environment == ANY || self.environment == numbers.environment)
    }
}

/// A request in numbers.
pub(super) struct RequestNumbers {
    levels: Levels,
    environment: u32,
    actions: Few,
    askers: Few,
}

impl Index {
    /// Adds a group, whose rules all match alike.
    pub(super) fn add(&mut self, group: u32, rule: &Rule) {
        // Several environments are left to the rule itself.
        let environment = match rule.matches.environment.as_slice() {
            [only] => self.environments.add(only),
            _ => ANY,
        };
        let entry = Entry { levels: rule.matches.levels, environment, group };
        for key in self.keys(rule) {
            self.shapes |= 1 << key.shape();
            let next = u32::try_from(self.buckets.len()).unwrap_or(u32::MAX);
            let place = *self.places.entry(key).or_insert(next);
            if place == next {
                self.buckets.push(Bucket::default());
            }
            if let Some(bucket) = self.buckets.get_mut(place as usize) {
                let entries = &mut bucket.by_effect[rule.effect as usize];
                // Two names of one rule can share a prefix.
                if entries.last().is_none_or(|last| last.group != group) {
                    entries.push(entry);
                }
            }
        }
    }

    /// A request's names as numbers, to be used for each of its capabilities.
    pub(super) fn numbers(&self, request: &PolicyRequest<'_>) -> RequestNumbers {
        let mut numbers = RequestNumbers {
            levels: Levels::of(request),
            environment: self.environment(request),
            actions: Few::of(ANY),
            askers: Few::of(ANY),
        };
        self.actions.find(request.intent.parsed_action.as_str(), ACTIONS, &mut numbers.actions);
        self.agents.find(request.intent.agent_id.as_str(), AGENTS, &mut numbers.askers);
        if !self.labels.is_empty() {
            for label in request.labels {
                self.labels.find(label.as_str(), LABELS, &mut numbers.askers);
            }
        }
        numbers
    }

    /// The buckets whose groups may match and speak about a capability.
    pub(super) fn buckets(&self, numbers: &RequestNumbers, capability: &Capability) -> Few {
        let mut found = Few::default();
        let resource = self.resources.number(capability.resource_word());
        let operation = self.operations.number(capability.operation_word());
        for resource in [Some(ANY), resource].into_iter().flatten() {
            for operation in [Some(ANY), operation].into_iter().flatten() {
                for action in numbers.actions.iter() {
                    for asker in numbers.askers.iter() {
                        let key = Key { resource, operation, action, asker };
                        let is_filed = self.shapes & (1 << key.shape()) != 0;
                        if is_filed && let Some(place) = self.places.get(&key) {
                            found.push(*place);
                        }
                    }
                }
            }
        }
        found
    }

    /// The groups of an effect in a bucket.
    pub(super) fn entries(&self, bucket: u32, effect: Effect) -> &[Entry] {
        self.buckets.get(bucket as usize).map_or(&[], |bucket| &bucket.by_effect[effect as usize])
    }

    /// The number of the request's environment, [`ANY`] when no rule names it.
    fn environment(&self, request: &PolicyRequest<'_>) -> u32 {
        if self.environments.0.is_empty() {
            return ANY;
        }
        let name = request.intent.context.get(ENVIRONMENT_KEY).and_then(Value::as_str);
        name.and_then(|name| self.environments.number(&name.to_lowercase())).unwrap_or(ANY)
    }

    fn keys(&mut self, rule: &Rule) -> Vec<Key> {
        let matches = &rule.matches;
        let mut capabilities: Vec<(u32, u32)> = matches
            .capabilities
            .iter()
            .map(|pattern| {
                let resource = pattern.resource.as_deref().map_or(ANY, |word| self.resources.add(word));
                let operation = pattern.operation.as_deref().map_or(ANY, |word| self.operations.add(word));
                (resource, operation)
            })
            .collect();
        if capabilities.is_empty() {
            capabilities.push((ANY, ANY));
        }
        let mut actions = if narrows(&matches.actions, capabilities.len()) {
            self.actions.add(&matches.actions, ACTIONS)
        } else {
            vec![ANY]
        };
        let room = capabilities.len() * actions.len();
        let mut askers = if narrows(&matches.agents, room) {
            self.agents.add(&matches.agents, AGENTS)
        } else if narrows(&matches.labels, room) {
            self.labels.add(&matches.labels, LABELS)
        } else {
            vec![ANY]
        };
        for numbers in [&mut actions, &mut askers] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let mut keys = Vec::with_capacity(capabilities.len() * actions.len() * askers.len());
        for &(resource, operation) in &capabilities {
            for &action in &actions {
                keys.extend(askers.iter().map(|&asker| Key { resource, operation, action, asker }));
            }
        }
        keys
    }
}

/// Whether names are worth a part of the key: all of them have a literal start or
/// end, and the rule does not come to stand under too many keys.
fn narrows(names: &Names, keys_so_far: usize) -> bool {
    let count = names.exact().count() + names.globs().len();
    !names.is_any()
        && names.globs().iter().all(|glob| !glob.literal_prefix().is_empty() || !glob.literal_suffix().is_empty())
        && count.saturating_mul(keys_so_far) <= MAX_KEYS
}

/// Stands for "whatever it is".
const ANY: u32 = 0;
/// Most keys that one rule stands under.
const MAX_KEYS: usize = 256;
// The lowest bits of a name's number tell an agent from a label, and an exact
// name from the start or the end of a glob.
const ACTIONS: u32 = 0;
const AGENTS: u32 = 0;
const LABELS: u32 = 4;
const PREFIX: u32 = 1;
const SUFFIX: u32 = 2;
const NAME_BITS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    resource: u32,
    operation: u32,
    action: u32,
    asker: u32,
}

impl Key {
    fn shape(self) -> u32 {
        u32::from(self.resource != ANY)
            | u32::from(self.operation != ANY) << 1
            | u32::from(self.action != ANY) << 2
            | u32::from(self.asker != ANY) << 3
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.resource) << 32 | u64::from(self.operation));
        state.write_u64(u64::from(self.action) << 32 | u64::from(self.asker));
    }
}

/// Words by number, from 1.
#[derive(Debug, Default)]
struct Words(HashMap<Box<str>, u32, QuickState>);

impl Words {
    fn add(&mut self, word: &str) -> u32 {
        if let Some(number) = self.number(word) {
            return number;
        }
        let number = u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX);
        self.0.insert(word.into(), number);
        number
    }

    fn number(&self, word: &str) -> Option<u32> {
        self.0.get(word).copied()
    }
}

/// Exact names, and the literal starts or ends of globs, by number.
#[derive(Debug, Default)]
struct NameNumbers {
    exact: Words,
    prefixes: Affixes,
    suffixes: Affixes,
}

impl NameNumbers {
    fn is_empty(&self) -> bool {
        self.exact.0.is_empty() && self.prefixes.lengths.is_empty() && self.suffixes.lengths.is_empty()
    }

    fn add(&mut self, names: &Names, family: u32) -> Vec<u32> {
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

    fn find(&self, name: &str, family: u32, numbers: &mut Few) {
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

/// Starts or ends of names by number, and the lengths that they have.
#[derive(Debug, Default)]
struct Affixes {
    words: Words,
    /// In bytes, sorted.
    lengths: Vec<usize>,
}

impl Affixes {
    fn add(&mut self, affix: &str) -> u32 {
        if let Err(place) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(place, affix.len());
        }
        self.words.add(affix)
    }

    fn lengths_within(&self, name: &str) -> impl Iterator<Item = usize> {
        let most = name.len();
        self.lengths.iter().copied().take_while(move |length| *length <= most)
    }

    /// None for a cut amid a character, which no affix can be.
    fn number(&self, affix: Option<&str>) -> Option<u32> {
        self.words.number(affix?)
    }
}

/// A short list of numbers that rarely needs the heap.
#[derive(Debug, Default)]
pub(super) struct Few {
    inline: [u32; Self::INLINE],
    length: usize,
    more: Vec<u32>,
}

impl Few {
    const INLINE: usize = 12;

    fn of(number: u32) -> Self {
        let mut few = Self::default();
        few.push(number);
        few
    }

    pub(super) fn push(&mut self, number: u32) {
        match self.inline.get_mut(self.length) {
            Some(slot) => {
                *slot = number;
                self.length += 1;
            }
            None => self.more.push(number),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.inline.iter().take(self.length).chain(&self.more).copied()
    }
}

impl FromIterator<u32> for Few {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut few = Self::default();
        numbers.into_iter().for_each(|number| few.push(number));
        few
    }
}

type QuickState = BuildHasherDefault<QuickHasher>;

/// A hasher for keys that only the author of the policy chooses: requests look
/// up and never insert, so a caller has no collisions to gain by.
#[derive(Debug, Default)]
struct QuickHasher(u64);

impl QuickHasher {
    fn mix(&mut self, word: u64) {
        // The golden ratio's multiplier spreads the low bits; the fold brings them back down.
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
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
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
