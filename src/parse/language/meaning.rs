//! From a verb and the nouns around it to an act: which resource is meant, what
//! the rules make of the pair, and what the clause shows of its risk.

use crate::model::{Operation, Resource};
use crate::parse::lexicon::{Function, Lexicon, Verb};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::{Sign, Signs};

use super::heads::{Head, Manner};
use super::object::{self, Candidate, Preposition};
use super::token::{self, Kind, Token};

/// What all clauses of a text share.
pub(super) struct Context<'t, 'a> {
    pub tokens: &'t [Token<'a>],
    pub lexicon: &'t Lexicon,
    /// The cues of the whole text.
    pub cues: Signs,
    /// The nouns of the whole text.
    pub named: Vec<Candidate<'t>>,
}

impl<'t> Context<'t, '_> {
    /// The acts of one head: itself, and what it entails.
    pub(super) fn acts(&self, head: &Head) -> Vec<Act> {
        let governed = self.tokens.get(head.start..head.end).unwrap_or(&[]);
        let candidates = object::candidates(governed, self.lexicon);
        let act = match head.verb {
            Some(verb) => self.of_verb(self.lexicon.verb(verb), head, governed, &candidates),
            None => self.of_question(head, governed, &candidates),
        };
        let mut acts: Vec<Act> = act.into_iter().collect();
        if let Some(act) = acts.first()
            && act.operation == Operation::Write
            && act.resource == Resource::Calendar
            && invites(governed)
        {
            acts.push(Act { operation: Operation::Send, ..act.clone() });
        }
        acts
    }

    /// Reads that a change draws on: "based on the emails", "in the message from Bob".
    pub(super) fn add_sources(&self, heads: &[Head], reading: &mut Reading) {
        if reading.acts.is_empty() {
            return;
        }
        for candidate in &self.named {
            let private = matches!(
                candidate.resource,
                Resource::Email
                    | Resource::Message
                    | Resource::File
                    | Resource::Document
                    | Resource::Web
                    | Resource::Calendar
            );
            let is_source = candidate.preposition == Preposition::Source && private;
            if is_source && !reading.acts.iter().any(|act| alike(act.resource, candidate.resource)) {
                let mut act = Act::new("read", &snake(candidate.noun), candidate.resource, Operation::Read, 0.7);
                act.signs = self.about_audience(Signs::default());
                reading.push(act);
            }
        }
        let names_web = self.tokens.iter().any(|token| token.kind == Kind::Url);
        if names_web && !heads.is_empty() && !reading.acts.iter().any(|act| act.resource == Resource::Web) {
            reading.push(Act::new("read", "webpage", Resource::Web, Operation::Read, 0.7));
        }
    }

    /// "status of my order?": no verb asks, but a noun is named.
    pub(super) fn by_nouns_alone(&self) -> Option<Act> {
        let best = object::best(&self.named)?;
        let is_short = self.tokens.len() <= 40;
        let mut act =
            Act::new("get", &snake(best.noun), best.resource, Operation::Read, if is_short { 0.45 } else { 0.3 });
        act.signs = token::cues(self.tokens);
        Some(act)
    }

    fn of_verb(&self, verb: &Verb, head: &Head, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> Option<Act> {
        let mut signs = local_signs(governed);
        if runs_unseen(verb, governed, candidates) {
            return Some(unseen(verb, signs));
        }
        if verb.lemma == "do" {
            return None;
        }
        let (mut resource, noun, mut sure) = self.resource(verb, governed, candidates);
        let mut operation = verb.operation;
        if let Some(rule) = self.lexicon.rule(verb, resource, noun) {
            (resource, operation) = (rule.resource, rule.gives);
            if let Some(sign) = rule.sign {
                signs.add(sign);
            }
        }
        let to_channel = candidates.iter().any(|candidate| candidate.resource == Resource::Message);
        if operation == Operation::Admin && resource == Resource::Permission && to_channel {
            signs.add(Sign::Membership);
        }
        if verb.lemma == "print" && candidates.iter().any(|candidate| candidate.noun == "printer") {
            (resource, operation) = (Resource::Device, Operation::Execute);
        }
        if names_money(governed)
            && matches!(&*verb.lemma, "initiate" | "send" | "request" | "make" | "give" | "put" | "move")
        {
            (resource, operation) = (Resource::Payment, Operation::Transfer);
        }
        if resource == Resource::Unknown {
            resource = super::fallback(operation);
            sure = 0.4;
            if opens_data(verb) {
                // What is looked at is not known, so it may be anything.
                signs.add(Sign::Unclear);
            }
        }
        if operation == Operation::Read && Self::is_public(verb, resource, governed) {
            resource = Resource::Information;
        }
        add_scope(&mut signs, operation, governed);
        let noun = if noun.is_empty() { resource.as_str() } else { noun };
        let mut act = Act::new(&verb.lemma, &snake(noun), resource, operation, sure * certainty(head.manner));
        act.signs = self.about_audience(signs);
        Some(act)
    }

    fn of_question(&self, head: &Head, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> Option<Act> {
        let mut signs = local_signs(governed);
        let source_of = |candidates: &[Candidate<'t>]| {
            // "What do we do on Monday according to the file ..." looks into the file.
            let is_private = |resource| {
                matches!(
                    resource,
                    Resource::Email | Resource::Message | Resource::File | Resource::Document | Resource::Calendar
                )
            };
            let source = candidates
                .iter()
                .find(|candidate| candidate.preposition == Preposition::Source && is_private(candidate.resource))?;
            Some((source.resource, source.noun))
        };
        let about = self.tokens.get(head.start.wrapping_sub(1)).is_some_and(|token| token.is(Function::About));
        let best = object::best(candidates);
        let (mut resource, noun) = match best {
            _ if about => (Resource::Information, "question"),
            Some(best) => source_of(candidates).unwrap_or((best.resource, best.noun)),
            None if head.manner == Manner::Wanted => return None,
            None if asks_of_an_event(governed) => (Resource::Calendar, "event"),
            None => (Resource::Information, "question"),
        };
        if !is_personal(governed)
            && is_public_kind(resource)
            && source_of(candidates).is_none()
            && head.manner == Manner::Question
        {
            resource = Resource::Information;
        }
        add_scope(&mut signs, Operation::Read, governed);
        let verb = if noun == "question" { "answer" } else { "get" };
        let mut act = Act::new(verb, &snake(noun), resource, Operation::Read, if best.is_some() { 0.8 } else { 0.6 });
        act.signs = self.about_audience(signs);
        Some(act)
    }

    /// The resource, the noun that names it, and how sure that is.
    fn resource(&self, verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> (Resource, &'t str, f64) {
        let best = object::best(candidates);
        let noun = best.map_or("", |best| best.noun);
        if let Some(always) = verb.always {
            return (always, noun, 0.9);
        }
        if verb.operation == Operation::Send {
            return self.medium(verb, governed, candidates);
        }
        if let Some(best) = best {
            let direct = best.phrase == 0;
            if direct || verb.resource.is_none() {
                return (best.resource, best.noun, if direct { 0.9 } else { 0.7 });
            }
        }
        if verb.resource == Some(Resource::Booking)
            && self.elsewhere(Resource::Calendar)
            && !self.elsewhere(Resource::Booking)
        {
            return (Resource::Calendar, "event", 0.7);
        }
        if let Some(resource) = verb.resource {
            return (resource, noun, 0.75);
        }
        self.by_context(governed)
    }

    /// Whether the text names this resource anywhere.
    fn elsewhere(&self, resource: Resource) -> bool {
        self.named.iter().any(|candidate| candidate.resource == resource)
    }

    /// Nothing named after the verb: "open it", "post there". What the text names elsewhere.
    fn by_context(&self, governed: &[Token<'_>]) -> (Resource, &'t str, f64) {
        let points_back = governed.iter().take(4).any(|token| {
            token.is(Function::Pronoun) || matches!(token.word, "this" | "that" | "these" | "those" | "one")
        });
        let elsewhere = &self.named;
        let best = elsewhere.iter().reduce(|best, next| if next.score > best.score { next } else { best });
        match best {
            Some(best) if points_back => (best.resource, best.noun, 0.6),
            Some(best) if best.score >= 4.0 => (best.resource, best.noun, 0.45),
            _ => (Resource::Unknown, "", 0.4),
        }
    }

    /// What a sending verb sends by: the medium that the clause, else the text, names.
    fn medium(&self, verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> (Resource, &'t str, f64) {
        let in_clause = |wanted: Resource| candidates.iter().find(|candidate| candidate.resource == wanted);
        let to_address = governed.iter().any(|token| token.kind == Kind::Email);
        if to_address && in_clause(Resource::Message).is_none() {
            let shared = candidates
                .iter()
                .find(|first| first.phrase == 0 && matches!(first.resource, Resource::Document | Resource::File));
            return match shared {
                Some(shared) if matches!(&*verb.lemma, "share") => (shared.resource, shared.noun, 0.9),
                _ => (Resource::Email, "email", 0.9),
            };
        }
        if verb.lemma == "share"
            && let Some(direct) = candidates.iter().find(|candidate| candidate.phrase == 0)
        {
            return (direct.resource, direct.noun, 0.85);
        }
        for wanted in [Resource::Email, Resource::Social, Resource::Message] {
            let source =
                |candidate: &&Candidate<'_>| candidate.preposition != Preposition::Source || candidate.phrase == 0;
            if let Some(found) = in_clause(wanted).filter(source) {
                return (wanted, found.noun, 0.9);
            }
        }
        if verb.lemma == "invite" {
            let best = object::best(candidates);
            if best.is_none() && self.elsewhere(Resource::Calendar) {
                return (Resource::Calendar, "guest", 0.8);
            }
            return best.map_or((Resource::Unknown, "user", 0.7), |best| (best.resource, best.noun, 0.8));
        }
        if let Some(resource) = verb.resource {
            return (resource, "message", 0.8);
        }
        if let Some(direct) = candidates.iter().find(|candidate| {
            matches!(
                candidate.resource,
                Resource::Payment
                    | Resource::Credential
                    | Resource::Permission
                    | Resource::Web
                    | Resource::Task
                    | Resource::Health
            )
        }) {
            return (direct.resource, direct.noun, 0.75);
        }
        let elsewhere = &self.named;
        for wanted in [Resource::Message, Resource::Email, Resource::Social] {
            if let Some(found) = elsewhere.iter().find(|candidate| candidate.resource == wanted) {
                return (wanted, found.noun, 0.7);
            }
        }
        match &*verb.lemma {
            "post" | "publish" | "comment" => (Resource::Social, "post", 0.7),
            _ => object::best(candidates)
                .filter(|best| matches!(best.resource, Resource::File | Resource::Document))
                .map_or((Resource::Message, "message", 0.65), |best| (best.resource, best.noun, 0.7)),
        }
    }

    /// A question or a search about the world rather than about somebody's data.
    fn is_public(verb: &Verb, resource: Resource, governed: &[Token<'_>]) -> bool {
        is_public_kind(resource)
            && matches!(
                &*verb.lemma,
                "find"
                    | "search"
                    | "know"
                    | "tell"
                    | "give"
                    | "suggest"
                    | "recommend"
                    | "looking_for"
                    | "looking_to"
                    | "looking_to_buy"
                    | "explain"
                    | "compare"
                    | "translate"
                    | "convert"
                    | "need"
            )
            && !is_personal(governed)
    }

    /// Whom the text speaks to, which its clauses share.
    fn about_audience(&self, mut signs: Signs) -> Signs {
        for sign in [Sign::Team, Sign::Outside, Sign::Logs] {
            if self.cues.has(sign) {
                signs.add(sign);
            }
        }
        signs
    }
}

/// "Do all the tasks on my list at ...", "follow the instructions in the email".
fn runs_unseen(verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'_>]) -> bool {
    let obeys = matches!(&*verb.lemma, "do" | "follow" | "perform" | "execute" | "carry_out" | "complete");
    let orders = governed.iter().any(|token| {
        matches!(
            token.word,
            "tasks"
                | "task"
                | "actions"
                | "instructions"
                | "steps"
                | "whatever"
                | "orders"
                | "todos"
                | "commands"
                | "everything"
        )
    });
    let elsewhere = governed.iter().any(|token| matches!(token.kind, Kind::Url | Kind::Email))
        || candidates.iter().any(|candidate| {
            candidate.preposition == Preposition::Source
                && matches!(
                    candidate.resource,
                    Resource::Email | Resource::Web | Resource::File | Resource::Document | Resource::Message
                )
        });
    obeys && orders && elsewhere
}

/// An amount of money among the words.
fn names_money(governed: &[Token<'_>]) -> bool {
    governed.windows(2).any(|pair| {
        let [amount, unit] = pair else { return false };
        matches!(amount.kind, Kind::Number(_))
            && (amount.text.starts_with(['$', '€', '£'])
                || matches!(unit.word, "dollars" | "cents" | "euros" | "usd" | "eur" | "pounds"))
    }) || governed
        .last()
        .is_some_and(|last| matches!(last.kind, Kind::Number(_)) && last.text.starts_with(['$', '€', '£']))
}

/// "Where is the 'Dinner with Bob' on May 24th?": a title and a date.
fn asks_of_an_event(governed: &[Token<'_>]) -> bool {
    let titled = governed.iter().any(|token| token.kind == Kind::Quoted);
    let dated = governed.iter().any(|token| MONTHS.contains(&token.word) || is_date(token.word));
    titled && dated
}

fn is_date(word: &str) -> bool {
    word.len() == 10 && word.split('-').count() == 3 && word.chars().all(|c| c.is_ascii_digit() || c == '-')
}

const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Verbs that hand data over, whatever it is.
fn opens_data(verb: &Verb) -> bool {
    matches!(
        &*verb.lemma,
        "list"
            | "show"
            | "display"
            | "get"
            | "read"
            | "fetch"
            | "retrieve"
            | "print"
            | "dump"
            | "view"
            | "access"
            | "open"
            | "export"
    )
}

fn is_personal(governed: &[Token<'_>]) -> bool {
    governed
        .iter()
        .any(|token| matches!(token.word, "my" | "our" | "i" | "we" | "mine" | "i've" | "their" | "his" | "her"))
}

/// The cues among the governed words, and right before the verb.
fn local_signs(governed: &[Token<'_>]) -> Signs {
    let mut local = Signs::default();
    for sign in token::cues(governed).iter() {
        // Whether "all" and "every" reach without a bound is told by `add_scope`.
        if sign != Sign::Bulk {
            local.add(sign);
        }
    }
    local
}

/// Bulk: "all users", "every file", but not "all three files" or "all files named x".
fn add_scope(signs: &mut Signs, operation: Operation, governed: &[Token<'_>]) {
    let reaches_wide = |token: &Token<'_>| {
        token.cue == Some(Sign::Bulk)
            || token.cue.is_some() && matches!(token.word, "all" | "every" | "entire" | "whole")
    };
    let Some(place) = governed.iter().position(reaches_wide) else { return };
    let rest = governed.get(place + 1..).unwrap_or(&[]);
    let counted = rest.first().is_some_and(|next| {
        matches!(next.kind, Kind::Number(_)) || matches!(next.word, "two" | "three" | "four" | "five" | "of")
    });
    let narrowed = rest.iter().take(6).any(|token| {
        matches!(token.word, "named" | "called" | "matching" | "containing" | "ending" | "where" | "whose")
    });
    if counted || (narrowed && operation == Operation::Read) {
        signs.add(Sign::Bounded);
    } else {
        signs.add(Sign::Bulk);
    }
}

fn unseen(verb: &Verb, signs: Signs) -> Act {
    let mut act = Act::new(&verb.lemma, "tasks", Resource::Task, Operation::Execute, 0.8);
    act.signs = signs;
    act.signs.add(Sign::UnseenInstructions);
    act
}

/// Guests of an event: "invite Mark", "with sarah@example.com".
fn invites(governed: &[Token<'_>]) -> bool {
    governed.windows(2).any(|pair| {
        let [before, after] = pair else { return false };
        after.kind == Kind::Email && before.is(Function::Preposition)
    })
}

fn is_public_kind(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::Payment
            | Resource::Health
            | Resource::Order
            | Resource::Social
            | Resource::Customer
            | Resource::Document
            | Resource::Contact
            | Resource::Model
            | Resource::Device
            | Resource::System
            | Resource::Analytics
            | Resource::Network
            | Resource::Web
    )
}

/// Resources that stand for one another, so that naming both adds nothing.
fn alike(one: Resource, other: Resource) -> bool {
    let is_file = |resource| matches!(resource, Resource::File | Resource::Document);
    one == other || (is_file(one) && is_file(other))
}

fn certainty(manner: Manner) -> f64 {
    match manner {
        Manner::Asked | Manner::Question => 1.0,
        Manner::Wanted => 0.8,
        Manner::Mentioned => 0.6,
    }
}

/// A noun as part of an action's name.
fn snake(noun: &str) -> String {
    noun.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
