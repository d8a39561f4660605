//! Deciding whether a call serves the request, from the acts that the words ask for and the relevance of the tool
//! among the others.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::model::{Capability, Operation, Resource, RiskLevel};

/// The acts that the user's words ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) acts: Vec<Capability>,
    /// The highest risk among them.
    pub(crate) risk: RiskLevel,
}

/// The relevance of a tool to the request, compared with the other tools of its catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// The relevance of the tool.
    pub(crate) score: f64,
    /// Number of tools in the catalog with a higher relevance.
    pub(crate) rank: usize,
    /// The highest relevance of a tool that shares an effect with this one which the words ask for.
    pub(crate) best_effect: f64,
}

/// Whether a call serves the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Serves,
    /// Uncertain: the request or the tool can be understood in more than one way.
    Unsure,
    /// The words do not ask for it.
    Foreign,
}

impl Asked {
    /// Returns whether the words delegate the task to a text that the user has not shown: "do what the mail says".
    pub(crate) fn is_open(&self) -> bool {
        self.acts
            .iter()
            .any(|act| act.operation() == Some(Operation::Execute) && act.resource() == Some(Resource::Task))
    }

    /// Returns whether the words could not be parsed.
    fn is_unknown(&self) -> bool {
        self.acts.iter().all(|act| matches!(act.operation(), None | Some(Operation::Unknown)))
    }

    /// Returns whether the words ask for an act that this effect can be part of.
    pub(crate) fn asks_for_effect(&self, capability: &Capability) -> bool {
        self.acts.iter().any(|act| is_part(act, capability))
    }

    /// Returns whether a read is in the neighborhood of an act.
    fn is_near(&self, capability: &Capability) -> bool {
        let Some(resource) = capability.resource() else { return false };
        self.acts.iter().any(|act| act.resource().is_some_and(|asked| are_near(asked, resource)))
    }
}

/// Decides whether a read serves the request: it is in its neighborhood, or its tool matches the words.
pub(super) fn of_read(asked: &Asked, capabilities: &[Capability], risk: RiskLevel, fit: Option<Fit>) -> Purpose {
    let is_public =
        |capability: &Capability| matches!(capability.resource(), Some(Resource::Information | Resource::Web));
    let fits = fit.is_some_and(|fit| fit.score >= LEAST_READ || fit.score > 0.0 && fit.rank < FEW);
    let is_near = capabilities.iter().all(|capability| is_public(capability) || asked.is_near(capability));
    let is_harmless = risk <= RiskLevel::Low;
    if fits || is_near || is_harmless || asked.is_open() { Purpose::Serves } else { Purpose::Unsure }
}

/// Decides whether an effect serves the request: the words ask for its operation, on such a resource or with such a
/// tool, and no other tool for it matches much better.
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
    // Inviting a member and removing all members are the same operation.
    let is_riskier = matches!(first.operation(), Some(Operation::Admin | Operation::Delete)) && risk > asked.risk;
    if serves_first && !is_outdone && !is_riskier {
        return Purpose::Serves;
    }
    // A tool that does several things: the words ask for one of them, and no tool matches better.
    let serves_one = effects()
        .any(|capability| asked.acts.iter().any(|act| is_part(act, capability) && is_same_kind(act, capability)));
    // "Book the hotel" may mean writing or paying.
    let books = |act: &Capability| {
        act.operation() == Some(Operation::Write)
            && matches!(act.resource(), Some(Resource::Booking | Resource::Order))
            && act.resource() == first.resource()
    };
    let is_booked = first.operation() == Some(Operation::Transfer) && asked.acts.iter().any(books);
    if is_top && (serves_one || is_booked) {
        return Purpose::Serves;
    }
    // Harmless effects, such as playing music or computing, by the tool that matches best.
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

/// Returns whether a capability is more than reading.
pub(crate) fn is_effect(capability: &Capability) -> bool {
    capability.operation() != Some(Operation::Read)
}

/// Returns whether an effect can be part of a requested act: creating an event may start something, paying may write
/// an order. Deleting, sending, paying and granting must be requested themselves.
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

/// Returns whether an ID of one resource can be meant in a call with these capabilities.
pub(super) fn are_of_one_kind(resource: Resource, capabilities: &[Capability]) -> bool {
    let one = Capability::new(resource, Operation::Read);
    capabilities
        .iter()
        .any(|other| is_same_kind(&one, other) || other.resource().is_some_and(|other| are_near(other, resource)))
}

/// Returns whether two capabilities concern the same kind of thing, so that one may have been parsed as the other.
pub(super) fn is_same_kind(one: &Capability, other: &Capability) -> bool {
    let (Some(one), Some(other)) = (one.resource(), other.resource()) else { return false };
    one == other || KINDS.iter().any(|kind| kind.contains(&one) && kind.contains(&other))
}

fn are_near(asked: Resource, read: Resource) -> bool {
    asked == read || NEIGHBORS.get(asked.as_str()).is_some_and(|near| near.iter().any(|one| one == read.as_str()))
}

/// Kinds of things that words do not distinguish.
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
/// Least relevance of a tool in the neighborhood of a request.
const LEAST_READ: f64 = 0.08;
/// Number of best tools that are in the neighborhood whatever their relevance.
const FEW: usize = 2;
/// Least relevance at which one of the two best tools may act on another resource.
const LEAST_FIT: f64 = 0.1;
/// Least relevance at which any tool may act on another resource.
const GOOD_FIT: f64 = 0.25;
/// Least relevance of the best tool.
const LEAST_TOP: f64 = 0.15;
/// Relevance at which the best tool for an effect is clearly the one that is meant, and the share of it that another
/// tool needs.
const CLEAR_FIT: f64 = 0.15;
const LEAST_SHARE: f64 = 0.5;
/// The share for a tool that grants or revokes, because opposite effects are the same operation there.
const LEAST_SHARE_OF_GRANT: f64 = 0.75;
/// Least relevance at which a reviewer is asked instead of denying the call.
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
