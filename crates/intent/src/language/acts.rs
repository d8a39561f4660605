//! Turns the reading of a clause into an act: its name, its signs and its evidence.

use crate::learned::{Clause, Heard, IntentTable, Vocabulary as _};
use crate::reading::{Act, Facts};
use crate::roles::Role;
use crate::sign::{Sign, Signs};
use rulekeep_types::{Operation, Resource};

use super::facts::bare_amount;
use super::floor;
use super::scope::{add_scope, local_signs};
use super::token::{Kind, Token};

/// The text that the clauses belong to.
pub(super) struct Speaker<'t, 'a> {
    pub tokens: &'t [Token<'a>],
    /// The signs of the whole text.
    pub cues: Signs,
}

impl Speaker<'_, '_> {
    /// The act of a clause; `None` if no word of it means anything.
    pub(super) fn act(
        &self,
        clause: &Clause<'_>,
        heard: &Heard,
        table: &IntentTable,
        facts: &mut Facts,
    ) -> Option<Act> {
        let danger = floor::of(clause);
        if let Some(verb) = obscure(clause, table).filter(|_| danger.is_none()) {
            // An order with an unknown verb may ask for anything.
            let mut act = Act::unknown().told_by(verb).marked(Sign::Unclear);
            act.signs = act.signs.with(local_signs(self.tokens_of(clause)));
            return Some(act);
        }
        // "Yes", "and then": only introductory words.
        clause.first?;
        if heard.told_operation.is_none() && heard.told_resource.is_none() && danger.is_none() {
            return None;
        }
        let word = |place: Option<usize>| place.and_then(|place| clause.words.get(place)).copied();
        let verb_at = clause.head.or(heard.told_operation);
        let verb = word(verb_at).map_or(heard.operation.as_str().to_owned(), |word| table.base(word).into_owned());
        let noun = word(heard.told_resource.filter(|place| Some(*place) != verb_at)).unwrap_or(heard.resource.as_str());
        let mut act = Act::new(&verb, noun, heard.resource, heard.operation, heard.sure);
        act.others.clone_from(&heard.others);
        act.learned = Some(heard.risk);
        let tokens = self.tokens_of(clause);
        act.signs = self.shared(local_signs(tokens));
        add_scope(&mut act.signs, act.operation, tokens);
        if let Some(place) = danger {
            act.signs.add(Sign::Danger);
            facts.show(Sign::Danger, word(Some(place)).unwrap_or_default());
        }
        if act.operation == Operation::Read && self.reads_a_secret(clause) {
            // "Read the API keys from the config": the keys are read, wherever they are stored.
            act.resource = Resource::Credential;
        }
        if obeys_a_text(clause) {
            (act.resource, act.operation) = (Resource::Task, Operation::Execute);
            act.signs.add(Sign::UnseenInstructions);
        }
        if points_back(clause) {
            // "Find all old backups and delete them": "them" refers to what was just named.
            let start = clause.at.first().map_or(0, |&at| at as usize);
            let named = self.tokens.get(start.saturating_sub(ANTECEDENT)..start).unwrap_or_default();
            add_scope(&mut act.signs, act.operation, named);
            let shown = local_signs(named);
            for sign in [Sign::Backup, Sign::Sensitive, Sign::Secret].into_iter().filter(|sign| shown.has(*sign)) {
                act.signs.add(sign);
            }
        }
        if heard.known < LEAST_KNOWN || heard.sure < LEAST_SURE {
            act.signs.add(Sign::Unclear);
        }
        if act.operation == Operation::Transfer && facts.amounts.is_empty() {
            // "Transfer 50k to Bob": with a verb of payment, a bare number is money.
            let behind = clause.head.and_then(|head| clause.at.get(head)).map_or(0, |&at| at as usize + 1);
            if let Some(amount) = bare_amount(self.tokens, behind, table) {
                facts.note_amount(amount, None);
            }
        }
        let words = heard.told.iter().filter_map(|told| {
            let start = if told.is_pair { told.place.checked_sub(1)? } else { told.place };
            Some((clause.words.get(start..=told.place)?.join(" ").into(), told.points_to))
        });
        act.found.words = words.collect();
        let told = |place: Option<usize>| place.and_then(|place| self.text_at(clause, place));
        act = act.told_by(told(clause.head.or(heard.told_operation)).unwrap_or_default());
        Some(act.named_by(told(heard.told_resource).unwrap_or_default()))
    }

