//! Whether a call serves the request: the acts that the words ask for, and how well the tool fits them among the others.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::model::{Capability, Operation, Resource, RiskLevel};

/// The acts that the user's words ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) acts: Vec<Capability>,
    /// The risk of the riskiest of them.
    pub(crate) risk: RiskLevel,
}

/// The standing of a tool beside the request, among the tools of its catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// The relevance of the tool to the request.
    pub(crate) score: f64,
    /// How many tools of the catalogue score higher.
    pub(crate) rank: usize,
    /// The highest score of a tool that has an effect in common with this one which the words ask for.
    pub(crate) best_effect: f64,
}

/// Whether a call serves the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Serves,
    /// Not sure: the request or the tool can be read in more than one way.
    Unsure,
    /// Nothing in the words asks for it.
    Foreign,
}

impl Asked {
    /// Whether the words hand the task to a text that the user has not shown: "do what the mail says".
    pub(crate) fn is_open(&self) -> bool {
        self.acts
            .iter()
            .any(|act| act.operation() == Some(Operation::Execute) && act.resource() == Some(Resource::Task))
    }

    /// Whether the words could not be read.
    fn is_unknown(&self) -> bool {
        self.acts.iter().all(|act| matches!(act.operation(), None | Some(Operation::Unknown)))
    }

    /// Whether the words ask for an effect that this one can be a part of.
    pub(crate) fn asks_for_effect(&self, capability: &Capability) -> bool {
        self.acts.iter().any(|act| is_part(act, capability))
    }

    /// Whether a read lies in the neighborhood of an act.
    fn is_near(&self, capability: &Capability) -> bool {
        let Some(resource) = capability.resource() else { return false };
        self.acts.iter().any(|act| act.resource().is_some_and(|asked| are_near(asked, resource)))
    }
}

/// Whether a read serves the request: it lies in its neighborhood, or its tool fits the words.
pub(super) fn of_read(asked: &Asked, capabilities: &[Capability], risk: RiskLevel, fit: Option<Fit>) -> Purpose {
    let is_public =
        |capability: &Capability| matches!(capability.resource(), Some(Resource::Information | Resource::Web));
    let fits = fit.is_some_and(|fit| fit.score >= LEAST_READ || fit.score > 0.0 && fit.rank < FEW);
    let is_near = capabilities.iter().all(|capability| is_public(capability) || asked.is_near(capability));
    let is_harmless = risk <= RiskLevel::Low;
    if fits || is_near || is_harmless || asked.is_open() { Purpose::Serves } else { Purpose::Unsure }
}

/// Whether an effect serves the request: the words ask for its operation on such a resource or by such a tool, and no other
/// tool for it fits much better.
pub(super) fn of_effect(asked: &Asked, capabilities: &[Capability], risk: RiskLevel, fit: Option<Fit>) -> Purpose {
    let effects = || capabilities.iter().filter(|capability| is_effect(capability));
    let Some(first) = effects().next() else { return Purpose::Unsure };
    if asked.is_open() || asked.is_unknown() {
        return Purpose::Unsure;
    }
    let is_top = fit.is_some_and(|fit| fit.rank == 0 && fit.score >= LEAST_TOP);
    let fits = fit.is_some_and(|fit| fit.rank <= 1 && fit.score >= LEAST_FIT || fit.score >= GOOD_FIT);
    let is_grant = first.operation() == Some(Operation::Admin);
    let least = if is_grant { LEAST_SHARE_OF_GRANT } else { LEAST_SHARE };
    let is_outdone = fit.is_some_and(|fit| fit.best_effect >= CLEAR_FIT && fit.score < fit.best_effect * least);
    let serves_first = asked.acts.iter().any(|act| is_part(act, first) && (fits || is_same_kind(act, first)));
    // Inviting somebody and removing everybody are of one operation.
    let is_riskier = matches!(first.operation(), Some(Operation::Admin | Operation::Delete)) && risk > asked.risk;
    if serves_first && !is_outdone && !is_riskier {
        return Purpose::Serves;
    }
    // A tool that does several things: the words ask for one of them, and no tool fits better.
    let serves_one = effects()
        .any(|capability| asked.acts.iter().any(|act| is_part(act, capability) && is_same_kind(act, capability)));
    // "Book the hotel": whether that writes or pays is a matter of the reader.
    let books = |act: &Capability| {
        act.operation() == Some(Operation::Write)
            && matches!(act.resource(), Some(Resource::Booking | Resource::Order))
            && act.resource() == first.resource()
    };
    let is_booked = first.operation() == Some(Operation::Transfer) && asked.acts.iter().any(books);
    if is_top && (serves_one || is_booked) {
        return Purpose::Serves;
    }
    // Playing, computing, lighting a room: what cannot harm, by the tool that fits best.
    let is_harmless = risk <= RiskLevel::Low && effects().all(|one| one.operation() == Some(Operation::Execute));
    if is_harmless && is_top {
        return Purpose::Serves;
    }
    let harms = effects().any(|capability| {
        matches!(
            capability.operation(),
            None | Some(
                Operation::Delete | Operation::Send | Operation::Transfer | Operation::Admin | Operation::Unknown
            )
        )
    });
    let may_serve = serves_first || serves_one || fit.is_some_and(|fit| fit.score >= LEAST_DOUBT);
    if harms && !may_serve { Purpose::Foreign } else { Purpose::Unsure }
}

/// Whether a capability is more than a look.
pub(crate) fn is_effect(capability: &Capability) -> bool {
    capability.operation() != Some(Operation::Read)
}

