//! The index that finds the rules relevant to a capability without scanning the others.
//!
//! Each group of rules is stored under keys of five parts: resource, operation, action, asker (agent, label or group)
//! and environment. A part is the number of an exact word, the number of a glob's literal start or end, or [`ANY`]. A
//! request is converted to the same numbers once, and then probes only the combinations that some rule uses.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::binding::{self, Binding};
use super::numbers::{ACTIONS, AGENTS, ANY, FAMILY_AND_KIND, Few, GROUPS, LABELS, NameNumbers, QuickState, Words};
use super::pattern::Names;
use super::request::PolicyRequest;
use super::rule::{ENVIRONMENT_KEY, Effect, Levels, Match, Rule};
use rulekeep_types::Capability;
use rulekeep_types::facts::{Act, Kind, Kinds};

/// The index over the groups of a policy set.
#[derive(Debug, Default)]
pub(super) struct Index {
    resources: Words,
    operations: Words,
    actions: NameNumbers,
    agents: NameNumbers,
    labels: NameNumbers,
    groups: NameNumbers,
    environments: Words,
    /// The combinations of `ANY` and numbers that occur, one bit each.
    shapes: u32,
    places: HashMap<Key, u32, QuickState>,
    buckets: Vec<Bucket>,
}

/// The groups under one key, by effect.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    // INVARIANT: one list for each effect, in order of rank.
    by_effect: [Vec<Entry>; Effect::ALL.len()],
}

/// A group, with the levels that are compared before its rule is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    levels: Levels,
    pub(super) group: u32,
    settled: Settled,
}

/// Whether the key and the levels settle the match, so that no clause of the rule is left to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    No,
    /// Only for a request with a single act, because all clauses about acts must hold of the same act.
    OfOneAct,
    Yes,
}

impl Entry {
    /// Returns whether the rule's levels include those of the request.
    pub(super) fn may_match(self, numbers: &RequestNumbers) -> bool {
        self.levels.contains(numbers.levels)
    }

    /// Returns whether no clause of the rule is left to compare.
    pub(super) fn is_settled(self, numbers: &RequestNumbers) -> bool {
        match self.settled {
            Settled::No => false,
            Settled::OfOneAct => numbers.is_one_act,
            Settled::Yes => true,
        }
    }
}

/// A request converted to index numbers.
pub(super) struct RequestNumbers {
    levels: Levels,
    environment: u32,
    actions: Few,
    askers: Few,
    /// Whether the request has a single act, which does a single thing.
    is_one_act: bool,
}

impl Index {
    /// Adds a group; all its rules have the same clauses.
    pub(super) fn add(&mut self, group: u32, rule: &Rule) {
        for key in self.keys(rule) {
            self.shapes |= 1 << key.shape();
            let next = u32::try_from(self.buckets.len()).unwrap_or(u32::MAX);
            let place = *self.places.entry(key).or_insert(next);
            if place == next {
                self.buckets.push(Bucket::default());
            }
            if let Some(bucket) = self.buckets.get_mut(place as usize) {
                let entry = Entry { levels: rule.matches.levels, group, settled: key.settles(rule) };
                let entries = &mut bucket.by_effect[rule.effect as usize];
                // Two names of one rule can share a prefix.
                if entries.last().is_none_or(|last| last.group != group) {
                    entries.push(entry);
                }
            }
        }
    }

    /// Converts a request's names to numbers, once for all of its capabilities.
    pub(super) fn numbers(&self, request: &PolicyRequest<'_>) -> RequestNumbers {
        let mut numbers = RequestNumbers {
            levels: Levels::of(request),
            environment: self.environment(request),
            actions: Few::from_slice(&[ANY]),
            askers: Few::from_slice(&[ANY]),
            is_one_act: request.intent.known.as_ref().is_none_or(|facts| {
                matches!(facts.acts.as_slice(), [act] if matches!(act.does.as_slice(), [one] if one.action == request.intent.parsed_action) && act.open.is_empty())
            }),
        };
        if !self.actions.is_empty() {
            self.actions.find(request.intent.parsed_action.as_str(), ACTIONS, &mut numbers.actions);
            let acts = request.intent.known.iter().flat_map(|facts| &facts.acts);
            for doing in acts.flat_map(|act| &act.does).filter(|doing| doing.action != request.intent.parsed_action) {
                self.actions.find(doing.action.as_str(), ACTIONS, &mut numbers.actions);
            }
            let is_unread = |act: &Act| binding::openness(act, Kinds::of(&[Kind::Command])) == Binding::Maybe;
            if request.intent.known.iter().flat_map(|facts| &facts.acts).any(is_unread) {
                // A command that is not known may do anything.
                self.actions.all(ACTIONS, &mut numbers.actions);
            }
            numbers.actions.sort_unstable();
            numbers.actions.dedup();
        }
        self.agents.find(request.intent.agent_id.as_str(), AGENTS, &mut numbers.askers);
        if !self.labels.is_empty() {
            for label in &request.traits.labels {
                self.labels.find(label.as_str(), LABELS, &mut numbers.askers);
            }
        }
        if !self.groups.is_empty() {
            for group in &request.traits.groups {
                self.groups.find(group.as_str(), GROUPS, &mut numbers.askers);
            }
        }
        numbers
    }

