//! The evidence of a parse: the words or arguments that led to each act and to each of its risk factors.

use rulekeep_types::parts::ActEvidenceParts;
use rulekeep_types::parts::FactorEvidenceParts;
use rulekeep_types::parts::WordEvidenceParts;
use rulekeep_types::{ActEvidence, FactorEvidence, WordEvidence};

use super::reading::{Act, Facts};
use super::sign::Sign;
use super::{confidence, risk};

/// Builds the evidence of one act within its request.
pub(super) fn of(act: &Act, facts: &Facts) -> ActEvidence {
    let assessment = risk::assess(act, facts);
    let capability = act.capability();
    let mut risk_factors = vec![FactorEvidence::from(FactorEvidenceParts {
        factor: risk::cell_text(act.operation, act.resource),
        found: None,
    })];
    risk_factors.extend(assessment.causes.iter().map(|sign| factor(sign, facts)));
    ActEvidence::from(ActEvidenceParts {
        action: confidence::action_name(act),
        capability,
        operation: act.found.operation.as_deref().map(str::to_owned),
        resource: act.found.resource.as_deref().map(str::to_owned),
        words: act
            .found
            .words
            .iter()
            .map(|(words, points_to)| WordEvidence::from(WordEvidenceParts { words: words.to_string(), points_to }))
            .collect(),
        guessed: act.guess || act.is_unknown(),
        risk_level: assessment.level,
        risk_factors,
    })
}

fn factor(sign: Sign, facts: &Facts) -> FactorEvidence {
    let found = facts.shown.iter().find(|(known, _)| *known == sign).map(|(_, found)| found.to_string());
    FactorEvidence::from(FactorEvidenceParts { factor: sign.text(), found })
}
