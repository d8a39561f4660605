//! Whether a condition limits the rows of a statement: `WHERE 1 = 1` does not.

use super::known::words;
use super::lex::Kind;
use super::tree::{Item, Part, Tree};

/// Returns whether a statement reaches rows without a bound: it has no condition, or one that always holds.
pub(super) fn is_unbounded(part: Part<'_>, tree: &Tree) -> bool {
    let condition = (0..part.len()).find(|&place| part.is(place, "where"));
    match condition {
        Some(place) => {
            let rest = part.items.get(place + 1..).unwrap_or(&[]);
            let end = (0..rest.len())
                .find(|&place| {
                    part.of(rest).word(place).is_some_and(|word| {
                        matches!(word, "returning" | "limit" | "order" | "group" | "option" | "having" | "when")
                    })
                })
                .unwrap_or(rest.len());
            !part.has("limit") && always_holds(part.of(rest.get(..end).unwrap_or(&[])), tree, 0)
        }
        None => !part.has("limit") && !part.has("top"),
    }
}

/// Returns whether a branch of a `MERGE` takes everything its source names: it has no condition besides the match, or
/// one that always holds.
pub(super) fn is_unbounded_branch(part: Part<'_>, then: usize, tree: &Tree) -> bool {
    let near = then.saturating_sub(LONGEST_CONDITION)..then;
    let Some(when) = near.rev().find(|&place| part.is(place, "when")) else { return true };
    let condition = (when..then).find(|&place| part.is(place, "and"));
    condition.is_none_or(|and| always_holds(part.of(part.items.get(and + 1..then).unwrap_or(&[])), tree, 0))
}

/// Returns whether a condition always holds, or may do so: one of its alternatives does.
fn always_holds(part: Part<'_>, tree: &Tree, depth: usize) -> bool {
    if part.items.is_empty() || depth > DEEPEST {
        return true;
    }
    split(part, "or").any(|alternative| split(alternative, "and").all(|term| term_holds(term, tree, depth)))
}

/// Splits at a word; the `and` of `between` is not a separator.
fn split<'t>(part: Part<'t>, at: &'static str) -> impl Iterator<Item = Part<'t>> {
    let mut between = false;
    let pieces = part.items.split(move |item: &Item| {
        let word = part.source.word(item.token);
        if word == Some("between") {
            between = true;
            return false;
        }
        let splits = word == Some(at);
        if splits && at == "and" && between {
            between = false;
            return false;
        }
        splits
    });
    pieces.map(move |items| part.of(items))
}

fn term_holds(term: Part<'_>, tree: &Tree, depth: usize) -> bool {
    if let [Item { group: Some(group), .. }] = term.items {
        return always_holds(term.of(tree.group(*group)), tree, depth + 1);
    }
    if is_constant(term) {
        return !matches!(term.word(0), Some("false")) || term.len() > 1;
    }
    let ends_with = |words: &[&str]| {
        term.len() > words.len()
            && words.iter().rev().zip((0..term.len()).rev()).all(|(word, place)| term.is(place, word))
    };
    if ends_with(&["is", "not", "null"]) {
        return true;
    }
    if term.is(0, "exists") || term.has("in") {
        return term.items.last().and_then(|item| item.group).is_some_and(|group| selects_all(term, tree, group))
            && !term.has("not");
    }
    if let Some(between) = (0..term.len()).find(|&place| term.is(place, "between")) {
        return spans_all(term, between);
    }
    let Some(middle) = (0..term.len()).find(|&place| is_comparison(term, place)) else { return false };
    let (left, right) = (term.items.get(..middle).unwrap_or(&[]), term.items.get(middle + 1..).unwrap_or(&[]));
    let operator = term.token(middle).map_or("", |token| term.source.lower(token));
    let (left, right) = (term.of(left), term.of(right));
    match operator {
        "=" | "<=" | ">=" | "<=>" | "==" | "like" | "ilike" | "is" if same(left, right, tree, 0) => true,
        // `LIKE '%'`
        "like" | "ilike" => right.token(0).is_some_and(|token| {
            right.source.kind(token) == Some(Kind::Text) && right.source.lower(token).bytes().all(|byte| byte == b'%')
        }),
        // A key is never below one.
        ">=" => {
            number(right).is_some_and(|number| number <= 0.0 || number <= 1.0 && is_key(left))
                || is_long_ago(left, right)
        }
        ">" => is_key(left) && number(right).is_some_and(|number| number <= 0.0) || is_long_ago(left, right),
        "<>" | "!=" => is_key(left) && number(right).is_some_and(|number| number <= 0.0),
        // A key does not reach a million in the tables that single statements are meant for, and every row was made
        // before now.
        "<" | "<=" => is_key(left) && number(right).is_some_and(|number| number >= WIDE) || past(left) && is_now(right),
        _ => false,
    }
}

