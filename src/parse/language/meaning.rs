//! From a verb and the nouns around it to an act: which resource is meant, what
//! the rules make of the pair, and what the clause shows of its risk.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::lexicon::{Class, Form, Function, Lexicon, Verb};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::{Sign, Signs};

use super::heads::{Head, Manner};
use super::object::{self, Candidate};
use super::roles::{Clause, Draft, is_public_kind};
use super::scope::{add_scope, invites, is_personal, local_signs};
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
            None if head.manner == Manner::Obscure => Some(self.obscure(head)),
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

    /// What the acts of the whole text entail beside themselves.
    pub(super) fn entailed(&self, reading: &mut Reading) {
        let invites_somebody = reading
            .acts
            .iter()
            .find(|act| act.resource == Resource::Calendar && act.operation == Operation::Write)
            .filter(|_| self.tokens.iter().any(|token| token.kind == Kind::Email))
            .map(|act| Act { operation: Operation::Send, ..act.clone() });
        if let Some(act) = invites_somebody {
            reading.push(act);
        }
        let configures = reading.acts.iter().any(|act| {
            act.operation == Operation::Write
                && matches!(
                    act.resource,
                    Resource::Config | Resource::Database | Resource::System | Resource::Network | Resource::Account
                )
        });
        if configures && self.gives_a_secret() {
            let act = Act::new("store", "credential", Resource::Credential, Operation::Write, 0.8);
            reading.push(act.at_risk(RiskLevel::Medium));
        }
        let shared = self.tokens.windows(2).any(|pair| {
            let [shared, with] = pair else { return false };
            shared.word == "shared" && matches!(with.word, "with" | "by")
        });
        if shared && reading.acts.iter().any(|act| act.operation == Operation::Read && act.resource == Resource::File) {
            reading.push(Act::new("read", "sharing", Resource::Permission, Operation::Read, 0.7).named_by("shared"));
        }
    }

    /// "The password is 'x'": a secret is handed over to be kept.
    fn gives_a_secret(&self) -> bool {
        self.tokens.windows(3).any(|three| {
            let [noun, link, value] = three else { return false };
            let is_secret = noun.entry.noun.is_some_and(|id| self.lexicon.noun(id).resource == Resource::Credential);
            is_secret
                && (noun.text != noun.word
                    || matches!(link.word, "is" | ":" | "=" | "as" | "of" | "to")
                    || link.kind == Kind::Quoted)
                && (value.kind == Kind::Quoted || link.kind == Kind::Quoted || value.entry.function.is_none())
        })
    }

    /// No verb is plainly asked for, but one that could do harm stands there: it may be meant.
    pub(super) fn by_a_deed(&self, heads: &[Head], is_ordered: bool) -> Option<Act> {
        if heads.iter().any(|head| head.verb.is_none()) {
            return None;
        }
        let harms = |token: &Token<'_>| {
            token.entry.noun.is_none()
                && token.kind == Kind::Word
                && token.entry.verb.is_some_and(|(verb, _)| {
                    let verb = self.lexicon.verb(verb);
                    let operation = verb.operation;
                    matches!(operation, Operation::Delete | Operation::Admin | Operation::Transfer)
                        || is_ordered
                            && matches!(operation, Operation::Send | Operation::Execute)
                            && !verb.is(Class::Obeys)
                })
        };
        let at = self.tokens.iter().position(harms)?;
        let negated = self
            .tokens
            .get(at.saturating_sub(3)..at)
            .unwrap_or(&[])
            .iter()
            .any(|token| token.is(Function::Negation) || token.is(Function::Question));
        if negated {
            return None;
        }
        let (verb, _) = self.tokens.get(at)?.entry.verb?;
        let verb = self.lexicon.verb(verb);
        let best = object::best(&self.named);
        let named = best.map_or(verb.resource.unwrap_or(Resource::Unknown), |best| best.resource);
        let resource = verb.always.unwrap_or(named);
        let noun = best.map_or("data", |best| best.noun);
        let mut act = Act::new(&verb.lemma, &snake(noun), resource, verb.operation, 0.4)
            .told_by(self.tokens.get(at).map_or("", |token| token.text))
            .named_by(noun);
        act.signs = token::cues(self.tokens);
        Some(act.marked(Sign::Unclear))
    }

    /// "status of my order?": no verb asks, but a noun is named.
    pub(super) fn by_nouns_alone(&self) -> Option<Act> {
        let best = object::best(&self.named)?;
        let is_short = self.tokens.len() <= 40;
        let mut act =
            Act::new("get", &snake(best.noun), best.resource, Operation::Read, if is_short { 0.45 } else { 0.3 });
        act.signs = token::cues(self.tokens);
        // "Yeet the database": an order by a verb that is not known may ask for anything.
        let mut words = self.tokens.iter().filter(|token| !token.is(Function::Filler));
        let is_unknown_order = words.next().is_some_and(|first| {
            first.kind == Kind::Word
                && first.entry.verb.is_none()
                && first.entry.noun.is_none()
                && first.entry.function.is_none()
                && first.entry.cue != Some(Sign::Ordinary)
                && first.text.chars().all(char::is_alphabetic)
        }) && words.next().is_some_and(|next| next.is(Function::Determiner));
        if is_unknown_order {
            act.sure = 0.2;
            act.signs.add(Sign::Unclear);
        }
        Some(act)
    }

    /// "So that they no longer exist": whatever verb says it, it is deleted.
    pub(super) fn by_its_end(&self) -> Act {
        let best = object::best(&self.named);
        let (resource, noun) = best.map_or((Resource::Unknown, "data"), |best| (best.resource, best.noun));
        let mut act = Act::new("delete", &snake(noun), resource, Operation::Delete, 0.6).named_by(noun);
        act.signs = token::cues(self.tokens);
        act
    }

    fn of_verb(&self, verb: &Verb, head: &Head, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> Option<Act> {
        let mut signs = local_signs(governed);
        if let Some(sign) = self.tokens.get(head.at).and_then(|token| token.cue).filter(|sign| *sign != Sign::Bulk) {
            signs.add(sign);
        }
        if runs_unseen(verb, governed, candidates) || obeys_a_text(verb, governed, candidates, self.lexicon) {
            return Some(unseen(verb, signs));
        }
        // "Let the speaker say it" lets nobody do anything that was not theirs to do.
        let lets_nobody = verb.lemma == "let" && !super::roles::speaks_to_others(governed, self.lexicon);
        if verb.lemma == "do" || lets_nobody {
            return None;
        }
        let (resource, noun, sure) = self.resource(verb, governed, candidates);
        let mut draft = Draft { resource, operation: verb.operation, sure, guess: false, signs };
        let named = candidates.iter().find(|candidate| candidate.noun == noun);
        if let Some(rule) = self.lexicon.rule(verb, resource, noun, named.map_or("", |named| named.after)) {
            draft.takes(rule.resource, rule.gives);
            if let Some(sign) = rule.sign {
                draft.signs.add(sign);
            }
        }
        let clause = Clause { verb, head, governed, candidates, named };
        self.apply_roles(&clause, &mut draft);
        add_scope(&mut draft.signs, draft.operation, governed);
        let changes = !matches!(draft.operation, Operation::Read | Operation::Write);
        if changes && governed.iter().take(2).any(|token| matches!(token.word, "them" | "it" | "those" | "these")) {
            // "Find all old backups and delete them": they are what was just named.
            let named = self.tokens.get(head.at.saturating_sub(ANTECEDENT).max(head.sentence)..head.at).unwrap_or(&[]);
            add_scope(&mut draft.signs, draft.operation, named);
            let shown = local_signs(named);
            for sign in [Sign::Backup, Sign::Sensitive, Sign::Secret].into_iter().filter(|sign| shown.has(*sign)) {
                draft.signs.add(sign);
            }
        }
        let noun = if noun.is_empty() { draft.resource.as_str() } else { noun };
        let sure = draft.sure * certainty(head.manner);
        let mut act = Act::new(&verb.lemma, &snake(noun), draft.resource, draft.operation, sure)
            .told_by(self.words_of(head))
            .named_by(noun);
        act.signs = self.about_audience(draft.signs);
        act.guess = draft.guess;
        act.rival = object::rival(candidates);
        Some(act)
    }

    /// An order whose verb nobody knows: it may ask for anything.
    fn obscure(&self, head: &Head) -> Act {
        let mut act = Act::unknown().told_by(self.words_of(head));
        act.signs = token::cues(self.tokens);
        act.marked(Sign::Unclear)
    }

    /// The words of a head's verb, as written.
    fn words_of(&self, head: &Head) -> &str {
        self.tokens.get(head.at).map_or("", |token| token.text)
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
            let source = candidates.iter().find(|candidate| candidate.is_source() && is_private(candidate.resource))?;
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
        if head.manner == Manner::Wanted
            && let Some(act) = wanted_thing(best, governed)
        {
            return Some(act);
        }
        let is_certain = best.is_some_and(Candidate::is_certain);
        if !is_personal(governed)
            && is_public_kind(resource)
            && !is_certain
            && source_of(candidates).is_none()
            && head.manner == Manner::Question
        {
            resource = Resource::Information;
        }
        add_scope(&mut signs, Operation::Read, governed);
        let verb = if noun == "question" { "answer" } else { "get" };
        let mut act = Act::new(verb, &snake(noun), resource, Operation::Read, if best.is_some() { 0.8 } else { 0.6 })
            .named_by(noun);
        act.signs = self.about_audience(signs);
        act.rival = object::rival(candidates);
        act.guess = best.is_none_or(Candidate::is_weak) && !about && resource != Resource::Calendar;
        Some(act)
    }

    /// The resource, the noun that names it, and how sure that is.
    fn resource(&self, verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'t>]) -> (Resource, &'t str, f64) {
        let changes = matches!(verb.operation, Operation::Write | Operation::Delete | Operation::Transfer);
        let best =
            if changes { object::best_to_change(candidates, verb.is(Class::Fills)) } else { object::best(candidates) };
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
        self.by_context(verb, governed)
    }

    /// Whether the text names this resource anywhere.
    pub(super) fn elsewhere(&self, resource: Resource) -> bool {
        self.named.iter().any(|candidate| candidate.resource == resource)
    }

    /// Nothing named after the verb: "open it", "post there". What the text names elsewhere.
    fn by_context(&self, verb: &Verb, governed: &[Token<'_>]) -> (Resource, &'t str, f64) {
        let points_back = governed.iter().take(4).any(|token| {
            token.is(Function::Pronoun) || matches!(token.word, "this" | "that" | "these" | "those" | "one")
        });
        let elsewhere = &self.named;
        let best = elsewhere.iter().reduce(|best, next| if next.score > best.score { next } else { best });
        match best {
            Some(best) if points_back && !best.is_weak() => (best.resource, best.noun, 0.6),
            // What is looked up is named by the clause itself; what is changed may stand elsewhere.
            Some(best) if best.score >= 4.0 && verb.operation != Operation::Read => (best.resource, best.noun, 0.45),
            _ => (Resource::Unknown, "", 0.4),
        }
    }

    /// Whom the text speaks to, which its clauses share.
    pub(super) fn about_audience(&self, mut signs: Signs) -> Signs {
        for sign in [Sign::Team, Sign::Outside, Sign::Logs] {
            if self.cues.has(sign) {
                signs.add(sign);
            }
        }
        signs
    }
}

/// Tokens before a verb in which what "them" names is looked for.
const ANTECEDENT: usize = 12;

/// "Do all the tasks on my list at ...", "follow the instructions in the email".
fn runs_unseen(verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'_>]) -> bool {
    let runs_whatever = verb.is(Class::Runs) && governed.first().is_some_and(|first| first.word == "whatever");
    let obeys = verb.is(Class::Obeys) || runs_whatever;
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
            candidate.is_source()
                && matches!(
                    candidate.resource,
                    Resource::Email | Resource::Web | Resource::File | Resource::Document | Resource::Message
                )
        });
    let whatever = governed.iter().any(|token| matches!(token.word, "whatever" | "exactly"))
        && (governed.iter().any(|token| matches!(token.word, "attachment" | "link" | "url"))
            || candidates.iter().any(|candidate| {
                matches!(
                    candidate.resource,
                    Resource::Email | Resource::Web | Resource::File | Resource::Document | Resource::Message
                )
            }));
    obeys && (orders && elsewhere || whatever)
}

