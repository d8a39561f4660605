//! What the roles in a clause make of a verb and its object: a right that is
//! given, a control that is taken down, data that leaves, money that moves,
//! something of the world that is looked up.

use crate::model::{Operation, Resource};
use crate::parse::lexicon::{Class, Function, Lexicon, Verb};
use crate::parse::sign::{Sign, Signs};

use super::heads::Head;
use super::meaning::Context;
use super::object::{self, Candidate};
use super::scope::{is_personal, names_money};
use super::token::{Kind, Token};

/// A verb with what it governs.
pub(super) struct Clause<'c, 't, 'a> {
    pub verb: &'c Verb,
    pub head: &'c Head,
    pub governed: &'c [Token<'a>],
    pub candidates: &'c [Candidate<'t>],
    /// The noun that was taken for the object.
    pub named: Option<&'c Candidate<'t>>,
}

/// What a clause asks for, as far as it is read.
pub(super) struct Draft {
    pub resource: Resource,
    pub operation: Operation,
    pub sure: f64,
    /// Nothing names the resource.
    pub guess: bool,
    pub signs: Signs,
}

impl Draft {
    pub(super) fn takes(&mut self, resource: Resource, operation: Operation) {
        (self.resource, self.operation) = (resource, operation);
    }
}

impl Context<'_, '_> {
    /// Goes over the roles, the ones that decide most last but for what stands in for nothing named.
    pub(super) fn apply_roles(&self, clause: &Clause<'_, '_, '_>, draft: &mut Draft) {
        let Clause { verb, head, governed, candidates, .. } = *clause;
        if head.feeds {
            draft.operation = Operation::Read;
        }
        let to_channel = candidates.iter().any(|candidate| candidate.resource == Resource::Message);
        if draft.operation == Operation::Admin && draft.resource == Resource::Permission && to_channel {
            draft.signs.add(Sign::Membership);
        }
        if verb.lemma == "print" && candidates.iter().any(|candidate| candidate.noun == "printer") {
            draft.takes(Resource::Device, Operation::Execute);
        }
        if verb.is(Class::Moves) && names_money(governed) {
            draft.takes(Resource::Payment, Operation::Transfer);
        }
        self.reaches_somebody(clause, draft);
        gives_power(clause, draft);
        draft.guess |= draft.operation == Operation::Write && only_weak(candidates)
            || head.feeds && !draws_on_records(governed, draft.resource);
        asks_of_the_world(clause, draft);
        if draft.resource == Resource::Unknown {
            draft.resource = super::fallback(draft.operation);
            draft.sure = 0.4;
            draft.guess = true;
            if verb.is(Class::Opens) {
                // What is looked at is not known, so it may be anything.
                draft.signs.add(Sign::Unclear);
            }
        }
    }

    /// "Tell Bob", "send me the report", "upload it to example.com": whom it reaches.
    fn reaches_somebody(&self, clause: &Clause<'_, '_, '_>, draft: &mut Draft) {
        let Clause { verb, governed, candidates, .. } = *clause;
        let lets_know = verb.lemma == "let" && governed.iter().take(4).any(|token| token.word == "know");
        if verb.is(Class::Tells) && speaks_to_others(governed, self.lexicon) || lets_know {
            draft.operation = Operation::Send;
            (draft.resource, ..) = self.medium(verb, governed, candidates);
        }
        if verb.is(Class::Uploads) && goes_to_a_host(governed) {
            if matches!(draft.resource, Resource::Unknown | Resource::Information) {
                draft.resource = Resource::Web;
            }
            draft.operation = Operation::Send;
            draft.signs.add(Sign::Outside);
        }
        let keeps_secret = draft.signs.has(Sign::Secret) && verb.is(Class::Fills);
        let brings = matches!(draft.operation, Operation::Read | Operation::Write | Operation::Execute);
        if brings && (verb.is(Class::Uploads) || keeps_secret) && goes_outside(governed, self.lexicon) {
            if draft.signs.has(Sign::Secret) {
                draft.resource = Resource::Credential;
            }
            draft.operation = Operation::Send;
            draft.signs.add(Sign::Outside);
        }
        if verb.lemma == "attach" && governed.iter().any(|token| token.kind == Kind::Email) {
            draft.takes(Resource::Email, Operation::Send);
        }
        if draft.operation == Operation::Send && is_to_oneself(governed) && !names_medium(candidates) {
            // "Send me the report" asks to be shown it; "alert me when" sets up a watch.
            if governed.iter().take(3).any(|token| matches!(token.word, "when" | "if" | "whenever" | "once")) {
                draft.takes(Resource::Account, Operation::Write);
            } else if verb.resource.is_none() && verb.always.is_none() {
                let resource = object::best(candidates).map_or(Resource::Information, |best| best.resource);
                draft.takes(resource, Operation::Read);
            }
        }
    }
}

