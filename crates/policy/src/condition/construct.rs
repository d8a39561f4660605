//! Checks of the constructs that depend only on their parts: operators, literals and calls. Each function takes typed
//! parts and either refuses them, with a position, or builds the node.

use regex::RegexBuilder;

use super::MAX_PATTERN_BYTES;
use super::error::ConditionError;
use super::facts::{Facts, Typed, expect, finish};
use super::names::{self, Method};
use super::time::{is_zone, zone_names};
use super::tree::{Function, Kind, Node, Part, Relation, Root, TextFunction};
use super::types::Type;
use super::value::{List, Value};
use rulekeep_types::document::did_you_mean;
use rulekeep_types::{RiskLevel, Tier};

type Result<T> = std::result::Result<T, ConditionError>;

pub(super) fn constant(at: usize, value: Value<'static>, kind: Type) -> Result<Typed> {
    finish(at, Kind::Constant(value), kind, Facts::leaf())
}

/// `&&` (if `decides` is false) or `||` (if it is true) over two or more terms.
pub(super) fn logical(at: usize, decides: bool, mut terms: Vec<Typed>) -> Result<Typed> {
    for term in &terms {
        expect(term, &Type::Bool)?;
    }
    let facts = Facts::over(&terms);
    let is = |term: &Typed, truth| matches!(term.node.kind, Kind::Constant(Value::Bool(value)) if value == truth);
    if terms.iter().any(|term| is(term, decides)) {
        return constant(at, Value::Bool(decides), Type::Bool);
    }
    terms.retain(|term| !is(term, !decides));
    match terms.pop() {
        None => return constant(at, Value::Bool(!decides), Type::Bool),
        Some(only) if terms.is_empty() && only.kind == Type::Bool => return Ok(only),
        Some(last) => terms.push(last),
    }
    let terms = terms.into_iter().map(|term| term.node).collect();
    finish(at, if decides { Kind::Or(terms) } else { Kind::And(terms) }, Type::Bool, facts)
}

pub(super) fn not(at: usize, inner: Typed) -> Result<Typed> {
    expect(&inner, &Type::Bool)?;
    let facts = Facts::over([&inner]);
    finish(at, Kind::Not(Box::new(inner.node)), Type::Bool, facts)
}

pub(super) fn negate(at: usize, inner: Typed) -> Result<Typed> {
    if !matches!(inner.kind, Type::Int | Type::Double | Type::Dyn) {
        return Err(ConditionError::new(at, format!("- takes int or double, not {}", inner.kind)));
    }
    let (facts, kind) = (Facts::over([&inner]), inner.kind.clone());
    finish(at, Kind::Negate(Box::new(inner.node)), kind, facts)
}

pub(super) fn ternary(at: usize, condition: Typed, yes: Typed, no: Typed) -> Result<Typed> {
    expect(&condition, &Type::Bool)?;
    let Some(kind) = yes.kind.join(&no.kind) else {
        let message = format!("? gives {} or {}; both have to be of one type", yes.kind, no.kind);
        return Err(ConditionError::new(at, message));
    };
    if let Kind::Constant(Value::Bool(truth)) = condition.node.kind {
        let chosen = if truth { yes } else { no };
        return Ok(Typed { kind, selects: false, ..chosen });
    }
    let facts = Facts::over([&condition, &yes, &no]);
    finish(at, Kind::Ternary(Box::new([condition.node, yes.node, no.node])), kind, facts)
}

pub(super) fn compare(at: usize, relation: Relation, left: Typed, right: Typed) -> Result<Typed> {
    if !relation.takes(&left.kind, &right.kind) {
        let message = format!("{} does not take {} and {}", relation.sign(), left.kind, right.kind);
        return Err(ConditionError::new(at, message));
    }
    check_words(at, Some(relation), &left.node, &right.node)?;
    check_words(at, Some(relation), &right.node, &left.node)?;
    let facts = Facts::over([&left, &right]);
    finish(at, Kind::Compare(relation, Box::new([left.node, right.node])), Type::Bool, facts)
}

