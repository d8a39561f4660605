//! What a text of statements names besides its tables, and whether it was read as a whole.

use rulekeep_types::TargetKind;
use rulekeep_types::facts::{Cause, Kind, Kinds, Open, Operand, Role, host_of};
use rulekeep_types::{Operation, Resource};

use crate::reading::{Act, Reading, add_open, add_operand};
use crate::sign::Sign;
use crate::target;

use super::lex::{self, Kind as TokenKind};

/// Records the files and addresses in strings and the names in statements that no reader parses, and opens the reading
/// if it runs code.
pub(super) fn note(text: &str, reading: &mut Reading) {
    let tokens = lex::lex(text, lex::STANDARD).tokens;
    let fresh = &mut reading.facts.fresh;
    let mut add = |operand: Operand| add_operand(fresh, operand);
    for statement in tokens.split(|token| token.kind == TokenKind::End) {
        let word = |token: &lex::Token| text.get(token.start..token.end).unwrap_or_default();
        let head = statement.first().map(word).unwrap_or_default();
        let is_by_head = BY_HEAD.iter().any(|known| head.eq_ignore_ascii_case(known));
        for token in statement.iter().skip(1) {
            let value = word(token).trim();
            match token.kind {
                TokenKind::Text if value.len() > LONGEST => {}
                TokenKind::Text if value.contains(char::is_whitespace) && !value.starts_with(['/', '~', '.']) => {}
                TokenKind::Text if value.contains("://") && target::file_path(value).is_none() => {
                    if let Some(host) = host_of(value) {
                        add(Operand::new(Kind::Host, Role::Named, host, value));
                    }
                    let url = target::plain(TargetKind::Host, value);
                    add(Operand::new(Kind::Url, Role::Named, url, value));
                }
                TokenKind::Text if value.contains(['/', '\\']) => {
                    let path = target::file_path(value).unwrap_or(value);
                    add(Operand::new(Kind::Path, Role::Named, target::resolved_path(path), value));
                }
                TokenKind::Text | TokenKind::Word | TokenKind::Name if is_by_head && !value.is_empty() => {
                    add(Operand::new(Kind::Table, Role::Named, value.to_owned(), value));
                }
                _ => {}
            }
        }
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

/// Statements whose operands no reader tells apart.
const BY_HEAD: &[&str] =
    &["pragma", "show", "describe", "desc", "call", "exec", "execute", "vacuum", "analyze", "analyse", "reindex"];
/// Maximum length of a string that can be a path or an address, in bytes.
const LONGEST: usize = 1024;
/// Maximum length of a quoted part, in characters.
const LONGEST_FOUND: usize = 60;
