//! Reads that a change draws on: "based on the emails", "in the message from Bob".

use crate::model::{Operation, Resource};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::Signs;

use super::heads::Head;
use super::meaning::{Context, snake};
use super::object::{Candidate, Preposition};
use super::token::Kind;

impl Context<'_, '_> {
    /// Adds the reads that the acts need.
    pub(super) fn add_sources(&self, heads: &[Head], reading: &mut Reading) {
        if reading.acts.is_empty() {
            return;
        }
        for candidate in &self.named {
            if self.feeds(candidate, reading) {
                let mut act = Act::new("read", &snake(candidate.noun), candidate.resource, Operation::Read, 0.7)
                    .from_resource(candidate.noun);
                act.signs = self.about_audience(Signs::default());
                reading.push(act);
            }
        }
        let visits = heads.iter().any(|head| {
            head.verb.is_some_and(|verb| self.lexicon.verb(verb).operation == Operation::Read)
                && self.tokens.get(head.start..head.end).unwrap_or(&[]).iter().any(|token| token.kind == Kind::Url)
        });
        if (visits || self.draws_on_an_address()) && !reading.acts.iter().any(|act| act.resource == Resource::Web) {
            reading.push(Act::new("read", "webpage", Resource::Web, Operation::Read, 0.7));
        }
    }

    /// Whether something is taken from what this noun names, beside what the acts touch already.
    fn feeds(&self, candidate: &Candidate<'_>, reading: &Reading) -> bool {
        let private = matches!(
            candidate.resource,
            Resource::Email
                | Resource::Message
                | Resource::File
                | Resource::Document
                | Resource::Web
                | Resource::Calendar
        );
        if !private || candidate.is_weak() || !candidate.is_source() {
            return false;
        }
        let touched = reading.acts.iter().any(|act| alike(act.resource, candidate.resource));
        let reads = reading.acts.iter().any(|act| {
            act.operation == Operation::Read && alike(act.resource, candidate.resource)
        });
        let makes = reading.acts.iter().any(|act| {
            matches!(act.operation, Operation::Write) && alike(act.resource, candidate.resource)
        });
        // What is made of something of its own kind still reads that.
        !touched || candidate.preposition == Preposition::Basis && makes && !reads
    }

    /// "on https://...", "from www...": an address that something is taken from.
    fn draws_on_an_address(&self) -> bool {
        self.tokens.windows(2).any(|pair| {
            let [before, after] = pair else { return false };
            after.kind == Kind::Url && matches!(before.word, "from" | "on" | "at" | "of" | "visit" | "in")
        })
    }
}

/// Resources that stand for one another, so that naming both adds nothing.
fn alike(one: Resource, other: Resource) -> bool {
    let is_file = |resource| matches!(resource, Resource::File | Resource::Document);
    one == other || (is_file(one) && is_file(other))
}