/// Whether an effect can be a part of an act that is asked for: creating an event may start something, paying writes an
/// order. Nothing but itself deletes, sends, pays or grants.
fn is_part(act: &Capability, effect: &Capability) -> bool {
    use Operation::{Admin, Delete, Execute, Send, Transfer, Write};
    let (Some(act), Some(effect)) = (act.operation(), effect.operation()) else { return false };
    match effect {
        Write => matches!(act, Write | Execute | Transfer | Admin),
        Execute => matches!(act, Write | Execute),
        Delete | Send | Transfer | Admin => act == effect,
        Operation::Read | Operation::Unknown => false,
    }
}

/// Whether an id of one resource can be meant where a call is about these.
pub(super) fn are_of_one_kind(resource: Resource, capabilities: &[Capability]) -> bool {
    let one = Capability::new(resource, Operation::Read);
    capabilities
        .iter()
        .any(|other| is_same_kind(&one, other) || other.resource().is_some_and(|other| are_near(other, resource)))
}

/// Tells whether two capabilities are about the same kind of thing, so that one word may have been read as the other.
fn is_same_kind(one: &Capability, other: &Capability) -> bool {
    let (Some(one), Some(other)) = (one.resource(), other.resource()) else { return false };
    one == other || KINDS.iter().any(|kind| kind.contains(&one) && kind.contains(&other))
}

fn are_near(asked: Resource, read: Resource) -> bool {
    asked == read || NEIGHBORS.get(asked.as_str()).is_some_and(|near| near.iter().any(|one| one == read.as_str()))
}

/// Kinds of things that words do not tell apart.
const KINDS: &[&[Resource]] = &[
    &[Resource::File, Resource::Document, Resource::Media, Resource::Code],
    &[Resource::Message, Resource::Email, Resource::Social, Resource::Contact],
    &[Resource::Calendar, Resource::Booking, Resource::Task],
    &[Resource::Account, Resource::Permission, Resource::Credential, Resource::Customer],
    &[Resource::Payment, Resource::Order, Resource::Booking],
    &[Resource::System, Resource::Device, Resource::Network, Resource::Config, Resource::Code, Resource::Model],
    &[Resource::Database, Resource::Analytics, Resource::Document],
    &[Resource::Web, Resource::Social],
    &[Resource::Customer, Resource::Health, Resource::Contact],
];

static NEIGHBORS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let table: BTreeMap<String, String> = toml::from_str(include_str!("data/neighborhoods.toml")).unwrap_or_default();
    table.into_iter().map(|(key, near)| (key, near.split_whitespace().map(str::to_owned).collect())).collect()
});

// SOURCE: chosen on the 810 calls of the Berkeley Function-Calling Leaderboard and the 61 tasks of AgentDojo in the
// development data, 2026-11-25; scores are those of `parse::learned::relevance`.
/// The relevance of a tool from which on it is in the neighborhood of a request.
const LEAST_READ: f64 = 0.08;
/// How many of the tools that fit best are in the neighborhood whatever their relevance.
const FEW: usize = 2;
/// The relevance of a tool among the two best that makes up for another resource.
const LEAST_FIT: f64 = 0.1;
/// The relevance of any tool that does.
const GOOD_FIT: f64 = 0.25;
/// The relevance of the best tool.
const LEAST_TOP: f64 = 0.15;
/// The relevance from which on the best tool for an effect is plainly the one that is meant, and the share of it that another
/// one needs.
const CLEAR_FIT: f64 = 0.15;
const LEAST_SHARE: f64 = 0.5;
/// The same of one that grants or takes away: of these, opposites are of one operation.
const LEAST_SHARE_OF_GRANT: f64 = 0.75;
/// The relevance from which on a person is asked rather than the call refused.
const LEAST_DOUBT: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(acts: &[&str]) -> Asked {
        Asked { acts: acts.iter().map(|act| act.parse().unwrap()).collect(), risk: RiskLevel::Medium }
    }

    fn effect(acts: &[&str], capability: &str, score: f64) -> Purpose {
        let fit = Fit { score, rank: 5, best_effect: 0.1 };
        of_effect(&asked(acts), &[capability.parse().unwrap()], RiskLevel::Medium, Some(fit))
    }

    #[test]
    fn nothing_but_itself_deletes_sends_pays_or_grants() {
        for (acts, capability, expected) in [
            (&["email:read"][..], "email:delete", Purpose::Foreign),
            (&["email:read"], "email:send", Purpose::Foreign),
            (&["email:send"], "email:send", Purpose::Serves),
            (&["message:send"], "email:send", Purpose::Serves),
            (&["email:send"], "payment:transfer", Purpose::Foreign),
            (&["booking:transfer"], "booking:write", Purpose::Serves),
            (&["file:write"], "file:delete", Purpose::Foreign),
            (&["calendar:write"], "file:write", Purpose::Unsure),
            (&["task:execute"], "email:send", Purpose::Unsure),
            (&["unknown:unknown"], "email:send", Purpose::Unsure),
        ] {
            assert_eq!(effect(acts, capability, 0.05), expected, "{acts:?} {capability}");
        }
    }

    #[test]
    fn the_neighborhood_is_one_of_reads() {
        let near = |acts: &[&str], capability: &str| {
            let fit = Fit { score: 0.0, rank: 9, best_effect: 0.0 };
            of_read(&asked(acts), &[capability.parse().unwrap()], RiskLevel::Medium, Some(fit))
        };
        assert_eq!(near(&["email:send"], "contact:read"), Purpose::Serves);
        assert_eq!(near(&["calendar:read"], "credential:read"), Purpose::Unsure);
        assert!(NEIGHBORS.values().flatten().chain(NEIGHBORS.keys()).all(|word| word.parse::<Resource>().is_ok()));
        assert!(!NEIGHBORS.is_empty());
    }
}
