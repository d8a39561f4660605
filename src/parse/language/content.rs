//! What is to be written or said rather than done: behind "message:", "saying",
//! or "reply that". Its verbs and nouns ask for nothing; its cues still count.

use crate::model::Operation;
use crate::parse::lexicon::{Form, Lexicon};

use super::token::{Kind, Token};

/// Takes the verbs and nouns out of what is content.
pub(super) fn mark(tokens: &mut [Token<'_>], lexicon: &Lexicon) {
    let mut writes = false;
    let mut is_content = false;
    for index in 0..tokens.len() {
        let Some(token) = tokens.get(index).copied() else { break };
        if token.kind == Kind::Stop {
            (writes, is_content) = (false, false);
            continue;
        }
        if is_content {
            if let Some(token) = tokens.get_mut(index) {
                (token.entry.verb, token.entry.noun) = (None, None);
            }
            continue;
        }
        if let Some((verb, form)) = token.entry.verb {
            let operation = lexicon.verb(verb).operation;
            writes |= form == Form::Base && matches!(operation, Operation::Send | Operation::Write);
        }
        let before = index.checked_sub(1).and_then(|place| tokens.get(place));
        let next_is_pronoun = tokens.get(index + 1).is_some_and(|next| {
            next.is(crate::parse::lexicon::Function::Pronoun) || next.is(crate::parse::lexicon::Function::Determiner)
        });
        is_content = match token.kind {
            Kind::Mark if token.word.starts_with(':') => {
                writes && before.is_some_and(|before| names_content(before.word))
            }
            Kind::Word => {
                matches!(token.word, "saying" | "says" | "stating" | "reads")
                    || token.word == "that" && writes && next_is_pronoun && told(tokens, index, lexicon)
            }
            _ => false,
        };
    }
}

/// "reply that", "tell him that": a verb of telling at most three words before.
fn told(tokens: &[Token<'_>], index: usize, lexicon: &Lexicon) -> bool {
    tokens.get(index.saturating_sub(4)..index).unwrap_or(&[]).iter().any(|token| {
        token.entry.verb.is_some_and(|(verb, form)| {
            form == Form::Base
                && (lexicon.verb(verb).operation == Operation::Send || matches!(token.word, "tell" | "say" | "mention"))
        })
    })
}

/// Nouns of which what follows a colon is the text.
fn names_content(word: &str) -> bool {
    matches!(
        word,
        "message"
            | "text"
            | "body"
            | "comment"
            | "subject"
            | "title"
            | "note"
            | "content"
            | "caption"
            | "tweet"
            | "post"
            | "following"
            | "saying"
            | "reply"
            | "description"
            | "announcement"
            | "status"
            | "update"
            | "message is"
            | "reads"
            | "says"
            | "email"
            | "words"
    )
}
