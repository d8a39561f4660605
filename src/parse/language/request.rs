//! Which of a text's clauses are the request, and which only tell of it: plans,
//! purposes, and wishes that explain what is then asked for.

use crate::model::Operation;
use crate::parse::lexicon::{Class, Function, Lexicon};

use super::heads::{Head, Manner};
use super::token::{Kind, Token};

/// Keeps what is asked for. Of what is only told, what could do harm stays.
pub(super) fn retain_requests(heads: &mut Vec<Head>, tokens: &[Token<'_>], lexicon: &Lexicon) {
    let asks = |head: &Head| matches!(head.manner, Manner::Asked | Manner::Question | Manner::Obscure);
    let Some(last_asked) = heads.iter().rev().find(|head| asks(head)).map(|head| head.sentence) else {
        if heads.iter().any(|head| head.manner == Manner::Wished) {
            heads.retain(|head| stays(head, lexicon));
        }
        return;
    };
    let points_back = heads.iter().any(|head| asks(head) && refers_back(head, tokens));
    heads.retain(|head| match head.manner {
        Manner::Asked | Manner::Question | Manner::Obscure => true,
        // "I want to order a sculpture. What materials are there?" asks for the materials.
        Manner::Wished => {
            head.sentence >= last_asked || points_back || destroys(head, lexicon) || is_specific(head, tokens)
        }
        Manner::Mentioned | Manner::Wanted => stays(head, lexicon),
    });
}

/// "Send a mail to support. Include my order number": what is included is read, nothing else is done.
pub(super) fn mark_ingredients(heads: &mut [Head], lexicon: &Lexicon) {
    let mut makes = false;
    for head in heads {
        let Some(verb) = head.verb.map(|verb| lexicon.verb(verb)) else { continue };
        if makes && verb.is(Class::Includes) {
            head.feeds = true;
        }
        makes |= matches!(verb.operation, Operation::Send | Operation::Write);
    }
}

/// "Find and delete the file": the first verb is done to what the second names.
pub(super) fn share_objects(heads: &mut [Head], tokens: &[Token<'_>]) {
    let mut shared = 0;
    for place in (1..heads.len()).rev() {
        let Some(next) = heads.get(place).copied() else { continue };
        let Some(head) = heads.get_mut(place - 1) else { continue };
        let between = tokens.get(head.start..head.end).unwrap_or(&[]);
        let joined = between.iter().all(|token| {
            token.is(Function::Conjunction) || token.is(Function::Filler) || matches!(token.word, "," | "/" | "to")
        });
        // No sentence has many verbs for one object; a text of nothing else would be read over and over.
        if joined && head.end == next.at && head.verb.is_some() && shared < MOST_SHARING {
            (head.start, head.end) = (next.start, next.end);
            shared += 1;
        } else {
            shared = 0;
        }
    }
}

/// Verbs in a row that share an object.
const MOST_SHARING: usize = 4;

fn stays(head: &Head, lexicon: &Lexicon) -> bool {
    match head.manner {
        Manner::Wanted => false,
        // A mention that changes something is kept: what is planned may be meant.
        Manner::Mentioned => head.verb.is_some_and(|verb| {
            matches!(
                lexicon.verb(verb).operation,
                Operation::Delete | Operation::Admin | Operation::Transfer | Operation::Send
            )
        }),
        _ => true,
    }
}

fn destroys(head: &Head, lexicon: &Lexicon) -> bool {
    head.verb.is_some_and(|verb| matches!(lexicon.verb(verb).operation, Operation::Delete | Operation::Admin))
}

/// "Could you do that for me?", "please handle it": the wish before is what is asked.
fn refers_back(head: &Head, tokens: &[Token<'_>]) -> bool {
    tokens.get(head.start..head.end).unwrap_or(&[]).iter().take(3).any(|token| {
        matches!(token.word, "that" | "this" | "it" | "them" | "so" | "these" | "those") || token.is(Function::Lead)
    })
}

/// A wish that names an amount, an address, a path or a title is a request of its own.
fn is_specific(head: &Head, tokens: &[Token<'_>]) -> bool {
    tokens
        .get(head.start..head.end)
        .unwrap_or(&[])
        .iter()
        .any(|token| matches!(token.kind, Kind::Number(_) | Kind::Email | Kind::Path | Kind::Url | Kind::Quoted))
}
