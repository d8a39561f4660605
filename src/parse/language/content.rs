//! What is to be written or said rather than done: behind "message:", "saying",
//! or "reply that". Its verbs and nouns ask for nothing; its cues still count.

use crate::model::Operation;
use crate::parse::lexicon::{Form, Function, Lexicon};
use crate::parse::sign::Sign;

use super::token::{Kind, Token};

/// Takes the verbs and nouns out of what is content.
pub(super) fn mark(tokens: &mut [Token<'_>], lexicon: &Lexicon) {
    let (mut writes, mut hands_over) = (false, false);
    let mut is_content = false;
    let steps = first_step(tokens);
    for index in 0..tokens.len() {
        let Some(token) = tokens.get(index).copied() else { break };
        if token.kind == Kind::Stop {
            (writes, hands_over, is_content) = (false, false, false);
            continue;
        }
        is_content |= steps.is_some_and(|first| index > first);
        if is_content {
            if let Some(token) = tokens.get_mut(index) {
                (token.entry.verb, token.entry.noun) = (None, None);
                // Nor is it a verb that nobody knows.
                token.entry.cue = Some(Sign::Ordinary);
            }
            continue;
        }
        if let Some((verb, form)) = token.entry.verb {
            let operation = lexicon.verb(verb).operation;
            writes |= form == Form::Base && matches!(operation, Operation::Send | Operation::Write);
            hands_over &= form != Form::Base || token.entry.noun.is_some();
        }
        // "Translate to German: ...": what follows is handed over, not asked for.
        hands_over = is_of_text(token.word) || hands_over && !token.is(Function::Conjunction);
        let before = index.checked_sub(1).and_then(|place| tokens.get(place));
        let next_is_pronoun =
            tokens.get(index + 1).is_some_and(|next| next.is(Function::Pronoun) || next.is(Function::Determiner));
        is_content = match token.kind {
            Kind::Mark if token.word.starts_with(':') => {
                hands_over
                    || writes
                        && before
                            .is_some_and(|before| names_content(before.word.rsplit(' ').next().unwrap_or(before.word)))
            }
            Kind::Word => {
                matches!(token.word, "saying" | "says" | "stating" | "reads")
                    || token.word == "that" && writes && next_is_pronoun && told(tokens, index, lexicon)
            }
            _ => false,
        };
    }
}

/// Verbs of which the object is a text as it stands.
pub(super) fn is_of_text(word: &str) -> bool {
    matches!(
        word,
        "classify"
            | "categorize"
            | "categorise"
            | "spell check"
            | "spell-check"
            | "condense"
            | "tokenise"
            | "translate"
            | "paraphrase"
            | "summarize"
            | "summarise"
            | "rephrase"
            | "reword"
            | "proofread"
            | "explain"
            | "spell"
            | "analyze"
            | "analyse"
            | "interpret"
            | "transcribe"
            | "tokenize"
            | "read aloud"
            | "sum up"
            | "simplify"
    )
}

/// "How to bake bread: 1. Mix the flour. 2. ...": where the numbered steps of a guide begin, if the text is one.
fn first_step(tokens: &[Token<'_>]) -> Option<usize> {
    let opening = tokens.iter().find(|token| token.kind == Kind::Word && !token.is(Function::Determiner))?;
    let is_guide = matches!(opening.word, "how to" | "steps to" | "ways to" | "recipe" | "tutorial" | "guide");
    let colon = tokens.iter().take(LONGEST_TITLE).position(|token| token.word == ":" || token.word == ":\n")?;
    let behind = tokens.iter().enumerate().skip(colon + 1).find(|(_, token)| token.kind != Kind::Stop);
    behind.filter(|(_, first)| is_guide && first.kind == Kind::Number(1.0)).map(|(place, _)| place)
}

/// Tokens of the longest title of a guide.
const LONGEST_TITLE: usize = 24;

/// "reply that", "tell him that": a verb of telling at most three words before.
fn told(tokens: &[Token<'_>], index: usize, lexicon: &Lexicon) -> bool {
    tokens.get(index.saturating_sub(4)..index).unwrap_or(&[]).iter().any(|token| {
        token.entry.verb.is_some_and(|(verb, form)| {
            form == Form::Base
                && (lexicon.verb(verb).operation == Operation::Send
                    || matches!(
                        token.word,
                        "tell" | "say" | "mention" | "note" | "note down" | "write down" | "jot down" | "record"
                    ))
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
            | "task"
            | "todo"
            | "to-do"
            | "ticket"
            | "issue"
            | "card"
            | "reminder"
            | "recipe"
            | "story"
            | "poem"
            | "song"
            | "joke"
            | "slogan"
            | "headline"
    )
}