/// "The price of Bitcoin", "a list of cat tags": the world rather than somebody's data.
fn asks_of_the_world(clause: &Clause<'_, '_, '_>, draft: &mut Draft) {
    let Clause { verb, governed, candidates, named, .. } = *clause;
    if draft.operation != Operation::Read {
        return;
    }
    let personal = is_personal(governed);
    if only_weak(candidates) && verb.always.is_none() && !personal {
        (draft.resource, draft.guess) = (Resource::Information, true);
    }
    // "Explain how password hashing works" opens nothing.
    if is_teaching(&verb.lemma) && draft.resource == Resource::Credential && !personal {
        draft.resource = Resource::Information;
    }
    // "Get me 10 shares" buys them.
    let counts = governed.iter().take(3).any(|token| matches!(token.kind, Kind::Number(_)));
    if counts && is_getting(&verb.lemma) && named.is_some_and(|named| is_traded(named.noun)) {
        draft.takes(Resource::Payment, Operation::Transfer);
        return;
    }
    let behind_unknown = named.is_some_and(|named| named.behind_unknown) && !is_guarded(draft.resource);
    // "The medical records of John Smith" are his.
    let is_record = named.is_some_and(|named| {
        named.is_certain() || named.strength >= 4 && matches!(draft.resource, Resource::Health | Resource::Customer)
    });
    if verb.is(Class::Searches) && is_public_kind(draft.resource) && !personal && !is_record
        || draft.resource == Resource::Web && asks_for_an_address(governed)
        || behind_unknown && !personal && !verb.is(Class::Reads)
    {
        draft.resource = Resource::Information;
    }
}

/// Verbs by which one learns of a thing rather than gets it.
fn is_teaching(lemma: &str) -> bool {
    matches!(lemma, "explain" | "define" | "teach" | "teach_me" | "learn" | "understand" | "elaborate" | "illustrate")
}

fn is_getting(lemma: &str) -> bool {
    matches!(lemma, "get" | "grab" | "grab_me" | "fetch" | "obtain" | "get_me" | "pick")
}

fn is_traded(noun: &str) -> bool {
    matches!(noun, "share" | "stock" | "bitcoin" | "crypto" | "cryptocurrency" | "ethereum" | "bond" | "tech stocks")
}

/// "Give Bob root", "turn the audit log off", "make the bucket public": who may do what changes.
fn gives_power(clause: &Clause<'_, '_, '_>, draft: &mut Draft) {
    let Clause { verb, governed, .. } = *clause;
    // "Post publicly" is what a post is.
    let is_post = draft.resource == Resource::Social || verb.is(Class::Posts);
    let opens = draft.signs.has(Sign::OpenLink)
        && !is_post
        && matches!(draft.operation, Operation::Write | Operation::Send | Operation::Execute);
    if opens || verb.is(Class::Makes) && makes_public(governed) {
        draft.signs.add(Sign::OpenLink);
        draft.takes(Resource::Permission, Operation::Admin);
    }
    let names_administrator = clause
        .candidates
        .iter()
        .any(|candidate| matches!(candidate.noun, "admin" | "administrator" | "root" | "admin access" | "root access"));
    if verb.is(Class::Gives) && names_administrator && draft.operation != Operation::Send {
        draft.signs.add(Sign::Administrator);
    }
    if verb.is(Class::Gives) && draft.signs.has(Sign::Administrator) && draft.operation != Operation::Send {
        draft.takes(Resource::Permission, Operation::Admin);
    }
    if verb.is(Class::TakesDown) && draft.signs.has(Sign::Control) && controls_directly(governed) {
        draft.takes(Resource::Permission, Operation::Admin);
    }
    let from_the_web = || {
        governed.iter().any(|token| token.word == "from")
            && governed.iter().any(|token| {
                matches!(
                    token.word,
                    "website" | "site" | "page" | "webpage" | "url" | "link" | "internet" | "attachment"
                )
            })
    };
    let runs = draft.operation == Operation::Execute
        && (governed.iter().any(|token| token.kind == Kind::Url) || verb.is(Class::Runs) && from_the_web());
    if runs
        && matches!(
            draft.resource,
            Resource::Code | Resource::Web | Resource::File | Resource::System | Resource::Unknown
        )
    {
        if matches!(draft.resource, Resource::Web | Resource::Unknown) {
            draft.resource = Resource::Code;
        }
        draft.signs.add(Sign::Downloaded);
    }
}

