//! The scope of a clause: its cues, and whether "all" is bounded.

use crate::roles::Role;
use crate::sign::{Sign, Signs};
use rulekeep_types::Operation;

use super::token::{self, Kind, Token};

/// The cues among the governed words and right before the verb.
pub(super) fn local_signs(governed: &[Token<'_>]) -> Signs {
    let mut local = Signs::default();
    for sign in token::cues(governed).iter() {
        // `add_scope` decides whether "all" and "every" are unbounded.
        if sign != Sign::Bulk {
            local.add(sign);
        }
    }
    local
}

/// Adds the bulk sign: for "all users" and "every file", but not for "all three files" or "all files named x".
pub(super) fn add_scope(signs: &mut Signs, operation: Operation, governed: &[Token<'_>]) {
    let reaches_wide = |token: &Token<'_>| {
        token.cue == Some(Sign::Bulk)
            || token.cue.is_some() && matches!(token.word, "all" | "every" | "entire" | "whole")
    };
    // "There should be no files left" means all of them.
    let none = |pair: &[Token<'_>]| matches!(pair, [before, no] if no.word == "no" && (before.is(Role::Auxiliary) || matches!(before.word, "ensure" | "sure" | "that")));
    if operation == Operation::Delete && governed.windows(2).take(6).any(none) {
        signs.add(Sign::Bulk);
    }
    let Some(place) = governed.iter().position(reaches_wide) else { return };
    let rest = governed.get(place + 1..).unwrap_or(&[]);
    let counted = rest.first().is_some_and(|next| {
        matches!(next.kind, Kind::Number(_)) || matches!(next.word, "two" | "three" | "four" | "five")
    });
    let narrowed = rest.iter().take(6).any(|token| {
        matches!(token.word, "named" | "called" | "matching" | "containing" | "ending" | "where" | "whose")
    });
    // "Add all of them": those that were just named.
    let named_before = operation == Operation::Write
        && matches!(rest, [of, them, ..] if of.word == "of" && matches!(them.word, "them" | "these" | "those"));
    if counted || named_before || (narrowed && operation == Operation::Read) {
        signs.add(Sign::Bounded);
    } else {
        signs.add(Sign::Bulk);
    }
}