    /// The numbers under which every rule is indexed that matches all that `matches` does at some levels.
    pub(super) fn numbers_of_rule(&self, matches: &Match, levels: Levels) -> RequestNumbers {
        let environment = matches.environment.first().and_then(|name| self.environments.number(name)).unwrap_or(ANY);
        let mut actions = Few::from_slice(&[ANY]);
        let mut askers = actions.clone();
        let find = |index: &NameNumbers, names: &Names, family: u32, found: &mut Few| {
            names.texts().take(1).for_each(|name| index.find(name, family, found));
        };
        find(&self.actions, &matches.actions, ACTIONS, &mut actions);
        find(&self.agents, &matches.agents, AGENTS, &mut askers);
        find(&self.labels, &matches.labels, LABELS, &mut askers);
        find(&self.groups, &matches.groups, GROUPS, &mut askers);
        RequestNumbers { levels, environment, actions, askers, is_one_act: true }
    }

    /// The buckets whose groups may match a capability.
    pub(super) fn buckets(&self, numbers: &RequestNumbers, capability: &Capability) -> Few {
        self.buckets_of(numbers, Some(capability.resource_word()), Some(capability.operation_word()))
    }

    /// The buckets whose groups may match a resource and an operation; `None` stands for any.
    pub(super) fn buckets_of(&self, numbers: &RequestNumbers, resource: Option<&str>, operation: Option<&str>) -> Few {
        let mut found = Few::default();
        let resource = resource.and_then(|word| self.resources.number(word)).unwrap_or(ANY);
        let operation = operation.and_then(|word| self.operations.number(word)).unwrap_or(ANY);
        for resource in any_and(resource) {
            for operation in any_and(operation) {
                for &action in &numbers.actions {
                    for &asker in &numbers.askers {
                        for environment in any_and(numbers.environment) {
                            let key = Key { resource, operation, action, asker, environment };
                            let is_filed = self.shapes & (1 << key.shape()) != 0;
                            if is_filed && let Some(place) = self.places.get(&key) {
                                found.push(*place);
                            }
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

    /// The number of the request's environment; [`ANY`] if no rule names it.
    fn environment(&self, request: &PolicyRequest<'_>) -> u32 {
        if self.environments.is_empty() {
            return ANY;
        }
        let name = request.intent.context.get(ENVIRONMENT_KEY).and_then(Value::as_str);
        name.and_then(|name| self.environments.number(&name.trim().to_lowercase())).unwrap_or(ANY)
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
        } else if narrows(&matches.groups, room) {
            self.groups.add(&matches.groups, GROUPS)
        } else {
            vec![ANY]
        };
        for numbers in [&mut actions, &mut askers] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let room = room * askers.len();
        let environments: Vec<u32> =
            if matches.environment.is_empty() || room.saturating_mul(matches.environment.len()) > MAX_KEYS {
                vec![ANY]
            } else {
                matches.environment.iter().map(|word| self.environments.add(word)).collect()
            };
        let mut keys = Vec::with_capacity(room * environments.len());
        for &(resource, operation) in &capabilities {
            for &action in &actions {
                for &asker in &askers {
                    let key = |&environment: &u32| Key { resource, operation, action, asker, environment };
                    keys.extend(environments.iter().map(key));
                }
            }
        }
        keys
    }
}

/// The numbers that a part of a key is looked up by: `ANY`, and the number itself.
fn any_and(number: u32) -> impl Iterator<Item = u32> {
    [ANY, number].into_iter().take(if number == ANY { 1 } else { 2 })
}

/// Returns whether names are worth a part of the key: all of them have a literal start or end, and the rule is not
/// stored under too many keys.
fn narrows(names: &Names, keys_so_far: usize) -> bool {
    let count = names.exact().count() + names.globs().len();
    !names.is_any()
        && names.globs().iter().all(|glob| !glob.literal_prefix().is_empty() || !glob.literal_suffix().is_empty())
        && count.saturating_mul(keys_so_far) <= MAX_KEYS
}

/// Maximum number of keys that one rule is stored under.
const MAX_KEYS: usize = 256;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    resource: u32,
    operation: u32,
    action: u32,
    asker: u32,
    environment: u32,
}

impl Key {
    fn shape(self) -> u32 {
        u32::from(self.resource != ANY)
            | u32::from(self.operation != ANY) << 1
            | u32::from(self.action != ANY) << 2
            | u32::from(self.asker != ANY) << 3
            | u32::from(self.environment != ANY) << 4
    }
}

impl Key {
    /// Returns whether every request found by this key, with the levels of the entry, matches the rule.
    fn settles(self, rule: &Rule) -> Settled {
        let is_exact = |number: u32, family: u32| number != ANY && number & FAMILY_AND_KIND == family;
        let matches = &rule.matches;
        let is_settled = (matches.actions.is_any() || is_exact(self.action, ACTIONS))
            && matches.commands.is_any()
            && (matches.agents.is_any() || is_exact(self.asker, AGENTS))
            && (matches.labels.is_any() || is_exact(self.asker, LABELS))
            && (matches.groups.is_any() || is_exact(self.asker, GROUPS))
            && (matches.environment.is_empty() || self.environment != ANY)
            && matches.context.is_empty()
            && matches.not.is_none()
            && !rule.is_conditional();
        match (is_settled, matches.actions.is_any()) {
            (false, _) => Settled::No,
            (true, true) => Settled::Yes,
            (true, false) => Settled::OfOneAct,
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.resource) << 32 | u64::from(self.operation));
        state.write_u64(u64::from(self.action) << 32 | u64::from(self.asker));
        if self.environment != ANY {
            state.write_u64(u64::from(self.environment));
        }
    }
}