/// Refuses comparisons of a word list's value that can only be a mistake: with a word outside the list, and by an
/// order that the words' letters do not have.
pub(super) fn check_words(at: usize, relation: Option<Relation>, word: &Node, beside: &Node) -> Result<()> {
    let Kind::Root(root @ (Root::Risk | Root::Tier)) = resolved(word).kind else { return Ok(()) };
    let is_order = relation.is_some_and(|relation| !matches!(relation, Relation::Equal | Relation::Unequal));
    if is_order && root == Root::Risk {
        let message = "risk levels are strings without an order; use in, or risk = { min, max } in the rule's match";
        return Err(ConditionError::new(at, message.to_owned()));
    }
    let known: Vec<&str> = match root {
        Root::Risk => RiskLevel::ALL.iter().map(|level| level.as_str()).collect(),
        _ => Tier::ALL.iter().map(|tier| tier.as_str()).collect(),
    };
    let beside = resolved(beside);
    let of_list = match &beside.kind {
        Kind::Constant(Value::List(List::Built(items))) => &**items,
        _ => &[],
    };
    let alone = match &beside.kind {
        Kind::Constant(value) => Some(value),
        _ => None,
    };
    for value in of_list.iter().chain(alone) {
        if let Value::Text(text) = value
            && !known.contains(&&**text)
        {
            let meant = did_you_mean(text, known.iter().copied());
            let meant = if meant.is_empty() { format!("; expected one of {}", known.join(", ")) } else { meant };
            return Err(ConditionError::new(at, format!("{:?} is not one of its values{meant}", &**text)));
        }
    }
    Ok(())
}

/// The node that a `let` name stands for.
fn resolved(node: &Node) -> &Node {
    match &node.kind {
        Kind::Binding(_, named) => resolved(named),
        _ => node,
    }
}

/// Checks a word against the items of a literal list.
pub(super) fn check_items(at: usize, item: &Node, list: &Node) -> Result<()> {
    match &resolved(list).kind {
        Kind::List(items) => items.iter().try_for_each(|one| check_words(at, None, one, item)),
        _ => Ok(()),
    }
}

/// `has(a.b)`. A root's own field always exists.
pub(super) fn has(at: usize, of: Typed) -> Result<Typed> {
    match of.node.kind {
        Kind::Field(map, key) if of.selects => {
            let at = usize::try_from(of.node.at).unwrap_or(usize::MAX);
            finish(at, Kind::Has(map, key), Type::Bool, of.facts)
        }
        Kind::Root(_) if of.selects => constant(at, Value::Bool(true), Type::Bool),
        _ => Err(ConditionError::new(at, "has takes a field: has(context.amount)")),
    }
}

pub(super) fn list(at: usize, items: Vec<Typed>) -> Result<Typed> {
    let facts = Facts::over(&items);
    let mut kinds = items.iter().map(|item| item.kind.clone());
    let first = kinds.next().unwrap_or(Type::Dyn);
    let kind = kinds.try_fold(first, |all, kind| all.join(&kind)).unwrap_or(Type::Dyn);
    finish(at, Kind::List(items.into_iter().map(|item| item.node).collect()), Type::list(kind), facts)
}

/// Function calls such as `size(x)` and `int(x)`.
pub(super) fn function(at: usize, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
    let Some(function) = names::find(names::FUNCTIONS, name) else {
        let known = names::names(names::FUNCTIONS).chain([names::HAS]);
        let message = match names::find(names::METHODS, name) {
            Some(_) => format!("{name:?} follows a value: x.{name}(...)"),
            None => format!("unknown function {name:?}{}", did_you_mean(name, known)),
        };
        return Err(ConditionError::new(at, message));
    };
    let [argument] = exactly(at, name, arguments)?;
    call(at, name, function, argument)
}

/// Method calls `x.name(...)` other than macros.
pub(super) fn method(at: usize, of: Typed, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
    match names::find(names::METHODS, name) {
        Some(Method::Plain(Function::Part(part))) if !arguments.is_empty() => {
            let [zone] = exactly(at, name, arguments)?;
            part_in(at, name, part, of, zone)
        }
        Some(Method::Plain(function)) => {
            let [] = exactly(at, name, arguments)?;
            call(at, name, function, of)
        }
        Some(Method::Text(function)) => {
            let [argument] = exactly(at, name, arguments)?;
            text_call(at, name, function, of, argument)
        }
        Some(Method::Matches) => {
            let [pattern] = exactly(at, name, arguments)?;
            matches(at, of, &pattern)
        }
        Some(Method::Macro(_)) => Err(ConditionError::new(at, format!("{name} takes a variable: x.{name}(item, ...)"))),
        None => {
            let message = match names::find(names::FUNCTIONS, name) {
                Some(_) => format!("{name:?} does not follow a value: {name}(...)"),
                None => {
                    format!("unknown function {name:?}{}", did_you_mean(name, names::names(names::METHODS)))
                }
            };
            Err(ConditionError::new(at, message))
        }
    }
}