    /// Returns whether the text says "do it", "try that" or the like.
    pub(super) fn orders_it_done(&self) -> bool {
        self.tokens.windows(2).any(|pair| {
            let [verb, object] = pair else { return false };
            matches!(verb.word, "do" | "try") && matches!(object.word, "it" | "that" | "this" | "so")
                || verb.word == "go" && object.word == "ahead"
        })
    }

    /// Returns whether the object of the clause's verb is a secret: "show all API keys", not "show the password
    /// policy".
    fn reads_a_secret(&self, clause: &Clause<'_>) -> bool {
        let Some(&at) = clause.head.and_then(|head| clause.at.get(head + 1)) else { return false };
        let behind = self.tokens.get(at as usize..).unwrap_or_default();
        let leads = |token: &&Token<'_>| token.is(Role::Determiner) || token.is(Role::Pronoun);
        let words = behind.iter().skip_while(leads);
        let mut named = words.take_while(|token| token.kind == Kind::Word && !token.roles.is_small());
        let starts = named.next().is_some_and(|token| token.cue == Some(Sign::Secret));
        starts && named.all(|token| SECRETS.contains(&token.word))
    }

    /// The tokens from the first to the last of a clause.
    fn tokens_of(&self, clause: &Clause<'_>) -> &[Token<'_>] {
        let place = |at: Option<&u32>| at.map_or(0, |&at| at as usize);
        self.tokens.get(place(clause.at.first())..=place(clause.at.last())).unwrap_or_default()
    }

    fn text_at(&self, clause: &Clause<'_>, place: usize) -> Option<&str> {
        self.tokens.get(*clause.at.get(place)? as usize).map(|token| token.text)
    }

    /// The clause's signs with those signs of the text that all of its clauses share.
    fn shared(&self, mut signs: Signs) -> Signs {
        for sign in [Sign::Team, Sign::Outside, Sign::Logs] {
            if self.cues.has(sign) {
                signs.add(sign);
            }
        }
        signs
    }
}

/// An unknown word in the position of an order's verb, before "the" or "my".
fn obscure<'t>(clause: &Clause<'t>, table: &IntentTable) -> Option<&'t str> {
    let unknown = |word: &str| word.chars().all(char::is_alphabetic) && !table.knows(word);
    let mut pairs = clause.words.iter().zip(clause.words.iter().skip(1));
    // "The servers must be blorfed".
    let passive = pairs.find(|(be, done)| **be == "be" && done.ends_with("ed") && unknown(done));
    if let Some((_, done)) = passive {
        return Some(done);
    }
    let place = clause.first.filter(|_| clause.head.is_none())?;
    let word = *clause.words.get(place)?;
    (clause.has(place + 1, Role::Firm) && unknown(word)).then_some(word)
}

/// Last words of phrases that name secrets.
const SECRETS: &[&str] = &["key", "keys", "token", "tokens", "code", "codes", "phrase"];

/// Returns whether the object was named earlier: "delete them".
fn points_back(clause: &Clause<'_>) -> bool {
    let behind = clause.head.map_or(0, |head| head + 1);
    clause.words.iter().skip(behind).take(2).any(|word| matches!(*word, "them" | "it" | "those" | "these"))
}

/// Number of tokens before a clause in which the referent of "them" is searched.
const ANTECEDENT: usize = 12;

/// Returns whether the instructions are elsewhere: "do what the mail says", "follow the instructions in the file".
fn obeys_a_text(clause: &Clause<'_>) -> bool {
    (0..=clause.first.unwrap_or(0)).any(|place| clause.has(place, Role::Obeys))
        && (clause.any(Role::Says) || clause.any(Role::Instructions))
        && (clause.any(Role::Source) || clause.words.contains(&"whatever"))
}

/// The minimum confidence; below it the request counts as not understood.
const LEAST_SURE: f64 = 0.2;
/// The minimum share of known words of a clause that is read with certainty.
const LEAST_KNOWN: f64 = 0.5;
