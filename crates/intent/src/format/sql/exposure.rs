//! The functions that a statement calls and the data that its columns hold: functions by list; secrets, cards and
//! personal data by the parts of names.

use super::known::{self, words};
use super::lex::Kind;
use super::tree::Source;
use crate::table::List;

/// A called function: known to do more than compute, or unknown.
pub(super) enum Call {
    Known(&'static known::Rule),
    Unknown,
}

/// The calls of a statement that do more than compute, with their names. `names` marks tokens that precede a bracket
/// without being a call.
pub(super) fn calls<'t>(source: Source<'t>, names: &[bool], only_known: bool) -> Vec<(Call, &'t str)> {
    let mut found = Vec::new();
    let mut openings: Vec<usize> = Vec::new();
    let mut closed_from = 0;
    let mut knows_unknown = false;
    for token in 0..source.tokens.len() {
        match source.kind(token) {
            Some(Kind::Close) => {
                closed_from = openings.pop().unwrap_or(0);
                continue;
            }
            Some(Kind::Open) => openings.push(token),
            _ => continue,
        }
        let Some(name_at) = token.checked_sub(1) else { continue };
        let Some(name) = source.name(name_at) else { continue };
        let name = name.rsplit('.').next().unwrap_or(name);
        if let Some(rule) = known::call(name).or_else(|| qualified_call(source, name_at)) {
            found.push((Call::Known(rule), source.text(name_at, name_at)));
            continue;
        }
        let is_name = names.get(name_at).copied().unwrap_or(false) || follows_as_name(source, name_at, closed_from);
        if only_known || knows_unknown || is_name || words().harmless.fits(name) && !is_qualified(source, name_at) {
            continue;
        }
        // A single unknown call says enough.
        knows_unknown = true;
        found.push((Call::Unknown, source.text(name_at, name_at)));
    }
    found
}

/// The rule of a qualified call such as `utl_http.request(`.
fn qualified_call(source: Source<'_>, name: usize) -> Option<&'static known::Rule> {
    if !is_qualified(source, name) {
        return None;
    }
    known::call(source.name(name.checked_sub(2)?)?)
}

/// Returns whether a name belongs to a schema that is not the system's: its content is the user's.
fn is_qualified(source: Source<'_>, name: usize) -> bool {
    let Some(dot) = name.checked_sub(1) else { return false };
    source.is_symbol(dot, ".")
        && !dot
            .checked_sub(1)
            .and_then(|schema| source.name(schema))
            .is_some_and(|schema| matches!(schema, "pg_catalog" | "sys" | "information_schema" | "safe"))
}

/// Returns whether a name is an alias with columns: `AS t (a, b)`, `INTO t (a)`, `(SELECT ...) t (a, b)`.
fn follows_as_name(source: Source<'_>, name: usize, closed_from: usize) -> bool {
    let Some(before) = name.checked_sub(1) else { return false };
    match source.kind(before) {
        Some(Kind::Word) => words().names_follow.has(source.lower(before)),
        Some(Kind::Name) => true,
        // An alias after a query in brackets; `DISTINCT ON (a) f(b)` is a call.
        Some(Kind::Close) => source.word(closed_from + 1).is_some_and(|word| matches!(word, "select" | "values")),
        _ => false,
    }
}

/// The kinds of data that the names of columns and tables indicate.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Holdings<'t> {
    pub secret: Option<&'t str>,
    pub card: Option<&'t str>,
    pub identity: Option<&'t str>,
    pub person: Option<&'t str>,
}

/// The kinds of data that a statement's names indicate.
pub(super) fn holdings(source: Source<'_>) -> Holdings<'_> {
    let mut found = Holdings::default();
    let mut person_table = None;
    let mut takes_rows = false;
    for token in 0..source.tokens.len() {
        if source.is_symbol(token, "*") {
            takes_rows |= !matches!(source.kind(token.wrapping_sub(1)), Some(Kind::Open | Kind::Number | Kind::Close))
                && !matches!(source.kind(token + 1), Some(Kind::Number));
            continue;
        }
        let Some(name) = source.name(token) else { continue };
        let shown = || source.text(token, token);
        if found.secret.is_none() && (is_secret(name) || is_secret_path(source, token)) {
            found.secret = Some(shown());
        }
        if found.card.is_none() && names(name, &words().cards) {
            found.card = Some(shown());
        }
        if found.identity.is_none() && names(name, &words().identities) {
            found.identity = Some(shown());
        }
        if found.person.is_none() && names(name, &words().persons) && !has_tail(name) {
            found.person = Some(shown());
        }
        if person_table.is_none()
            && name.split(['.', '_']).next_back().is_some_and(|last| words().person_tables.has(last))
        {
            person_table = Some(shown());
        }
    }
    if takes_rows {
        found.person = found.person.or(person_table);
    }
    found
}

/// Returns whether a name contains one of the parts or pairs of parts.
fn names(name: &str, known: &List) -> bool {
    let mut before = "";
    name.split(['_', '.', ' ', '-']).any(|part| {
        let pair = [before, "_", part].concat();
        before = part;
        known.has(part) || known.has(&pair)
    })
}

/// Returns whether a name is a secret's, unless it only describes one: `token_count`.
pub(super) fn is_secret(name: &str) -> bool {
    let named = names(name, &words().secrets)
        || words().secret_inside.iter().any(|part| name.len() > part.len() && name.contains(part));
    named && !has_tail(name)
}

fn has_tail(name: &str) -> bool {
    let mut parts = name.split(['_', '.', ' ', '-']);
    let first = parts.next().unwrap_or("");
    let last = parts.next_back();
    last.is_some_and(|last| words().secret_tails.has(last)) || last.is_some() && words().secret_heads.has(first)
}

/// Returns whether a name is a system table of secrets: `mysql.user`, `pg_shadow`.
fn is_secret_path(source: Source<'_>, token: usize) -> bool {
    let name = source.lower(token);
    words().secret_tables.has(name)
        || token >= 2
            && source.is_symbol(token - 1, ".")
            && source.name(token - 2).is_some_and(|schema| words().secret_tables.has(&[schema, ".", name].concat()))
}
