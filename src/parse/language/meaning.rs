//! From a verb and the nouns around it to an act: which resource is meant, what
//! the rules make of the pair, and what the clause shows of its risk.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::lexicon::{Function, Lexicon, Verb};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::{Sign, Signs};

use super::heads::{Head, Manner};
use super::object::{self, Candidate};
use super::scope::{add_scope, invites, is_personal, local_signs, names_money};
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
            reading
                .push(Act::new("read", "sharing", Resource::Permission, Operation::Read, 0.7).from_resource("shared"));
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
        if let Some(sign) = self.tokens.get(head.at).and_then(|token| token.cue).filter(|sign| *sign != Sign::Bulk) {
            signs.add(sign);
        }
        if runs_unseen(verb, governed, candidates) {
            return Some(unseen(verb, signs));
        }
        if verb.lemma == "do" {
            return None;
        }
        let (mut resource, noun, mut sure) = self.resource(verb, governed, candidates);
        let mut operation = verb.operation;
        let after = candidates.iter().find(|candidate| candidate.noun == noun).map_or("", |found| found.after);
        let is_behind = candidates.iter().find(|candidate| candidate.noun == noun).is_some_and(|c| c.behind_unknown);
        if let Some(rule) = self.lexicon.rule(verb, resource, noun, after) {
            (resource, operation) = (rule.resource, rule.gives);
            if let Some(sign) = rule.sign {
                signs.add(sign);
            }
        }
        if head.feeds {
            operation = Operation::Read;
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
        let mut guess = false;
        guess |= operation == Operation::Write && only_weak(candidates)
            || head.feeds && !draws_on_records(governed, resource);
        if operation == Operation::Read && only_weak(candidates) && verb.always.is_none() && !is_personal(governed) {
            // "A list of cat tags", "information about Islamic finance": of the world, not somebody's document.
            (resource, guess) = (Resource::Information, true);
        }
        if matches!(&*verb.lemma, "tell" | "ask") && speaks_to_others(governed, self.lexicon) {
            operation = Operation::Send;
            (resource, ..) = self.medium(verb, governed, candidates);
        }
        if signs.has(Sign::OpenLink) && matches!(operation, Operation::Write | Operation::Send | Operation::Execute) {
            // Opened to whoever has the link: that decides who may see it.
            (resource, operation) = (Resource::Permission, Operation::Admin);
        }
        if resource == Resource::Unknown {
            resource = super::fallback(operation);
            sure = 0.4;
            guess = true;
            if opens_data(verb) {
                // What is looked at is not known, so it may be anything.
                signs.add(Sign::Unclear);
            }
        }
        if operation == Operation::Read
            && (Self::is_public(verb, resource, governed)
                || resource == Resource::Web && asks_for_an_address(governed)
                || is_behind && !is_personal(governed) && !is_guarded(resource) && self.asks_of_the_world(verb))
        {
            resource = Resource::Information;
        }
        if operation == Operation::Send && is_to_oneself(governed) && !names_medium(candidates) {
            // "Send me the report" asks to be shown it; "alert me when" sets up a watch.
            if governed.iter().take(3).any(|token| matches!(token.word, "when" | "if" | "whenever" | "once")) {
                (resource, operation) = (Resource::Account, Operation::Write);
            } else if verb.resource.is_none() && verb.always.is_none() {
                operation = Operation::Read;
                resource = object::best(candidates).map_or(Resource::Information, |best| best.resource);
            }
        }
        add_scope(&mut signs, operation, governed);
        let noun = if noun.is_empty() { resource.as_str() } else { noun };
        let mut act = Act::new(&verb.lemma, &snake(noun), resource, operation, sure * certainty(head.manner))
            .from_operation(self.words_of(head))
            .from_resource(noun);
        act.signs = self.about_audience(signs);
        act.guess = guess;
        act.rival = object::rival(candidates);
        Some(act)
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
        if !is_personal(governed)
            && is_public_kind(resource)
            && source_of(candidates).is_none()
            && head.manner == Manner::Question
        {
            resource = Resource::Information;
        }
        add_scope(&mut signs, Operation::Read, governed);
        let verb = if noun == "question" { "answer" } else { "get" };
        let mut act = Act::new(verb, &snake(noun), resource, Operation::Read, if best.is_some() { 0.8 } else { 0.6 })
            .from_resource(noun);
        act.signs = self.about_audience(signs);
        act.rival = object::rival(candidates);
        act.guess = best.is_none_or(Candidate::is_weak) && !about && resource != Resource::Calendar;
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

    /// Verbs that look something up rather than open what is at hand.
    fn asks_of_the_world(&self, verb: &Verb) -> bool {
        !matches!(&*verb.lemma, "open" | "read" | "view" | "access" | "review" | "download")
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
    pub(super) fn about_audience(&self, mut signs: Signs) -> Signs {
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
            candidate.is_source()
                && matches!(
                    candidate.resource,
                    Resource::Email | Resource::Web | Resource::File | Resource::Document | Resource::Message
                )
        });
    let whatever = governed.iter().any(|token| matches!(token.word, "whatever" | "exactly"))
        && candidates.iter().any(|candidate| {
            matches!(
                candidate.resource,
                Resource::Email | Resource::Web | Resource::File | Resource::Document | Resource::Message
            )
        });
    obeys && (orders && elsewhere || whatever)
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

fn unseen(verb: &Verb, signs: Signs) -> Act {
    let mut act = Act::new(&verb.lemma, "tasks", Resource::Task, Operation::Execute, 0.8);
    act.signs = signs;
    act.signs.add(Sign::UnseenInstructions);
    act
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

/// "The website of the airport": which address it has, not what stands there.
fn asks_for_an_address(governed: &[Token<'_>]) -> bool {
    !governed.iter().any(|token| token.kind == Kind::Url)
        && governed.iter().any(|token| matches!(token.word, "of" | "for"))
        && governed.iter().any(|token| matches!(token.word, "website" | "url" | "link" | "urls" | "links" | "homepage"))
}

/// "My latest booking", "the order details": records that have to be looked up to be included.
fn draws_on_records(governed: &[Token<'_>], resource: Resource) -> bool {
    let is_quoted = governed.iter().take(3).any(|token| token.kind == Kind::Quoted);
    let is_record = matches!(
        resource,
        Resource::Order
            | Resource::Booking
            | Resource::Payment
            | Resource::Account
            | Resource::Health
            | Resource::Customer
    );
    !is_quoted && (is_record || is_personal(governed) && is_guarded(resource))
}

/// "Tell Bob", "ask the customers": somebody other than oneself is spoken to.
fn speaks_to_others(governed: &[Token<'_>], lexicon: &Lexicon) -> bool {
    governed
        .iter()
        .find(|token| !token.is(Function::Determiner) || matches!(token.word, "everyone" | "everybody"))
        .is_some_and(|token| {
            matches!(token.word, "him" | "her" | "them" | "everyone" | "everybody" | "all")
                || matches!(token.kind, Kind::Number(_))
                || token.kind == Kind::Word
                    && token.text.starts_with(char::is_uppercase)
                    && !token.is(Function::Pronoun)
                || token
                    .entry
                    .noun
                    .is_some_and(|noun| matches!(lexicon.noun(noun).resource, Resource::Customer | Resource::Contact))
        })
}

/// "Send me", "notify me".
fn is_to_oneself(governed: &[Token<'_>]) -> bool {
    governed.first().is_some_and(|token| matches!(token.word, "me" | "us"))
}

fn names_medium(candidates: &[Candidate<'_>]) -> bool {
    candidates.iter().any(|candidate| {
        matches!(candidate.resource, Resource::Email | Resource::Message | Resource::Social | Resource::Contact)
    })
}

/// Data that is somebody's, however it is asked for.
fn is_guarded(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::Email
            | Resource::Message
            | Resource::Credential
            | Resource::Customer
            | Resource::Health
            | Resource::Calendar
            | Resource::Permission
            | Resource::Database
            | Resource::File
            | Resource::System
            | Resource::Network
            | Resource::Config
            | Resource::Code
    )
}

/// Whether nouns are named, and all of them say little by themselves.
fn only_weak(candidates: &[Candidate<'_>]) -> bool {
    !candidates.is_empty() && candidates.iter().all(Candidate::is_weak)
}

fn certainty(manner: Manner) -> f64 {
    match manner {
        Manner::Asked | Manner::Wished | Manner::Question => 1.0,
        Manner::Wanted => 0.8,
        Manner::Mentioned => 0.6,
    }
}

/// A noun as part of an action's name.
pub(super) fn snake(noun: &str) -> String {
    noun.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}
