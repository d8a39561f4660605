//! The query over the proof chain, validated before it is answered.

use sha2::{Digest as _, Sha256};

use rulekeep_types::{
    AgentId, CursorPlace, Decision, Error, Intent, IntentId, InvalidValue, Order, Outcome, ProofCursor, RiskLevel,
    Timestamp,
};

use super::index::{Cells, Filter};

/// A query for proof records. The default order is newest first.
///
/// ```
/// use rulekeep::proof::Order;
/// use rulekeep::{Decision, ProofQuery};
///
/// let query = ProofQuery::entity("support-1").decision(Decision::Deny).page(2).page_size(20);
/// let first_of_all = ProofQuery::all().order(Order::OldestFirst).page_size(1);
///
/// # use rulekeep::{Agent, Governor, Intent, RiskLevel, Tier};
/// # let governor = Governor::builder().open_in_memory()?;
/// # governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
/// # let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
/// # let verdict = governor.enforce(&intent)?;
/// assert_eq!(governor.query(&query)?.total, 0);
/// assert_eq!(governor.query(&first_of_all)?.items[0].id, verdict.proof_id);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofQuery {
    entity_id: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    decision: Option<Decision>,
    risk: Option<RiskLevel>,
    outcome: Option<Outcome>,
    is_open: bool,
    intent: Option<IntentId>,
    call: Option<String>,
    order: Order,
    page: u64,
    page_size: u64,
    cursor: Option<ProofCursor>,
}

impl ProofQuery {
    /// Default number of records on a page.
    pub const DEFAULT_PAGE_SIZE: u64 = 50;
    /// Largest number of records on a page.
    pub const MAX_PAGE_SIZE: u64 = 200;

    /// Creates a query for the records of one agent. It selects the first page of 50 records.
    pub fn entity(entity_id: impl Into<String>) -> Self {
        Self { entity_id: Some(entity_id.into()), ..Self::all() }
    }

    /// Creates a query for the records of all agents. It selects the first page of 50 records.
    pub fn all() -> Self {
        Self {
            entity_id: None,
            from: None,
            to: None,
            decision: None,
            risk: None,
            outcome: None,
            is_open: false,
            intent: None,
            call: None,
            order: Order::default(),
            page: 1,
            page_size: Self::DEFAULT_PAGE_SIZE,
            cursor: None,
        }
    }

    /// The ID of the agent whose records are queried; `None` for all agents.
    pub fn entity_id(&self) -> Option<&str> {
        self.entity_id.as_deref()
    }