/// "Do what the email from Karl tells you", "do as the page says": a text that says what is to be done.
fn obeys_a_text(verb: &Verb, governed: &[Token<'_>], candidates: &[Candidate<'_>], lexicon: &Lexicon) -> bool {
    let says = |token: &Token<'_>| {
        matches!(token.word, "says" | "instructs" | "demands" | "requires" | "states" | "commands")
            || token
                .entry
                .verb
                .is_some_and(|(verb, form)| form == Form::Third && lexicon.verb(verb).is(Class::Instructs))
    };
    verb.is(Class::Obeys)
        && governed
            .first()
            .is_some_and(|first| matches!(first.word, "what" | "as" | "whatever" | "everything" | "anything" | "like"))
        && governed.iter().skip(1).any(says)
        && candidates.iter().any(|candidate| {
            matches!(
                candidate.resource,
                Resource::Email
                    | Resource::Web
                    | Resource::File
                    | Resource::Document
                    | Resource::Message
                    | Resource::Task
            )
        })
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

fn unseen(verb: &Verb, signs: Signs) -> Act {
    let mut act = Act::new(&verb.lemma, "tasks", Resource::Task, Operation::Execute, 0.8);
    act.signs = signs;
    act.signs.add(Sign::UnseenInstructions);
    act
}

/// "I need an uber", "I'd like a reservation for two": what is wished for is to be got, not looked at.
fn wanted_thing(best: Option<&Candidate<'_>>, governed: &[Token<'_>]) -> Option<Act> {
    let best = best.filter(|best| best.phrase == 0 && !best.definite)?;
    let (verb, operation) = match best.resource {
        Resource::Order => ("order", Operation::Transfer),
        Resource::Booking => ("book", Operation::Transfer),
        Resource::Calendar => ("create", Operation::Write),
        _ => return None,
    };
    let mut act = Act::new(verb, &snake(best.noun), best.resource, operation, 0.7).named_by(best.noun);
    act.signs = local_signs(governed);
    Some(act)
}

fn certainty(manner: Manner) -> f64 {
    match manner {
        Manner::Asked | Manner::Wished | Manner::Question => 1.0,
        Manner::Wanted => 0.8,
        Manner::Mentioned | Manner::Obscure => 0.6,
    }
}

/// A noun as part of an action's name.
pub(super) fn snake(noun: &str) -> String {
    noun.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
