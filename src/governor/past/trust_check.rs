//! Recomputing trust from the log, and comparing it with the stored trust.

use std::collections::HashMap;

use crate::governor::keys::{self, Keyed as _};
use crate::governor::roster::trust::Trust;
use crate::governor::{Past, Roster};
use crate::model::{AgentId, Error, Score, Sequence, TrustCause, TrustCheck, TrustDifference, TrustSnapshot};
use crate::proof::{TrustMove, TrustStep};
use crate::trust::{AgentRecord, Rebuild, TrustEvent, TrustFact, TrustModel, TrustState};

impl Trust<'_> {
    /// Recomputes every agent's trust from the log: from reported outcomes, operators' actions and the trust model in
    /// force at each time. Returns the differences from the trust stored in the log's entries or in memory.
    ///
    /// It reads the whole journal, which takes as long as verifying it.
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] if the log does not verify; [`Error::StorageUnavailable`] when it cannot be read.
    pub fn verify(self) -> Result<TrustCheck, Error> {
        self.inner.here()?.past.check_trust()
    }
}

impl Past {
    fn check_trust(&self) -> Result<TrustCheck, Error> {
        let mut rebuilding = Rebuilding::default();
        self.0.base.log.each_trust_step(&mut |step| rebuilding.take(&self.0.roster, step))?;
        let mut check = TrustCheck::new(rebuilding.agents.len() as u64);
        for (agent_id, found) in rebuilding.agents {
            let difference = found.difference.or_else(|| {
                let cell = self.0.roster.ledger.get(&agent_id)?;
                let kept = cell.read().trust;
                let rebuilt = found.rebuild.state()?;
                // Changes since the log was read are not compared.
                (kept.last == rebuilt.last && kept.changes == rebuilt.changes && kept != rebuilt)
                    .then_some((kept, rebuilt, found.at))
            });
            if let Some((kept, rebuilt, at)) = difference {
                let shown = |state: TrustState| TrustSnapshot::new(state.score, state.tier);
                check.differing.push(TrustDifference::new(agent_id, at, shown(kept), shown(rebuilt)));
            }
        }
        check.differing.sort_by_key(|difference| difference.sequence);
        Ok(check)
    }
}

/// The agents as recomputed so far.
#[derive(Default)]
struct Rebuilding {
    agents: HashMap<AgentId, Found>,
    model: TrustModel,
}

struct Found {
    rebuild: Rebuild,
    /// The last entry with the agent's state.
    at: Sequence,
    /// The first difference: the stored trust, the recomputed trust, and the entry.
    difference: Option<(TrustState, TrustState, Sequence)>,
}

impl Rebuilding {
    fn take(&mut self, roster: &Roster, step: &TrustStep<'_>) {
        if step.key == keys::Model::PREFIX {
            // After an unreadable model, later trust differs, which is reported.
            self.model = serde_json::from_slice(step.value).unwrap_or_default();
            return;
        }
        if !step.key.starts_with(keys::Agents::PREFIX) {
            return;
        }
        let Ok(stated) = serde_json::from_slice::<AgentRecord>(step.value) else { return };
        let ceiling = roster.ceiling_of(stated.profile());
        let found = self.agents.entry(stated.agent_id.clone()).or_insert_with(|| Found {
            rebuild: Rebuild::default(),
            at: step.sequence,
            difference: None,
        });
        found.at = step.sequence;
        let fact = match (found.rebuild.state(), fact_of(step, &stated.trust, ceiling)) {
            (None, Some(registered @ TrustFact::Registered { .. })) => Some(registered),
            // The first known state of the agent.
            (None, _) => Some(TrustFact::Stated { state: stated.trust, ceiling }),
            (Some(_), fact) => fact,
        };
        if fact.is_none() {
            found.rebuild.set_ceiling(ceiling);
        }
        if let Some(fact) = fact {
            let at = step.outcome.map(|(_, basis)| basis.at).or(step.trust.as_ref().map(|trust| trust.at));
            found.rebuild.feed(&self.model, step.sequence, at.unwrap_or(step.at), &fact);
        }
        found.rebuild.follow_first_logs(&stated.trust);
        if let Some(rebuilt) = found.rebuild.state()
            && rebuilt != stated.trust
            && found.difference.is_none()
        {
            found.difference = Some((stated.trust, rebuilt, step.sequence));
        }
    }
}

/// The cause of a trust change; `None` if the entry only repeats a state.
fn fact_of(step: &TrustStep<'_>, stated: &TrustState, ceiling: Option<Score>) -> Option<TrustFact> {
    if let Some((outcome, basis)) = step.outcome {
        let event = TrustEvent { outcome, decision: basis.decision, risk: basis.risk, earns: basis.earns };
        return Some(TrustFact::Outcome(event));
    }
    let TrustMove { cause, risk, gained, change, .. } = step.trust.as_ref()?;
    Some(match cause {
        TrustCause::Denials => TrustFact::Denials((*risk)?),
        TrustCause::Rejection => TrustFact::Rejection((*risk)?),
        TrustCause::Adjusted => TrustFact::Adjusted(change.to),
        TrustCause::Idle => TrustFact::Idle,
        TrustCause::Clock => TrustFact::Restarted,
        TrustCause::Correction => TrustFact::Correction { risk: (*risk)?, gained: (*gained)? },
        TrustCause::Ceiling => TrustFact::Ceiling(ceiling),
        TrustCause::Registered => {
            TrustFact::Registered { score: change.to, ceiling, by_itself: stated.is_self_registered() }
        }
        TrustCause::Outcome => return None,
    })
}