    /// Keeps only records from this moment on, inclusive.
    #[must_use]
    pub fn from(mut self, from: impl Into<Timestamp>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// Keeps only records up to this moment, inclusive.
    #[must_use]
    pub fn to(mut self, to: impl Into<Timestamp>) -> Self {
        self.to = Some(to.into());
        self
    }

    /// Keeps only records with this decision.
    #[must_use]
    pub fn decision(mut self, decision: Decision) -> Self {
        self.decision = Some(decision);
        self
    }

    /// Keeps only records with this risk level.
    #[must_use]
    pub fn risk(mut self, risk: RiskLevel) -> Self {
        self.risk = Some(risk);
        self
    }

    /// Keeps only records whose action had this outcome.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Keeps only records of granted actions and pending escalations that have no outcome yet.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Keeps only records of this intent, which may have been decided more than once.
    #[must_use]
    pub fn intent(mut self, intent: IntentId) -> Self {
        self.intent = Some(intent);
        self
    }

    /// Keeps only records of the request to which its caller gave this ID as `callId`. Requires an entity, and
    /// excludes [`ProofQuery::intent`].
    #[must_use]
    pub fn call(mut self, call_id: impl Into<String>) -> Self {
        self.call = Some(call_id.into());
        self
    }

    /// Sets the order of the records.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Selects a page, counted from 1. The default is 1.
    #[must_use]
    pub fn page(mut self, page: u64) -> Self {
        self.page = page;
        self
    }

    /// Sets the number of records on a page, 1 to 200. The default is 50.
    #[must_use]
    pub fn page_size(mut self, page_size: u64) -> Self {
        self.page_size = page_size;
        self
    }

    /// Selects the page after a cursor instead of a page number; [`ProofCursor::START`] selects the first page. A
    /// page selected by a cursor returns the cursor of the next page.
    #[must_use]
    pub fn after(mut self, cursor: ProofCursor) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// Validates the query.
    pub fn checked(&self) -> Result<CheckedQuery, Error> {
        let entity = self.entity_id.as_deref().map(checked_entity).transpose()?;
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
        if self.cursor.is_some() && self.page > 1 {
            return Err(Error::query("page", "expected either a page or a cursor, found both"));
        }
        let intent = match (&self.call, &entity, self.intent) {
            (None, _, intent) => intent,
            (Some(call_id), Some(entity), None) => {
                Intent::check_call_id(call_id).map_err(|error| Error::query("callId", error.to_string()))?;
                Some(IntentId::of_call(entity, call_id))
            }
            (Some(_), _, _) => return Err(Error::query("callId", "expected it with an entityId, without an intentId")),
        };
        let cells = Cells::of(self.decision, self.risk, self.outcome);
        let query = CheckedQuery {
            entity,
            filter: Filter { cells: if self.is_open { cells.and(Cells::open()) } else { cells }, ..filter },
            intent,
            order: self.order,
            page: self.page,
            page_size: self.page_size,
            cursor: self.cursor,
        };
        match self.cursor {
            Some(ProofCursor(Some(place))) if query.cursor_check(&place) != place.check => {
                Err(Error::query("cursor", "expected start, or the nextCursor of a page of the same query"))
            }
            _ => Ok(query),
        }
    }
}

/// A validated query.
#[derive(Debug, Clone)]
pub struct CheckedQuery {
    pub(super) entity: Option<AgentId>,
    pub(super) filter: Filter,
    pub(super) intent: Option<IntentId>,
    pub(super) order: Order,
    pub(super) page: u64,
    pub(super) page_size: u64,
    pub(super) cursor: Option<ProofCursor>,
}

impl CheckedQuery {
    /// Returns the cursor after a record.
    pub(super) fn cursor_behind(&self, entries: u64, last: u64, page: u64) -> ProofCursor {
        let place = CursorPlace { check: [0; 8], entries, last, page };
        ProofCursor(Some(CursorPlace { check: self.cursor_check(&place), ..place }))
    }

    /// Returns a check value that ties a cursor to this query. It detects mistakes only; it is not a security
    /// measure, because a cursor shows nothing that the query would not show.
    fn cursor_check(&self, place: &CursorPlace) -> [u8; 8] {
        let mut hash = Sha256::new();
        let entity = self.entity.as_ref().map_or("", AgentId::as_str);
        // The ID of an agent is never empty.
        hash.update((entity.len() as u64).to_be_bytes());
        hash.update(entity);
        for bound in [self.filter.from, self.filter.to] {
            hash.update(bound.to_be_bytes());
        }
        hash.update(self.filter.cells.to_bytes());
        hash.update(self.intent.map_or([0; 16], IntentId::to_bytes));
        hash.update([self.order as u8, u8::from(self.intent.is_some())]);
        for number in [place.entries, place.last, place.page] {
            hash.update(number.to_be_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0))
    }
}

pub(super) fn checked_entity(entity_id: &str) -> Result<AgentId, Error> {
    entity_id.parse().map_err(|error: InvalidValue| Error::query("entityId", error.to_string()))
}

/// Returns a filter on time alone.
pub(super) fn checked_period(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Filter, Error> {
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(Error::query("from", format!("{from} is after to, {to}")));
    }
    Ok(Filter::period(from.map_or(i64::MIN, Timestamp::as_millis), to.map_or(i64::MAX, Timestamp::as_millis)))
}
