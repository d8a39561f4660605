//! Whether every word of a sentence was read. A sentence is complete if it consists of an order's verb, of operands
//! with the nouns that name their kind, and of small words; any other word is left over, and so the operands of the
//! act's kinds are open.

use rulekeep_types::facts::{Cause, Kind as Operands, Kinds, Open, Operand, Role};
use rulekeep_types::{Operation, Resource};

use crate::reading::{Act, Reading, add_open, add_operand};
use crate::roles::Role as Grammar;
use crate::target;

use super::token::{Kind, Token};

/// Records the operands of the sentences and the words that were not read.
pub(super) fn note(tokens: &[Token<'_>], reading: &mut Reading) {
    let kinds = reading.acts.iter().map(kinds_of).fold(Kinds::NONE, Kinds::with);
    let operation = reading.acts.first().map_or(Operation::Unknown, |act| act.operation);
    let is_one = reading.acts.iter().all(|act| act.operation == operation);
    let hosts = hosts_of(tokens);
    let left = Sentence { tokens, operation, hosts: &hosts }.left_over();
    reading.seal();
    let Some(step) = reading.steps.last_mut() else { return };
    step.operands.extend(hosts.iter().map(|(.., host)| Operand::new(Operands::Host, Role::Named, host.clone(), host)));
    for payee in payees(tokens).filter(|_| operation == Operation::Transfer) {
        add_operand(step, Operand::new(Operands::Recipient, Role::Pay, payee.clone(), &payee));
    }
    let role = match operation {
        Operation::Read => Role::Read,
        Operation::Write => Role::Write,
        Operation::Delete => Role::Remove,
        Operation::Send => Role::SendTo,
        Operation::Transfer => Role::Pay,
        Operation::Execute | Operation::Admin | Operation::Unknown => Role::Named,
    };
    let is_tree = tokens.iter().any(|token| matches!(token.word, "folder" | "directory" | "folders" | "directories"));
    for operand in step.operands.iter_mut().filter(|operand| operand.role == Role::Named) {
        let is_sent = operation == Operation::Send && operand.kind == Operands::Path;
        operand.role = if is_sent {
            Role::Read
        } else if is_one {
            role
        } else {
            Role::Named
        };
        operand.tree = is_tree && operand.kind == Operands::Path;
    }
    // What the act needs and nothing names.
    let named = |kind| step.operands.iter().any(|operand| operand.kind == kind);
    let is_paid = !step.amounts.is_empty();
    let missing: Vec<Operands> =
        [Operands::Path, Operands::Recipient, Operands::Host, Operands::Table, Operands::Amount]
            .into_iter()
            .filter(|kind| kinds.has(*kind) && !named(*kind) && !(*kind == Operands::Amount && is_paid))
            .filter(|kind| !(*kind == Operands::Recipient && operation == Operation::Transfer))
            .collect();
    let first = tokens.first().map_or("", |token| token.text);
    let (kinds, found) = left.map_or((Kinds::of(&missing), first), |left| (kinds, left));
    if kinds != Kinds::NONE {
        add_open(step, Open::new(Cause::Text, kinds, found.chars().take(LONGEST).collect()));
    }
}

/// The kinds of operands that an act can have.
fn kinds_of(act: &Act) -> Kinds {
    use Operands as K;
    if act.operation == Operation::Unknown {
        return Kinds::ALL;
    }
    if act.operation == Operation::Transfer {
        return Kinds::of(&[K::Amount, K::Account, K::Recipient, K::Any]);
    }
    match act.resource {
        Resource::File | Resource::Document | Resource::Code | Resource::Media | Resource::Config => {
            Kinds::of(&[K::Path, K::Any])
        }
        Resource::Email | Resource::Message | Resource::Calendar | Resource::Social => {
            Kinds::of(&[K::Recipient, K::Any])
        }
        Resource::Web | Resource::Network => Kinds::of(&[K::Host, K::Url, K::Any]),
        Resource::Database => Kinds::of(&[K::Table, K::Any]),
        Resource::Information => Kinds::NONE,
        _ => Kinds::OPERANDS,
    }
}

/// Hosts without a scheme, which the tokenizer splits at dots, each with the range of its tokens.
fn hosts_of(tokens: &[Token<'_>]) -> Vec<(usize, usize, String)> {
    let mut hosts = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at + 1;
        let mut text =
            tokens.get(at).filter(|token| token.kind == Kind::Word).map_or("", |token| token.text).to_owned();
        while let [before, dot, label] = tokens.get(end - 1..end + 2).unwrap_or_default()
            && !text.is_empty()
            && dot.text == "."
            && label.kind == Kind::Word
            && before.start + before.text.len() == dot.start
            && dot.start + 1 == label.start
        {
            text = text + "." + label.text;
            end += 2;
        }
        if end > at + 1 && target::hosts_in(&text) == [text.to_lowercase()] {
            hosts.push((at, end, text.to_lowercase()));
        }
        at = end;
    }
    hosts
}

/// The names and numbers of accounts behind an order's verb: who is paid.
fn payees<'t>(tokens: &[Token<'t>]) -> impl Iterator<Item = String> {
    let is_name = |token: &Token<'t>| {
        token.kind == Kind::Word
            && token.text.starts_with(char::is_uppercase)
            && !is_currency(token.word)
            && !PAPERS.contains(&token.word)
            && !NOUNS.contains(&token.word)
    };
    let start = tokens.iter().position(|token| token.word != "please").map_or(0, |verb| verb + 1);
    let rest = tokens.get(start..).unwrap_or_default();
    let runs = rest.chunk_by(move |one, next| is_name(one) && is_name(next));
    let named = runs.filter(move |run| run.first().is_some_and(is_name));
    named
        .map(|run| run.iter().map(|token| token.text).collect::<Vec<_>>().join(" "))
        .take(MOST_PAYEES)
        .collect::<Vec<_>>()
        .into_iter()
}

