//! The query over the proof chain, checked before it is answered.

use crate::model::{AgentId, Decision, Error, InvalidValue, Outcome, Timestamp};

use super::index::Filter;

/// Which proof records are asked for, newest first.
///
/// ```
/// use rulekeep::{Decision, ProofQuery};
///
/// let query = ProofQuery::entity("support-1").decision(Decision::Deny).page(2).page_size(20);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofQuery {
    entity_id: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    decision: Option<Decision>,
    outcome: Option<Outcome>,
    page: u64,
    page_size: u64,
}

impl ProofQuery {
    /// Records of a page, unless said otherwise.
    pub const DEFAULT_PAGE_SIZE: u64 = 50;
    /// The most records of a page.
    pub const MAX_PAGE_SIZE: u64 = 200;

    /// All records of an agent, the first page of 50.
    pub fn entity(entity_id: impl Into<String>) -> Self {
        Self {
            entity_id: entity_id.into(),
            from: None,
            to: None,
            decision: None,
            outcome: None,
            page: 1,
            page_size: Self::DEFAULT_PAGE_SIZE,
        }
    }

    /// Only records from this moment on, inclusive.
    #[must_use]
    pub fn from(mut self, from: impl Into<Timestamp>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// Only records up to this moment, inclusive.
    #[must_use]
    pub fn to(mut self, to: impl Into<Timestamp>) -> Self {
        self.to = Some(to.into());
        self
    }

    /// Only records of this decision.
    #[must_use]
    pub fn decision(mut self, decision: Decision) -> Self {
        self.decision = Some(decision);
        self
    }

    /// Only records whose action had this outcome.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Which page, counted from 1.
    #[must_use]
    pub fn page(mut self, page: u64) -> Self {
        self.page = page;
        self
    }

    /// How many records a page has, 1 to 200.
    #[must_use]
    pub fn page_size(mut self, page_size: u64) -> Self {
        self.page_size = page_size;
        self
    }

    /// The query with every bound checked.
    pub(super) fn checked(&self) -> Result<CheckedQuery, Error> {
        let entity = checked_entity(&self.entity_id)?;
        let filter = checked_period(self.from, self.to)?;
        if self.page < 1 {
            return Err(Error::query("page", "expected 1 or more, found 0"));
        }
        if !(1..=Self::MAX_PAGE_SIZE).contains(&self.page_size) {
            return Err(Error::query(
                "pageSize",
                format!("expected 1 to {}, found {}", Self::MAX_PAGE_SIZE, self.page_size),
            ));
        }
        Ok(CheckedQuery {
            entity,
            filter: Filter { decision: self.decision, outcome: self.outcome, ..filter },
            page: self.page,
            page_size: self.page_size,
        })
    }
}

/// A query that can be answered.
pub(super) struct CheckedQuery {
    pub(super) entity: AgentId,
    pub(super) filter: Filter,
    pub(super) page: u64,
    pub(super) page_size: u64,
}

pub(super) fn checked_entity(entity_id: &str) -> Result<AgentId, Error> {
    entity_id.parse().map_err(|error: InvalidValue| Error::query("entityId", error.to_string()))
}

/// A filter on time alone.
pub(super) fn checked_period(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Filter, Error> {
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(Error::query("from", format!("{from} is after to, {to}")));
    }
    Ok(Filter {
        from: from.map_or(i64::MIN, Timestamp::as_millis),
        to: to.map_or(i64::MAX, Timestamp::as_millis),
        decision: None,
        outcome: None,
    })
}
