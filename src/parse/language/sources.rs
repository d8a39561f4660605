//! Reads that a change draws on: "based on the emails", "in the message from Bob".

use crate::model::{Operation, Resource};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::Signs;

use super::heads::Head;
use super::meaning::{Context, snake};
use super::object::{self, Candidate, Preposition};
use super::token::{Kind, Token};

impl Context<'_, '_> {
    /// Adds the reads that the acts need.
    pub(super) fn add_sources(&self, heads: &[Head], reading: &mut Reading) {
        if reading.acts.is_empty() {
            return;
        }
        let mut looked_at = [false; RESOURCES];
        for head in heads.iter().filter(|head| self.looks(head)) {
            let governed = self.tokens.get(head.start..head.end).unwrap_or(&[]);
            for candidate in object::candidates(governed, self.lexicon).iter().filter(|candidate| candidate.is_source())
            {
                if let Some(seen) = looked_at.get_mut(candidate.resource as usize) {
                    *seen = true;
                }
            }
        }
        let mut holder: Option<&Candidate<'_>> = None;
        for candidate in &self.named {
            // "The file containing the plans": the plans stand in what is read already.
            let is_content = holder.is_some_and(|holder| holder.phrase == candidate.phrase);
            if candidate.is_source() && holds_content(candidate) && !is_content {
                holder = Some(candidate);
            }
            if is_content && !holds_content(candidate) {
                continue;
            }
            let looked = looked_at.get(candidate.resource as usize).copied().unwrap_or(false);
            if feeds(candidate, looked, reading) {
                // Where chat is named, an inbox is the chat's.
                let is_chat = candidate.noun == "inbox" && self.elsewhere(Resource::Message);
                let resource = if is_chat { Resource::Message } else { candidate.resource };
                let mut act =
                    Act::new("read", &snake(candidate.noun), resource, Operation::Read, 0.7).named_by(candidate.noun);
                act.signs = self.about_audience(Signs::default());
                reading.push(act);
            }
        }
        let visits = heads
            .iter()
            .any(|head| self.looks(head) && self.tokens.get(head.start..head.end).unwrap_or(&[]).iter().any(is_page));
        if (visits || self.draws_on_an_address()) && !reading.acts.iter().any(|act| act.resource == Resource::Web) {
            reading.push(Act::new("read", "webpage", Resource::Web, Operation::Read, 0.7));
        }
    }

    /// Whether the head only looks.
    fn looks(&self, head: &Head) -> bool {
        head.verb.is_none_or(|verb| self.lexicon.verb(verb).operation == Operation::Read)
    }

    /// "on https://...", "from www...": an address that something is taken from.
    fn draws_on_an_address(&self) -> bool {
        self.tokens.windows(2).any(|pair| {
            let [before, after] = pair else { return false };
            is_page(after) && matches!(before.word, "from" | "on" | "at" | "of" | "visit" | "in")
        })
    }
}

/// Whether it is a text or a place of texts, of which what it is about is no source of its own.
const fn holds_content(candidate: &Candidate<'_>) -> bool {
    matches!(
        candidate.resource,
        Resource::File | Resource::Document | Resource::Email | Resource::Message | Resource::Web
    )
}

fn is_page(token: &Token<'_>) -> bool {
    token.kind == Kind::Url && object::is_page(token.word)
}

const fn is_technical(resource: Resource) -> bool {
    matches!(
        resource,
        Resource::System
            | Resource::Network
            | Resource::Code
            | Resource::Config
            | Resource::Database
            | Resource::Permission
    )
}

/// More than there are resources.
const RESOURCES: usize = 32;

/// Whether something is taken from what this noun names, beside what the acts touch already.
fn feeds(candidate: &Candidate<'_>, looked_at: bool, reading: &Reading) -> bool {
    let private = matches!(
        candidate.resource,
        Resource::Email | Resource::Message | Resource::File | Resource::Document | Resource::Web | Resource::Calendar
    );
    if !private || candidate.is_weak() || !candidate.is_source() {
        return false;
    }
    // "At the conference" is where something was; "in my calendar" is where it is looked up.
    let is_place = candidate.preposition == Preposition::Source && !keeps_events(candidate.noun);
    if candidate.resource == Resource::Calendar && is_place {
        return false;
    }
    // "Make an avatar on Discord": the place where it is done.
    let changes_elsewhere =
        reading.acts.iter().any(|act| !matches!(act.operation, Operation::Read | Operation::Unknown));
    if candidate.resource == Resource::Message && candidate.after == "on" && changes_elsewhere {
        return false;
    }
    // "Remove Viktor from the channel": what is taken away from it, not out of it.
    let takes_away = |act: &Act| matches!(act.operation, Operation::Delete | Operation::Admin);
    if candidate.after == "from" && reading.acts.iter().all(takes_away) {
        return false;
    }
    let acts = || reading.acts.iter().filter(|act| alike(act.resource, candidate.resource));
    if acts().any(|act| act.operation == Operation::Read) {
        return false;
    }
    // A path among the arguments of a technical task is part of it.
    if candidate.noun == object::PATH && reading.acts.iter().any(|act| is_technical(act.resource)) {
        return false;
    }
    // What is made of something of its own kind, or sent after a look at it, still reads that.
    acts().next().is_none()
        || candidate.preposition == Preposition::Basis && acts().any(|act| act.operation == Operation::Write)
        || looked_at && acts().any(|act| act.operation == Operation::Send)
}

/// Whether events are looked up in it.
fn keeps_events(noun: &str) -> bool {
    ["calendar", "schedule", "agenda", "planner", "timetable", "diary", "availability"]
        .iter()
        .any(|word| noun.contains(word))
}

/// Resources that stand for one another, so that naming both adds nothing.
fn alike(one: Resource, other: Resource) -> bool {
    let is_file = |resource| matches!(resource, Resource::File | Resource::Document);
    one == other || (is_file(one) && is_file(other))
}