struct Sentence<'s, 't> {
    tokens: &'s [Token<'t>],
    operation: Operation,
    hosts: &'s [(usize, usize, String)],
}

impl<'t> Sentence<'_, 't> {
    /// The first word that no rule consumes.
    fn left_over(&self) -> Option<&'t str> {
        let words: Vec<&Token<'t>> = self.tokens.iter().collect();
        let last = words.iter().rposition(|token| token.kind != Kind::Stop)?;
        let words = words.get(..=last)?;
        let start = words.iter().position(|token| token.word != "please").unwrap_or(0);
        let mut at = start + 1;
        // INVARIANT: each round consumes at least one token or ends.
        while let Some(token) = words.get(at) {
            if let Some((_, end, _)) = self.hosts.iter().find(|(start, ..)| *start == at) {
                at = *end;
                continue;
            }
            let next = words.get(at + 1).copied();
            let named = words.iter().take(at).any(|word| word.kind == Kind::Email);
            at += match token.kind {
                // "eve%rival.example@relay": a relay may send it on.
                Kind::Email if token.text.contains(['%', '!']) => return Some(token.text),
                Kind::Email | Kind::Path | Kind::Url | Kind::Number(_) => 1,
                Kind::Quoted | Kind::CodeSpan if matches!(self.operation, Operation::Send | Operation::Write) => 1,
                Kind::Mark if matches!(token.text, "," | "<" | ">" | ":") || is_money_sign(token.text) => 1,
                Kind::Word => match self.word(token, next, words.get(at - 1).copied(), named) {
                    Some(used) => used,
                    None => return Some(token.text),
                },
                _ => return Some(token.text),
            };
            if self.operation == Operation::Send && matches!(token.word, "about" | "that" | "saying") {
                return topic(words.get(at..).unwrap_or_default());
            }
        }
        None
    }

    /// The number of tokens that a word and what belongs to it take.
    fn word(
        &self,
        token: &Token<'t>,
        next: Option<&Token<'t>>,
        before: Option<&Token<'t>>,
        named: bool,
    ) -> Option<usize> {
        let is_money = self.operation == Operation::Transfer;
        let is_host = |token: &Token<'_>| {
            self.hosts.iter().any(|(at, ..)| self.tokens.get(*at).is_some_and(|first| first.start == token.start))
        };
        let is_value = |token: &Token<'_>| matches!(token.kind, Kind::Email | Kind::Path | Kind::Url) || is_host(token);
        let is_name = |token: &Token<'_>| token.kind == Kind::Word && token.text.starts_with(char::is_uppercase);
        match token.word {
            "and" => next.filter(|next| is_value(next) || is_money && is_name(next)).map(|_| 1),
            "to" | "at" | "on" => next
                .filter(|next| {
                    is_value(next)
                        || matches!(next.kind, Kind::Number(_))
                        || matches!(next.word, "the" | "port")
                        || is_money && is_name(next)
                })
                .map(|_| 1),
            "in" | "from" => next.filter(|next| is_value(next)).map(|_| 1),
            "the" | "a" | "an" | "my" | "our" | "this" | "called" | "named" | "new" => Some(1),
            "about" | "that" | "saying" if self.operation == Operation::Send => Some(1),
            word if NOUNS.contains(&word) => Some(1),
            "for" | "by" | "via" if is_money => next.filter(|next| is_noun(next)).map(|_| 2),
            word if is_money && PAPERS.contains(&word) => {
                next.filter(|next| matches!(next.kind, Kind::Number(_))).map(|_| 2)
            }
            word if is_money && (is_currency(word) || super::facts::is_number_word(word)) => Some(1),
            _ if is_money
                && (is_name(token) || before.is_some_and(|before| before.word == "the") && is_noun(token)) =>
            {
                Some(1)
            }
            "by" | "via" | "with" if self.operation == Operation::Send => {
                next.filter(|next| NOUNS.contains(&next.word) || is_article(next)).map(|_| 1)
            }
            // "the plan" behind a recipient, or before "to".
            _ if self.operation == Operation::Send
                && before.is_some_and(is_article)
                && (is_noun(token) || token.word.ends_with('s') && !token.roles.has_any(&GRAMMAR))
                && (named || next.is_some_and(|next| next.word == "to")) =>
            {
                Some(1)
            }
            _ => None,
        }
    }
}

