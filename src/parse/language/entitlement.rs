//! What somebody is to have, or no longer to have, and what is to be left of a
//! thing: orders that name no deed. "Bob needs admin rights", "Alice must not be
//! able to log in", "There should be no files left".

use crate::model::{Operation, Resource};
use crate::parse::lexicon::{Function, VerbId};
use crate::parse::reading::Act;
use crate::parse::sign::Sign;

use super::heads::{Head, Manner};
use super::meaning::{Context, snake};
use super::object::{self, Candidate};
use super::scope::names_money;
use super::sentence::Sentence;
use super::token::{self, Kind, Token};

impl Context<'_, '_> {
    /// Whether a head is more than a look that is only mentioned: "Bob must get root".
    pub(super) fn orders(&self, head: &Head) -> bool {
        head.verb.is_some_and(|verb| {
            head.manner != Manner::Mentioned || self.lexicon.verb(verb).operation != Operation::Read
        })
    }

    /// What is due to somebody, where no verb orders it.
    pub(super) fn by_what_is_due(&self) -> Option<Act> {
        let at = self.tokens.iter().take(LONGEST_CLAIM).position(is_obligation)?;
        if self.tokens.first().is_some_and(|first| first.is(Function::Question) || first.is(Function::Auxiliary)) {
            return None;
        }
        let behind = self.tokens.get(at + 1..)?;
        let behind = behind.get(..behind.len().min(LONGEST_CLAIM)).unwrap_or(behind);
        let needs = self.tokens.get(at).is_some_and(|token| !token.is(Function::Modal));
        let gets =
            needs || behind.iter().take(3).any(|token| matches!(token.word, "get" | "have" | "receive" | "be given"));
        let named = object::candidates(behind, self.lexicon);
        let right = object::best(&named).filter(|best| is_right(best));
        if let Some(right) = right.filter(|_| gets) {
            let mut act = Act::new("grant", &snake(right.noun), Resource::Permission, Operation::Admin, 0.7);
            act.signs = token::cues(self.tokens);
            return Some(act.named_by(right.noun));
        }
        if gets && names_money(behind) {
            let act = Act::new("pay", "payment", Resource::Payment, Operation::Transfer, 0.7);
            return Some(act);
        }
        None
    }

    /// "Alice must not be able to open the repo", "no user should have access": a right that ends.
    pub(super) fn by_what_is_denied(&self) -> Option<Act> {
        let at = self.tokens.iter().take(LONGEST_CLAIM).position(|token| {
            matches!(
                token.word,
                "must" | "should" | "shall" | "may" | "must not" | "should not" | "shouldn't" | "can't" | "cannot"
            )
        })?;
        let subject = self.tokens.get(at.checked_sub(1)?)?;
        let before = self.tokens.get(..at)?;
        if before.iter().any(|token| token.is(Function::Question) || token.is(Function::About))
            || matches!(subject.word, "i" | "you" | "we" | "it" | "this" | "that" | "which")
            || subject.kind != Kind::Word
        {
            return None;
        }
        let behind = self.tokens.get(at + 1..)?;
        let denies = self.tokens.get(at).is_some_and(|token| token.is(Function::Negation))
            || behind.iter().take(2).any(|token| token.is(Function::Negation))
            || before.iter().any(|token| matches!(token.word, "no" | "nobody" | "noone" | "none"));
        let enables =
            behind.iter().take(6).any(|token| matches!(token.word, "able" | "access" | "allowed" | "permitted"));
        if !(denies && enables) {
            return None;
        }
        let act = Act::new("revoke", "access", Resource::Permission, Operation::Admin, 0.7);
        Some(act.marked(Sign::TakesAccess).told_by(subject.text))
    }
}