/// Returns whether a range spans everything: `id BETWEEN 1 AND 1e9`.
fn spans_all(term: Part<'_>, between: usize) -> bool {
    let of = |items: Option<&[Item]>| items.map_or(0.0, |items| number(term.of(items)).unwrap_or(f64::NAN));
    let Some(and) = (between..term.len()).find(|&place| term.is(place, "and")) else { return false };
    let (low, high) = (of(term.items.get(between + 1..and)), of(term.items.get(and + 1..)));
    is_key(term.of(term.items.get(..between).unwrap_or(&[]))) && !term.has("not") && low <= 1.0 && high >= WIDE
}

/// Returns whether a part is a column that numbers the rows.
fn is_key(part: Part<'_>) -> bool {
    let name = part.items.last().map_or("", |item| part.source.lower(item.token));
    name.ends_with("id") || name == "rownum"
}

/// Returns whether a part is a column with the time at which a row was made or changed, which is never in the future.
fn past(part: Part<'_>) -> bool {
    let name = part.items.last().map_or("", |item| part.source.lower(item.token));
    words().past_columns.iter().any(|word| name.contains(word))
}

/// Returns whether a part is `now()` or `CURRENT_TIMESTAMP`, with nothing subtracted.
fn is_now(part: Part<'_>) -> bool {
    part.len() <= 2
        && part.word(0).is_some_and(|word| words().now.has(word))
        && (part.len() == 1 || part.group(1).is_some())
}

/// Returns whether a condition is like `created_at > '1970-01-01'`, a date before any row was made.
fn is_long_ago(left: Part<'_>, right: Part<'_>) -> bool {
    let text = right.token(0).filter(|&token| right.source.kind(token) == Some(Kind::Text));
    let year = text.and_then(|token| right.source.lower(token).trim_matches('\'').get(..4)?.parse::<u16>().ok());
    past(left) && right.len() == 1 && year.is_some_and(|year| year <= EPOCH)
}

/// Returns whether a term consists only of numbers, strings and truth values, so that no row decides it.
fn is_constant(term: Part<'_>) -> bool {
    (0..term.len()).all(|place| match term.kind(place) {
        Some(Kind::Number | Kind::Text | Kind::Symbol) => true,
        Some(Kind::Word) => {
            matches!(term.word(place), Some("true" | "false" | "not" | "is" | "null" | "like" | "in"))
        }
        _ => false,
    }) && (0..term.len()).all(|place| !term.is_symbol(place, "?") && !term.is_symbol(place, ":"))
        && !is_parameter(term)
}

/// Returns whether a term is a parameter such as `$1` or `?`, whose value is unknown.
fn is_parameter(term: Part<'_>) -> bool {
    term.items
        .iter()
        .any(|item| term.source.kind(item.token) == Some(Kind::Number) && term.source.lower(item.token).is_empty())
}

fn is_comparison(term: Part<'_>, place: usize) -> bool {
    match term.kind(place) {
        Some(Kind::Symbol) => term.token(place).is_some_and(|token| {
            matches!(term.source.lower(token), "=" | "==" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "<=>")
        }),
        Some(Kind::Word) => matches!(term.word(place), Some("like" | "ilike" | "is")),
        _ => false,
    }
}

/// Returns whether both sides are the same: `a.id = a.id`, `coalesce(id, 0) = coalesce(id, 0)`.
fn same(left: Part<'_>, right: Part<'_>, tree: &Tree, depth: usize) -> bool {
    depth <= DEEPEST
        && left.len() == right.len()
        && left.items.iter().zip(right.items).all(|(one, other)| match (one.group, other.group) {
            (None, None) => left.source.lower(one.token) == right.source.lower(other.token),
            (Some(one), Some(other)) => same(left.of(tree.group(one)), right.of(tree.group(other)), tree, depth + 1),
            _ => false,
        })
}

fn number(part: Part<'_>) -> Option<f64> {
    let negative = part.is_symbol(0, "-");
    let token = part.token(usize::from(negative))?;
    let value: f64 = part.source.lower(token).parse().ok()?;
    Some(if negative { -value } else { value })
}

/// Returns whether a query takes every row.
fn selects_all(part: Part<'_>, tree: &Tree, group: usize) -> bool {
    let query = part.of(tree.group(group));
    query.is(0, "select")
        && !["where", "limit", "having", "join", "intersect", "top", "fetch"].iter().any(|word| query.has(word))
}

/// A key limit from which on a range includes all rows.
const WIDE: f64 = 1e6;
/// A year before the rows of any database.
const EPOCH: u16 = 1970;
/// Maximum number of tokens of a branch's condition, so that many branches take linear time.
const LONGEST_CONDITION: usize = 256;
/// Maximum depth of brackets that are looked into.
const DEEPEST: usize = 16;
