//! By what a sending verb sends: mail, chat, a public post, a shared file.

use crate::model::Resource;
use crate::parse::lexicon::{Class, Verb};

use super::meaning::Context;
use super::object::{self, Candidate};
use super::token::{Kind, Token};

impl<'t> Context<'t, '_> {
    /// What a sending verb sends by: the medium that the clause, else the text, names.
    pub(super) fn medium(
        &self,
        verb: &Verb,
        governed: &[Token<'_>],
        candidates: &[Candidate<'t>],
    ) -> (Resource, &'t str, f64) {
        let in_clause = |wanted: Resource| candidates.iter().find(|candidate| candidate.resource == wanted);
        let to_address = governed.iter().any(|token| token.kind == Kind::Email);
        if to_address && in_clause(Resource::Message).is_none() {
            let shared = candidates
                .iter()
                .find(|first| first.phrase == 0 && matches!(first.resource, Resource::Document | Resource::File));
            return match shared {
                Some(shared) if verb.is(Class::Shares) => (shared.resource, shared.noun, 0.9),
                _ => (Resource::Email, "email", 0.9),
            };
        }
        if verb.is(Class::Shares)
            && let Some(direct) = candidates.iter().find(|candidate| candidate.phrase == 0)
        {
            return (direct.resource, direct.noun, 0.85);
        }
        for wanted in [Resource::Email, Resource::Social, Resource::Message] {
            let source = |candidate: &&Candidate<'_>| !candidate.is_source() || candidate.phrase == 0;
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
        if verb.is(Class::Posts) {
            return (Resource::Social, "post", 0.7);
        }
        object::best(candidates)
            .filter(|best| matches!(best.resource, Resource::File | Resource::Document))
            .map_or((Resource::Message, "message", 0.65), |best| (best.resource, best.noun, 0.7))
    }
}