impl Sentence<'_, '_> {
    /// "All records must go", "no files may be left": the verb that brings it about.
    pub(super) fn ends_up_gone(&self, index: usize) -> Option<VerbId> {
        let token = self.tokens.get(index)?;
        let is_last = self.tokens.get(index + 1).filter(|_| index + 1 < self.to).is_none_or(|next| {
            next.kind == Kind::Mark
                || next.is(Function::Filler)
                || matches!(next.word, "in" | "on" | "at" | "anywhere" | "behind" | "from" | "by" | "now" | "today")
        });
        if !is_last {
            return None;
        }
        let near = self.tokens.get(self.lately(index))?;
        let gone = match token.word {
            "go" => {
                let helper = self.before(index).and_then(|place| self.tokens.get(place))?;
                let obliges = matches!(helper.word, "must" | "should")
                    || helper.word == "to"
                        && near.iter().any(|token| matches!(token.word, "have" | "has" | "need" | "needs" | "got"));
                obliges && !near.iter().any(is_agent) && self.to <= index + 1
            }
            "left" | "remain" | "remains" | "remaining" | "survive" | "survives" | "exist" | "exists" | "existing" => {
                let none = near.iter().any(|token| matches!(token.word, "no" | "none" | "nothing" | "zero"));
                let wanted = near.iter().any(|token| {
                    token.is(Function::Constraint)
                        || matches!(token.word, "should" | "must" | "want" | "ensure" | "shall")
                });
                none && wanted && !near.iter().any(is_trouble)
            }
            _ => false,
        };
        let (verb, _) = self.lexicon.word("delete").filter(|_| gone)?.verb?;
        Some(verb)
    }

    /// "Perform a full wipe of the server": the deed that a verb of doing and its noun make.
    pub(super) fn light_verb(&self, index: usize) -> Option<(VerbId, usize)> {
        let (verb, _) = self.tokens.get(index)?.entry.verb?;
        if !matches!(
            &*self.lexicon.verb(verb).lemma,
            "perform"
                | "do"
                | "conduct"
                | "carry_out"
                | "execute"
                | "make"
                | "initiate"
                | "run"
                | "start"
                | "trigger"
                | "give"
        ) {
            return None;
        }
        let place = (index + 1..self.to.min(index + 6)).find(|&place| {
            self.tokens.get(place).is_some_and(|token| {
                token.entry.noun.is_none()
                    && token.entry.verb.is_some_and(|(deed, _)| {
                        matches!(
                            self.lexicon.verb(deed).operation,
                            Operation::Delete | Operation::Admin | Operation::Transfer
                        )
                    })
            })
        })?;
        let only_describes = (index + 1..place).all(|at| {
            self.tokens.get(at).is_some_and(|token| {
                token.is(Function::Determiner)
                    || token.kind == Kind::Word && token.entry.function.is_none() && token.entry.noun.is_none()
            })
        });
        let governs = self
            .tokens
            .get(place + 1)
            .filter(|_| place + 1 < self.to)
            .is_none_or(|next| matches!(next.word, "of" | "on" | "from" | "for"));
        let (deed, _) = self.tokens.get(place)?.entry.verb?;
        (place > index + 1 && only_describes && governs).then_some((deed, place + 1))
    }
}

fn is_obligation(token: &Token<'_>) -> bool {
    matches!(token.word, "should" | "must" | "shall" | "needs" | "need" | "requires" | "deserves" | "gets" | "wants")
}

/// Access, rights, a role: what is granted.
fn is_right(candidate: &Candidate<'_>) -> bool {
    candidate.resource == Resource::Permission && candidate.strength >= 3
}

/// Who goes somewhere, rather than what has to go.
fn is_agent(token: &Token<'_>) -> bool {
    matches!(
        token.word,
        "i" | "you" | "he" | "she" | "we" | "who" | "people" | "kids" | "children" | "everyone" | "everybody"
    ) || token.kind == Kind::Word
        && token.text.starts_with(char::is_uppercase)
        && token.entry.function.is_none()
        && token.entry.noun.is_none()
}

/// What is mended rather than deleted, so that none is left.
fn is_trouble(token: &Token<'_>) -> bool {
    matches!(
        token.word,
        "errors"
            | "error"
            | "bugs"
            | "bug"
            | "issues"
            | "warnings"
            | "typos"
            | "mistakes"
            | "gaps"
            | "problems"
            | "questions"
            | "conflicts"
            | "doubts"
            | "doubt"
            | "vulnerabilities"
            | "ambiguity"
    )
}

/// Tokens of the longest claim that is looked over.
const LONGEST_CLAIM: usize = 24;