/// The first word of a message's topic that may name something else.
fn topic<'t>(words: &[&Token<'t>]) -> Option<&'t str> {
    let left = words.iter().find(|token| {
        !matches!(token.kind, Kind::Word | Kind::Number(_) | Kind::Quoted)
            || matches!(token.word, "and" | "to" | "then" | "cc" | "bcc" | "also")
    });
    left.map(|token| token.text)
}

/// Returns whether a word is a plain noun in the singular, which counts nothing.
fn is_noun(token: &Token<'_>) -> bool {
    token.kind == Kind::Word
        && !token.roles.has_any(&GRAMMAR)
        && token.word.len() > 2
        && !token.word.ends_with('s')
        && !token.word.ends_with("ly")
        && !EXTENTS.contains(&token.word)
        && token.word.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_article(token: &Token<'_>) -> bool {
    matches!(token.word, "the" | "a" | "an" | "my" | "our" | "this")
}

fn is_money_sign(text: &str) -> bool {
    matches!(text, "€" | "$" | "£")
}

fn is_currency(word: &str) -> bool {
    super::facts::currency(word).is_some()
}

/// Nouns that name the kind of the operand beside them.
const NOUNS: &[&str] = &[
    "file",
    "folder",
    "directory",
    "document",
    "page",
    "website",
    "site",
    "url",
    "link",
    "address",
    "email",
    "mail",
    "message",
    "table",
    "account",
    "port",
    "host",
    "server",
];
/// Nouns for what is paid, which their number identifies.
const PAPERS: &[&str] = &["order", "invoice", "ticket", "booking", "bill", "case", "claim"];
/// The roles of words that join others and name nothing.
const GRAMMAR: [Grammar; 8] = [
    Grammar::Determiner,
    Grammar::Preposition,
    Grammar::Pronoun,
    Grammar::Conjunction,
    Grammar::Negation,
    Grammar::Modal,
    Grammar::Auxiliary,
    Grammar::Question,
];
/// Nouns for all of something, or for what is left of it.
const EXTENTS: &[&str] =
    &["rest", "remainder", "balance", "whole", "total", "lot", "maximum", "hour", "day", "week", "month", "year"];
/// Maximum number of payees of a sentence.
const MOST_PAYEES: usize = 16;
/// Maximum length of a quoted word, in characters.
const LONGEST: usize = 60;