/// "Make the bucket public", "set the profile to public" is another thing: a property with "to".
fn makes_public(governed: &[Token<'_>]) -> bool {
    governed.iter().enumerate().any(|(place, token)| {
        let ends = governed.get(place + 1).is_none_or(|next| {
            matches!(next.kind, Kind::Mark | Kind::Stop) || next.is(Function::Conjunction) || next.is(Function::Filler)
        });
        matches!(token.word, "public" | "world-readable" | "world-writable") && ends && place > 0
    }) && !governed.iter().any(|token| token.word == "to")
}

/// Whether the control is the object, not a place that something else is taken from.
fn controls_directly(governed: &[Token<'_>]) -> bool {
    governed
        .iter()
        .take_while(|token| !matches!(token.word, "from" | "in" | "about"))
        .any(|token| token.cue == Some(Sign::Control))
}

/// "To my personal drive", "in the public wiki": a place that others than the organisation hold.
fn goes_outside(governed: &[Token<'_>], lexicon: &Lexicon) -> bool {
    governed.iter().enumerate().any(|(place, token)| {
        token.cue == Some(Sign::Outside)
            && token.entry.noun.is_none_or(|noun| lexicon.noun(noun).resource != Resource::Customer)
            && governed
                .get(place.saturating_sub(2)..place)
                .unwrap_or(&[])
                .iter()
                .any(|before| matches!(before.word, "to" | "into" | "onto" | "in" | "on"))
    })
}

/// "Upload it to pastebin.com".
fn goes_to_a_host(governed: &[Token<'_>]) -> bool {
    governed.windows(2).any(|pair| {
        let [before, after] = pair else { return false };
        after.kind == Kind::Url && matches!(before.word, "to" | "on" | "onto" | "into")
    })
}

/// "Tell Bob", "ask the customers": somebody other than oneself is spoken to.
pub(super) fn speaks_to_others(governed: &[Token<'_>], lexicon: &Lexicon) -> bool {
    let is_small = |token: &&Token<'_>| token.is(Function::Determiner) && token.cue.is_none();
    let Some(first) = governed.iter().find(|token| !is_small(token)) else { return false };
    let names_people = first
        .entry
        .noun
        .is_some_and(|noun| matches!(lexicon.noun(noun).resource, Resource::Customer | Resource::Contact));
    matches!(
        first.word,
        "him"
            | "her"
            | "them"
            | "everyone"
            | "everybody"
            | "all"
            | "anyone"
            | "anybody"
            | "someone"
            | "somebody"
            | "people"
            | "others"
    ) || matches!(first.kind, Kind::Number(_))
        || matches!(first.cue, Some(Sign::Outside | Sign::Team | Sign::ManyRecipients))
        || first.kind == Kind::Word && first.text.starts_with(char::is_uppercase) && !first.is(Function::Pronoun)
        || names_people
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

/// Whether nouns are named, and all of them say little by themselves.
fn only_weak(candidates: &[Candidate<'_>]) -> bool {
    !candidates.is_empty() && candidates.iter().all(Candidate::is_weak)
}

/// Data that is somebody's, or a machine's own, however it is asked for.
const fn is_guarded(resource: Resource) -> bool {
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
            | Resource::Analytics
    )
}

/// Resources of which the world has some as well as a person.
pub(super) const fn is_public_kind(resource: Resource) -> bool {
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
            | Resource::System
            | Resource::Analytics
            | Resource::Network
            | Resource::Web
    )
}
