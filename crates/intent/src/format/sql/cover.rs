//! What a text of statements names besides its tables, and whether it was read as a whole.

use rulekeep_types::TargetKind;
use rulekeep_types::facts::{self, Cause, Kind, Kinds, Open, Operand, Role, host_of};
use rulekeep_types::{Operation, Resource};

use crate::reading::{Act, Reading, add_open, add_operand};
use crate::sign::Sign;
use crate::target;

use super::lex::{self, Kind as TokenKind};

/// Records the files and addresses in strings and the names in statements that no reader parses, and opens the reading
/// if it runs code.
pub(super) fn note(text: &str, reading: &mut Reading) {
    let tokens = lex::lex(text, lex::STANDARD).tokens;
    let mut has_open_table = false;
    let fresh = &mut reading.facts.fresh;
    for statement in tokens.split(|token| token.kind == TokenKind::End) {
        let word = |token: &lex::Token| text.get(token.start..token.end).unwrap_or_default();
        let head = statement.first().map(word).unwrap_or_default();
        let is_by_head = BY_HEAD.iter().any(|known| head.eq_ignore_ascii_case(known));
        let (named, is_open) = tables(statement, &word);
        let is_known = |name: &str, fresh: &facts::Act| {
            let known = fresh.operands.iter().filter(|operand| operand.kind == Kind::Table);
            known.into_iter().any(|operand| operand.value.eq_ignore_ascii_case(name))
        };
        for name in named {
            if !is_known(&name, fresh) {
                add_operand(fresh, Operand::new(Kind::Table, Role::Named, name.clone(), &name));
            }
        }
        has_open_table |= is_open;
        for token in statement.iter().skip(1) {
            let value = word(token).trim();
            match token.kind {
                TokenKind::Text if value.len() > LONGEST => {}
                TokenKind::Text if value.contains(char::is_whitespace) && !value.starts_with(['/', '~', '.']) => {}
                TokenKind::Text if value.contains("://") && target::file_path(value).is_none() => {
                    if let Some(host) = host_of(value) {
                        add_operand(fresh, Operand::new(Kind::Host, Role::Named, host, value));
                    }
                    let url = target::plain(TargetKind::Host, value);
                    add_operand(fresh, Operand::new(Kind::Url, Role::Named, url, value));
                }
                TokenKind::Text if value.contains(['/', '\\']) => {
                    let path = target::file_path(value).unwrap_or(value);
                    add_operand(fresh, Operand::new(Kind::Path, Role::Named, target::resolved_path(path), value));
                }
                TokenKind::Text | TokenKind::Word | TokenKind::Name if is_by_head && !value.is_empty() => {
                    add_operand(fresh, Operand::new(Kind::Table, Role::Named, value.to_owned(), value));
                }
                _ => {}
            }
        }
    }
    if has_open_table {
        let found = text.trim().chars().take(LONGEST_FOUND).collect();
        add_open(&mut reading.facts.fresh, Open::new(Cause::Text, Kinds::of(&[Kind::Table]), found));
    }
    let runs = |act: &Act| {
        act.resource == Resource::Database && act.operation == Operation::Execute && act.noun != "transaction"
            || act.signs.has(Sign::Unclear)
    };
    if reading.acts.iter().any(runs) {
        let kinds = Kinds::of(&[Kind::Table, Kind::Path, Kind::Host, Kind::Url]);
        let found = text.trim().chars().take(LONGEST_FOUND).collect();
        add_open(&mut reading.facts.fresh, Open::new(Cause::Text, kinds, found));
    }
}

/// The names in the places of tables, whatever the statement is, and whether something else stands in such a place: a
/// parameter or a template.
fn tables<'t>(statement: &[lex::Token], word: &impl Fn(&lex::Token) -> &'t str) -> (Vec<String>, bool) {
    let is_name = |token: &lex::Token| matches!(token.kind, TokenKind::Word | TokenKind::Name);
    let is = |place: usize, list: &[&str]| {
        statement.get(place).is_some_and(|token| {
            token.kind == TokenKind::Word && list.iter().any(|known| word(token).eq_ignore_ascii_case(known))
        })
    };
    let defines = is(0, &["create", "drop", "alter", "grant", "revoke", "comment", "lock", "rename"]);
    let (mut named, mut is_open) = (Vec::new(), false);
    let mut at = 0;
    while at < statement.len() && named.len() < MOST_TABLES {
        let introduces = is(at, BEFORE_TABLES) || defines && is(at, BEFORE_DEFINED);
        // `extract(year from d)` names no table.
        let in_function = at >= 3
            && is(at, &["from"])
            && (1..=3).any(|back| {
                statement.get(at - back).is_some_and(|token| token.kind == TokenKind::Open)
                    && at > back
                    && is(at - back - 1, &["extract", "substring", "trim", "overlay", "position"])
            });
        at += 1;
        if !introduces || in_function {
            continue;
        }
        while is(at, &["if", "exists", "not", "only", "lateral", "table", "concurrently", "distinct"]) {
            at += 1;
        }
        // A list of names, each of parts with dots between them.
        while let Some(first) = statement.get(at) {
            if !is_name(first) || is(at, &["set", "select", "values", "where", "nothing"]) {
                is_open |= first.kind == TokenKind::Symbol && matches!(word(first), ":" | "$" | "{" | "?" | "@" | "%");
                break;
            }
            let mut name = word(first).to_owned();
            at += 1;
            while statement.get(at).is_some_and(|dot| word(dot) == ".")
                && let Some(part) = statement.get(at + 1).filter(|part| is_name(part))
            {
                name = name + "." + word(part);
                at += 2;
            }
            named.push(name);
            // "orders o, payroll p": an alias before the comma.
            let is_comma = |place: usize| statement.get(place).is_some_and(|token| word(token) == ",");
            let alias = if is(at, &["as"]) { at + 1 } else { at };
            if statement.get(alias).is_some_and(is_name) && is_comma(alias + 1) {
                at = alias + 1;
            }
            if !is_comma(at) {
                break;
            }
            at += 1;
        }
    }
    (named, is_open)
}

/// Words behind which tables stand.
const BEFORE_TABLES: &[&str] = &["from", "join", "into", "update", "using", "truncate", "exists"];
/// Words behind which tables stand in a definition.
const BEFORE_DEFINED: &[&str] = &["table", "view", "on", "like", "to", "references"];
/// Maximum number of tables that are recorded.
const MOST_TABLES: usize = 64;
/// Statements whose operands no reader tells apart.
const BY_HEAD: &[&str] =
    &["pragma", "show", "describe", "desc", "call", "exec", "execute", "vacuum", "analyze", "analyse", "reindex"];
/// Maximum length of a string that can be a path or an address, in bytes.
const LONGEST: usize = 1024;
/// Maximum length of a quoted part, in characters.
const LONGEST_FOUND: usize = 60;