fn call(at: usize, name: &str, function: Function, argument: Typed) -> Result<Typed> {
    let Some(kind) = function.result(&argument.kind) else {
        return Err(ConditionError::new(at, format!("{name} does not take {}", argument.kind)));
    };
    let facts = Facts::over([&argument]);
    let literal = matches!(argument.node.kind, Kind::Constant(_));
    let typed = finish(at, Kind::Call(function, Box::new(argument.node)), kind, facts)?;
    let reads = matches!(function, Function::ToTimestamp | Function::ToDuration);
    if literal && reads && !matches!(typed.node.kind, Kind::Constant(_)) {
        let wanted = match function {
            Function::ToTimestamp => "a timestamp such as \"2026-01-31T09:30:00Z\"",
            _ => "a duration such as \"1h30m\" (h, m, s, ms, us, ns; a day is 24h), in whole milliseconds",
        };
        return Err(ConditionError::new(at, format!("{name} expects {wanted}")));
    }
    Ok(typed)
}

/// A part of a timestamp in a time zone. A zone that is written out has to exist.
fn part_in(at: usize, name: &str, part: Part, of: Typed, zone: Typed) -> Result<Typed> {
    if !of.kind.may_be(&Type::Timestamp) {
        return Err(ConditionError::new(
            at,
            format!("{name} takes a time zone only of a timestamp, not of {}", of.kind),
        ));
    }
    expect(&zone, &Type::Text)?;
    if let Kind::Constant(Value::Text(text)) = &resolved(&zone.node).kind
        && !is_zone(text)
    {
        let meant = did_you_mean(text, zone_names());
        let expected =
            if meant.is_empty() { "; expected a name such as \"Europe/Berlin\", or \"+02:00\"" } else { &meant };
        let at = usize::try_from(zone.node.at).unwrap_or(usize::MAX);
        return Err(ConditionError::new(at, format!("{:?} is not a time zone{expected}", &**text)));
    }
    let facts = Facts::over([&of, &zone]);
    finish(at, Kind::PartIn(part, Box::new([of.node, zone.node])), Type::Int, facts)
}

fn exactly<const N: usize>(at: usize, name: &str, arguments: Vec<Typed>) -> Result<[Typed; N]> {
    <[Typed; N]>::try_from(arguments)
        .map_err(|found| ConditionError::new(at, format!("{name} takes {N} arguments here, found {}", found.len())))
}

fn text_call(at: usize, name: &str, function: TextFunction, of: Typed, argument: Typed) -> Result<Typed> {
    if !of.kind.may_be(&Type::Text) || !argument.kind.may_be(&Type::Text) {
        let hint = if matches!(of.kind, Type::List(_)) { "; for a list, write: item in list" } else { "" };
        let message = format!("{name} takes two strings, not {} and {}{hint}", of.kind, argument.kind);
        return Err(ConditionError::new(at, message));
    }
    let facts = Facts::over([&of, &argument]);
    finish(at, Kind::TextCall(function, Box::new([of.node, argument.node])), Type::Bool, facts)
}

fn matches(at: usize, of: Typed, pattern: &Typed) -> Result<Typed> {
    expect(&of, &Type::Text)?;
    let at_pattern = usize::try_from(pattern.node.at).unwrap_or(usize::MAX);
    let Kind::Constant(Value::Text(text)) = &pattern.node.kind else {
        return Err(ConditionError::new(at_pattern, "matches takes a literal pattern"));
    };
    let built = RegexBuilder::new(&with_ascii_classes(text))
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build();
    let pattern = match built {
        Ok(pattern) => pattern,
        Err(regex::Error::CompiledTooBig(_)) => {
            return Err(ConditionError::new(
                at_pattern,
                format!("the pattern needs more than {MAX_PATTERN_BYTES} bytes"),
            ));
        }
        Err(_) => {
            return Err(ConditionError::new(
                at_pattern,
                "the pattern is not a regular expression that runs in linear time",
            ));
        }
    };
    let facts = Facts::over([&of]);
    finish(at, Kind::Matches(Box::new(of.node), pattern), Type::Bool, facts)
}

/// The pattern with `\d`, `\w` and `\s` written out in ASCII: their meaning in RE2, which CEL refers to, at a
/// fraction of their size in Unicode. A class may be nested in a class, so the result is valid in both places.
fn with_ascii_classes(pattern: &str) -> String {
    let mut spelt = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            spelt.push(c);
            continue;
        }
        match characters.next() {
            Some('d') => spelt.push_str("[0-9]"),
            Some('D') => spelt.push_str("[^0-9]"),
            Some('w') => spelt.push_str("[0-9A-Za-z_]"),
            Some('W') => spelt.push_str("[^0-9A-Za-z_]"),
            Some('s') => spelt.push_str(r"[\t\n\f\r ]"),
            Some('S') => spelt.push_str(r"[^\t\n\f\r ]"),
            Some(other) => spelt.extend(['\\', other]),
            None => spelt.push('\\'),
        }
    }
    spelt
}
